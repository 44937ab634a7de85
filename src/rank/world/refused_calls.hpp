#pragma once

#include <string>
#include <utility>

#include <troupe/lib/submit.hpp>

namespace troupe::rank_process {

inline const Error kEmptyGroup{Errc::invalid, 0, "the group is empty: this rank is in none"};
inline const Error kGoneGroup{Errc::stale, 0,
                              "the group is gone: its other ranks let go of it while this one was "
                              "out of the world"};
inline const Error kMessageInBundle{
    Errc::unsupported, 0, "a bundle takes collectives that move data, no messages or barriers"};

/// Takes the calls of a communicator that cannot have them, such as an empty group. Each is refused
/// as any wrong call is: what the program does not read ends its run, and a recording fails. Any
/// thread.
class RefusedCalls final : public detail::Submitter {
 public:
  /// `program` takes the program's calls, and outlives this.
  RefusedCalls(detail::Submitter& program, Error why) : program_(&program), why_(std::move(why)) {}

  Future<void> submit(const detail::CommandView& command) override {
    return program_->refuse({why_.code, 0, std::string(command.info->name) + ": " + why_.message});
  }
  Future<void> refuse(Error) override { return program_->refuse(why_); }

 private:
  detail::Submitter* program_;
  Error why_;
};

/// One for each reason.
struct Refusals {
  explicit Refusals(detail::Submitter& program)
      : empty_group(program, kEmptyGroup),
        gone_group(program, kGoneGroup),
        messages_in_bundle(program, kMessageInBundle) {}

  RefusedCalls empty_group, gone_group, messages_in_bundle;
};

}  // namespace troupe::rank_process
