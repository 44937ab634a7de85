#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::host::cuda {

/// Which command a call of CUDA's was made for, by the number that CUPTI gives to the call and to
/// all that the GPU does because of it: one call may launch much, as a graph does. The newest calls
/// are remembered. Any thread.
class ActivityJoin {
 public:
  /// More than are made between two times that CUPTI tells what has been done.
  static constexpr std::size_t kCalls = 1u << 18;

  void launched(std::uint32_t call, std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    if (calls_.size() < kCalls) {
      calls_.push_back(call);
    } else {
      tickets_.erase(std::exchange(calls_[oldest_], call));
      oldest_ = (oldest_ + 1) % kCalls;
    }
    tickets_[call] = ticket;
  }
  /// 0: it is of no command, or was forgotten.
  [[nodiscard]] std::uint64_t ticket_of(std::uint32_t call) const {
    const std::lock_guard lock(mutex_);
    const auto found = tickets_.find(call);
    return found == tickets_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::uint64_t> tickets_;
  std::vector<std::uint32_t> calls_;  ///< a ring, from oldest_ on
  std::size_t oldest_ = 0;
};

}  // namespace troupe::host::cuda
