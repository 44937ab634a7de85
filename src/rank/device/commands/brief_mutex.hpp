#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include <troupe/spin.hpp>

namespace troupe::rank_process {

/// A mutex for what mostly takes less time than to fall asleep.
///
/// To give it back is a plain store, where std::mutex has a locked instruction, which waits until
/// the lines that were written under the lock have come from other cores. Nobody is woken: whoever
/// finds it taken looks again, and sleeps between the looks after some.
class BriefMutex {
 public:
  void lock() noexcept {
    for (int looks = 0; !try_lock(); ++looks) {
      if (looks < kLooks) {
        cpu_relax();
      } else {
        std::this_thread::sleep_for(kPause);
      }
    }
  }
  [[nodiscard]] bool try_lock() noexcept {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooks = 32;
  static constexpr std::chrono::microseconds kPause{5};

  alignas(64) std::atomic<bool> taken_{false};
};

}  // namespace troupe::rank_process
