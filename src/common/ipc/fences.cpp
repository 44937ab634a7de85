#include "common/ipc/fences.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace troupe::ipc {
namespace {

bool take_part() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// Whether this process takes part; it must before any of its threads relies on light_fence().
const bool membarrier_works = take_part();

}  // namespace

void take_part_in_fences() noexcept {
  (void)take_part();
}

void light_fence() noexcept {
  if (membarrier_works) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

void heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier_works) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace troupe::ipc
