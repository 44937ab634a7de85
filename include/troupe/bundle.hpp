#pragma once

#include <memory>

#include <troupe/collectives.hpp>

namespace troupe {

namespace rank_process {
class BundleRecorder;
}

/// Several collectives of one communicator as one operation: they are launched together
/// (ncclGroupStart … ncclGroupEnd), which costs less than one after the other, and end together.
///
///     auto bundle = world.bundle();
///     for (const auto& gradient : gradients) bundle.all_reduce(gradient, ReduceOp::avg);
///     bundle.submit();
///
/// All ranks put the same collectives into it in the same order, at most 64. None may read what
/// another one writes. Messages (send, receive, exchange) are refused. One thread at a time.
///
/// Calls that are never submitted are an error (invalid) when the bundle goes, unless an exception
/// takes it away.
class Bundle : public Collectives {
 public:
  explicit Bundle(const Collectives& ranks);
  Bundle(Bundle&&) = default;
  Bundle& operator=(Bundle&&) = default;
  ~Bundle();

  /// Submits what was called since the last time. The futures of the calls are that of the whole,
  /// too; one that was refused keeps it from being launched.
  Future<void> submit();

 private:
  std::shared_ptr<rank_process::BundleRecorder> record_;
};

}  // namespace troupe
