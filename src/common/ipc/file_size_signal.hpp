#pragma once

#include <signal.h>

#include <ctime>

namespace troupe::ipc {

/// Without it a write beyond RLIMIT_FSIZE would end the process: while it lives the signal that the
/// kernel sends to the writing thread is held back, and then dropped.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    const timespec at_once{};
    while (::sigtimedwait(&signal_, nullptr, &at_once) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
};

}  // namespace troupe::ipc
