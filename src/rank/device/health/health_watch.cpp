#include "rank/device/health/health_watch.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/core/log.hpp"
#include "rank/device/health/xid.hpp"

namespace troupe::rank_process {

using Clock = std::chrono::steady_clock;

namespace {

/// Between looks, however many events there are.
constexpr auto kLeastPause = std::chrono::milliseconds(500);

}  // namespace

HealthWatch::HealthWatch(std::shared_ptr<const HealthSource> source, Options options, Tell tell)
    : source_(std::move(source)),
      options_(options),
      tell_(std::move(tell)),
      thread_([this] { run(); }) {}

HealthWatch::~HealthWatch() {
  stop();
  thread_.join();
}

void HealthWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
}

bool HealthWatch::stopped() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void HealthWatch::run() {
  const auto& nvml = source_->nvml();
  if (!nvml.ok()) return log::debug("device", "health is not watched: {}", nvml.error().message);
  if (const auto gpu = nvml->find(source_->gpu()); !gpu.ok()) {
    log::debug("device", "health is not watched: {}", gpu.error().message);
    return tell_of_loss(gpu.error());
  }
  std::optional<NvmlEvents> events;
  if (auto heard = NvmlEvents::listen(*nvml, source_->gpu()); heard.ok()) {
    events.emplace(std::move(*heard));
  } else {
    log::debug("device", "health is looked at, and not listened to: {}", heard.error().message);
  }
  while (!stopped()) {
    look(!events || !events->tell_of_memory());
    const auto look_at = Clock::now() + options_.look_every;
    if (events && !listen(*events, look_at)) events.reset();
    if (events) continue;
    std::unique_lock lock(mutex_);
    stopping_changed_.wait_until(lock, look_at, [this] { return stopping_; });
  }
}

bool HealthWatch::listen(NvmlEvents& events, Clock::time_point look_at) {
  const auto soonest = Clock::now() + kLeastPause;
  while (!stopped() && Clock::now() < look_at) {
    auto event = events.wait(kWait);
    if (!event.ok()) {
      log::debug("device", "health: {}", event.error().message);
      tell_of_loss(event.error());
      return false;
    }
    if (!*event) continue;
    const auto processes = (*event)->xid == kXidChannelReset ? events.processes() : 0;
    tell_(std::move(**event), processes);
    look_at = std::min(look_at, soonest);
  }
  return true;
}

void HealthWatch::look(bool counts_memory) {
  const auto health = source_->health();
  if (!health.ok()) return tell_of_loss(health.error());
  for (auto& event : changes_.look(*health, counts_memory)) tell_(std::move(event), 0);
}

void HealthWatch::tell_of_loss(const Error& error) {
  if (error.native == Nvml::kGpuIsLost && !std::exchange(unreachable_, true))
    tell_({0, HealthKind::bus, "the GPU has fallen off the bus", true}, 0);
}

}  // namespace troupe::rank_process
