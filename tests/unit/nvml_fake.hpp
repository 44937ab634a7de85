#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace troupe::test {

/// What stands in for NVML and a GPU of which it tells: what this one says, and is to say.
struct FakeNvml {
  std::mutex mutex;  ///< of all that follows
  std::condition_variable changed;
  bool has_events = true;
  std::deque<std::pair<unsigned long long, unsigned long long>> events;  ///< types and data
  int listeners = 0;
  bool lost = false;  ///< the GPU has fallen off the bus
  unsigned pending = 0, failed = 0, recovery_action = 0;
  unsigned long long slowdowns = 0, uncorrected = 1;
  unsigned links = 3;      ///< that are up
  unsigned processes = 0;  ///< on the GPU
  unsigned clock = 1980;   ///< of 1980 MHz

  void raise(unsigned long long type, unsigned long long data = 0) {
    {
      const std::lock_guard lock(mutex);
      events.emplace_back(type, data);
    }
    changed.notify_all();
  }
};
/// Of the module, by this name: the only one in the process.
using FakeNvmlOf = FakeNvml* (*)();
inline constexpr const char* kFakeNvmlOf = "troupe_test_fake_nvml";

}  // namespace troupe::test
