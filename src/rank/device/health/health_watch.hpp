#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "rank/device/health/health_changes.hpp"
#include "rank/device/health/health_source.hpp"
#include "rank/device/health/nvml_events.hpp"

namespace troupe::rank_process {

/// Watches the health of a GPU, on a thread of its own: what NVML tells as it happens, and what a
/// look at the GPU's state finds, which follows every event and comes now and then. Where NVML, or
/// the GPU in it, is not there, nothing is watched; where it has no events, looks alone are taken.
class HealthWatch {
 public:
  struct Options {
    std::chrono::nanoseconds look_every = std::chrono::seconds(5);
  };
  /// Called on the watch's thread. `processes` compute on the GPU when a channel of one of them was
  /// reset (Xid 43); 0: not known, or something else has happened.
  using Tell = std::function<void(HealthEvent, unsigned processes)>;

  HealthWatch(std::shared_ptr<const HealthSource> source, Options options, Tell tell);
  /// No event is told any more once this returns; it takes kWait and the time of a look at most.
  ~HealthWatch();
  HealthWatch(const HealthWatch&) = delete;
  HealthWatch& operator=(const HealthWatch&) = delete;

  /// Ends the watch, and does not wait for that. Any thread.
  void stop();

  /// How long NVML is waited in, which cannot be woken.
  static constexpr auto kWait = std::chrono::milliseconds(100);

 private:
  void run();
  void look(bool counts_memory);
  /// If that is what the error says.
  void tell_of_loss(const Error& error);
  /// Until a look is due, which an event may hasten, or the watch ends. False: no more events come.
  bool listen(NvmlEvents& events, std::chrono::steady_clock::time_point look_at);
  [[nodiscard]] bool stopped();

  std::shared_ptr<const HealthSource> source_;
  Options options_;
  Tell tell_;
  HealthChanges changes_;
  bool unreachable_ = false;  ///< what cannot be looked at is told once
  std::mutex mutex_;
  std::condition_variable stopping_changed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
