#pragma once

#include <atomic>
#include <cstdint>

#include <troupe/lib/fault_kind.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::rank_process {

/// Lets a device compute wrong numbers, or its rank be slow, as it was ordered (SilentFault). Any
/// thread.
class SilentFaults {
 public:
  void order(SilentFault fault);
  /// True, once for each order: a bit of the state is to be changed now.
  [[nodiscard]] bool take_flip() noexcept {
    return flips_.load(std::memory_order_relaxed) > 0 && flips_.fetch_sub(1) > 0;
  }
  /// True until take_stray() is called, for each order: memory that no command is to write is to be
  /// changed, as soon as there is any that is looked at.
  [[nodiscard]] bool stray_is_ordered() const noexcept {
    return strays_.load(std::memory_order_relaxed) > 0;
  }
  void take_stray() noexcept { strays_.fetch_sub(1); }
  /// True: each step of a run is to take longer.
  [[nodiscard]] bool is_slow() const noexcept { return slow_.load(std::memory_order_relaxed); }
  /// True: after() has to be called behind each operation.
  [[nodiscard]] bool follows() const noexcept { return follows_.load(std::memory_order_relaxed); }
  /// Behind an operation that was submitted to `device`: changes what it writes, if that was
  /// ordered.
  void after(const detail::CommandView& command, detail::Submitter& device);

 private:
  std::atomic<bool> follows_ = false;
  std::atomic<int> flips_ = 0, strays_ = 0, results_ = 0;
  std::atomic<bool> sick_ = false, slow_ = false;
  std::atomic<std::uint64_t> operations_ = 0;
};

}  // namespace troupe::rank_process
