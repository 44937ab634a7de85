#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "device_host/engine/tracing.hpp"

namespace troupe::host::cuda {

/// Finds the command of each thing that the GPU did. CUPTI tells in one place which call of CUDA's
/// belonged to a command, and in another, perhaps earlier, what the call's work was. One call may
/// have launched much, as a graph does.
class ActivityJoin {
 public:
  struct Work {
    std::int64_t begin = 0, end = 0;
    std::uint32_t stream = 0;
    std::string name;
  };

  explicit ActivityJoin(ActivitySink sink) : sink_(std::move(sink)), calls_(kCalls) {}

  /// The call with this number was made for the command.
  void launched(std::uint32_t call, std::uint64_t ticket) {
    calls_[call % kCalls] = {call, ticket};
  }
  void ran(std::uint32_t call, Work work) { fresh_.push_back({call, std::move(work)}); }
  /// A buffer has been read: what belongs to a command is told. What belongs to none so far may
  /// find it in the next buffer, and then is nobody's.
  void settle() {
    for (const auto& one : waiting_) (void)tell(one);
    waiting_.clear();
    for (auto& one : fresh_) {
      if (!tell(one)) waiting_.push_back(std::move(one));
    }
    fresh_.clear();
  }

 private:
  /// Calls that are remembered: more than a buffer tells of.
  static constexpr std::uint32_t kCalls = 1u << 16;
  struct Call {
    std::uint32_t number = 0;
    std::uint64_t ticket = 0;
  };
  struct Ran {
    std::uint32_t call = 0;
    Work work;
  };
  bool tell(const Ran& ran) const {
    const auto& call = calls_[ran.call % kCalls];
    if (call.ticket == 0 || call.number != ran.call) return false;
    sink_(call.ticket, ran.work.begin, ran.work.end, ran.work.stream, ran.work.name);
    return true;
  }

  ActivitySink sink_;
  std::vector<Call> calls_;
  std::vector<Ran> fresh_, waiting_;
};

}  // namespace troupe::host::cuda
