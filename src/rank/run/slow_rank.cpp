#include "rank/run/slow_rank.hpp"

#include <algorithm>
#include <thread>

#include "common/core/log.hpp"
#include "rank/protocol/slow_ranks.hpp"
#include "rank/run/corruptions.hpp"

namespace troupe::rank_process {

void SlowRank::look() {
  const auto found = core_->status().slowness().take();
  if (!found) return;
  const auto health = core_->device().health();
  const auto place = place_of(*core_);
  const std::string gpu = place.gpu;
  log::warn("world", "rank {} ({}host {}) is slow: {}", core_->mpi().rank(),
            gpu.empty() ? "" : gpu + ", ", place.host,
            in_words(*found, health.ok() ? *health : GpuHealth()));
  if (core_->options().leaves_slow)
    core_->device().inject_health(
        {0, HealthKind::slowdown, "its rank is slower than the others", true});
}

void SlowRank::hold_up_if_ordered() {
  if (!core_->device().silent_faults().is_slow()) return;
  const auto read = [this] {
    return PaceMeter::read(core_->device().flight().times(), SteadyClock::time());
  };
  core_->wait_done();
  const auto now = read();
  const auto own = since_ ? now.time - since_->time - (now.waited - since_->waited)
                          : std::chrono::nanoseconds(0);
  std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(kTimes * own, kLeast, kMost));
  since_ = read();
}

}  // namespace troupe::rank_process
