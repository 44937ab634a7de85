#pragma once

#include <atomic>
#include <cstdint>

#include <troupe/lib/fault_kind.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::rank_process {

/// Lets a device compute wrong numbers as it was ordered (SilentFault). Any thread.
class SilentFaults {
 public:
  void order(SilentFault fault);
  /// True, once for each order: a bit of the state is to be changed now.
  [[nodiscard]] bool take_flip() noexcept {
    return flips_.load(std::memory_order_relaxed) > 0 && flips_.fetch_sub(1) > 0;
  }
  /// The same for guarded memory.
  [[nodiscard]] bool take_stray() noexcept {
    return strays_.load(std::memory_order_relaxed) > 0 && strays_.fetch_sub(1) > 0;
  }
  /// True: after() has to be called behind each operation.
  [[nodiscard]] bool follows() const noexcept { return follows_.load(std::memory_order_relaxed); }
  /// Behind an operation that was submitted to `device`: changes what it writes, if that was
  /// ordered.
  void after(const detail::CommandView& command, detail::Submitter& device);

 private:
  std::atomic<bool> follows_ = false;
  std::atomic<int> flips_ = 0, strays_ = 0, results_ = 0;
  std::atomic<bool> sick_ = false;
  std::atomic<std::uint64_t> operations_ = 0;
};

}  // namespace troupe::rank_process
