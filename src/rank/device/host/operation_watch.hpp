#pragma once

#include <chrono>
#include <cstdint>

#include <troupe/clock.hpp>

namespace troupe::rank_process {

/// Sees that the oldest unanswered operation of a device host is past its deadline. Pure.
class OperationWatch {
 public:
  /// 0: there is no deadline.
  explicit OperationWatch(std::chrono::nanoseconds deadline) : deadline_(deadline) {}

  /// Whether an operation is late now; then it is late again after another `deadline`. `retired`:
  /// all up to this ticket are answered, `submitted`: the newest ticket.
  [[nodiscard]] bool late(std::uint64_t retired, std::uint64_t submitted, TimePoint now) {
    if (deadline_.count() == 0) return false;
    if (retired != oldest_ || retired == submitted) {
      oldest_ = retired;
      since_ = now;
      return false;
    }
    if (now - since_ <= deadline_) return false;
    since_ = now;
    return true;
  }

 private:
  std::chrono::nanoseconds deadline_;
  std::uint64_t oldest_ = ~std::uint64_t{0};
  TimePoint since_{};  ///< it is the oldest
};

}  // namespace troupe::rank_process
