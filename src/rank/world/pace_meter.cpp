#include "rank/world/pace_meter.hpp"

#include <algorithm>

namespace troupe::rank_process {
namespace {

std::int64_t microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

}  // namespace

PaceMeter::Reading PaceMeter::read(const wire::HostTimes& times, TimePoint now) {
  const auto get = [](const std::atomic<std::uint64_t>& counter) {
    return std::chrono::nanoseconds(counter.load(std::memory_order_relaxed));
  };
  return {now, get(times.in_collectives) + get(times.meeting), get(times.idle),
          times.collectives.load(std::memory_order_relaxed)};
}

std::optional<RankPace> PaceMeter::at_commit(std::uint32_t epoch, std::uint32_t run,
                                             const Reading& now) {
  const bool goes_on = intervals_ >= 0 && epoch == epoch_ && run == run_;
  if (goes_on && (++intervals_ < kLeastIntervals || now.time - begin_.time < kLeastTime))
    return std::nullopt;
  const auto begin = std::exchange(begin_, now);
  intervals_ = 0;
  epoch_ = epoch;
  run_ = run;
  if (!goes_on) return std::nullopt;
  const auto wall = now.time - begin.time;
  // Collectives that are sampled, or that overlap, may seem to take longer than there was.
  const auto own = wall - std::clamp<std::chrono::nanoseconds>(now.waited - begin.waited,
                                                               std::chrono::nanoseconds(0), wall);
  return RankPace{.wall_us = microseconds(wall),
                  .own_us = microseconds(own),
                  .idle_us = microseconds(std::min(now.idle - begin.idle, own)),
                  .collectives = static_cast<std::int64_t>(now.collectives - begin.collectives)};
}

}  // namespace troupe::rank_process
