#include "common/ipc/shared_counter.hpp"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace troupe::ipc {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// std::atomic::wait() is for the threads of one process.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, timeout, nullptr,
            0);
}

}  // namespace

void SharedCounter::advance() noexcept {
  value_.fetch_add(1);
  futex(value_, FUTEX_WAKE, INT_MAX, nullptr);
}

std::uint32_t SharedCounter::wait_beyond(std::uint32_t seen,
                                         std::chrono::nanoseconds timeout) noexcept {
  if (const auto now = value(); now != seen) return now;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
  futex(value_, FUTEX_WAIT, seen, &limit);
  return value();
}

}  // namespace troupe::ipc
