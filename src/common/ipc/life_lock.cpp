#include "common/ipc/life_lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace troupe::ipc {

void LifeLock::init() noexcept {
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&mutex_, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

void LifeLock::hold() noexcept {
  ::pthread_mutex_lock(&mutex_);
}

LifeLock::Wait LifeLock::wait_for_end(std::chrono::nanoseconds timeout) noexcept {
  // The futex word itself, not pthread_mutex_clocklock: the library's checks would end this process
  // over memory that the other one has spoiled. Its layout (owner, waiters and owner-died bits) is
  // the kernel's: see set_robust_list(2).
  auto* const word = reinterpret_cast<std::uint32_t*>(&mutex_.__data.__lock);
  std::atomic_ref<std::uint32_t> state(*word);
  auto seen = state.load();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
  for (bool waited = false;;) {
    if ((seen & FUTEX_OWNER_DIED) != 0 || (seen & FUTEX_TID_MASK) == 0) return Wait::died;
    if (waited) return Wait::time_out;
    if ((seen & FUTEX_WAITERS) == 0 && !state.compare_exchange_strong(seen, seen | FUTEX_WAITERS)) {
      continue;
    }
    ::syscall(SYS_futex, word, FUTEX_WAIT, seen | FUTEX_WAITERS, &limit, nullptr, 0);
    seen = state.load();
    waited = true;
  }
}

}  // namespace troupe::ipc
