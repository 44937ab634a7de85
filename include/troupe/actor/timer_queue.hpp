#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <troupe/actor/scheduler.hpp>

namespace troupe {

/// Pending timers in the order in which they fire. Cancelling removes at once, so the bound is one
/// on living timers. Not synchronised.
class TimerQueue {
 public:
  static constexpr std::size_t kMaxTimers = std::size_t{1} << 20;

  /// Nothing if kMaxTimers are pending. A delay below zero means now, one without end is cut off.
  std::optional<TimerId> add(TimePoint now, std::chrono::nanoseconds delay,
                             std::unique_ptr<TimerTask> task) {
    if (tasks_.size() >= kMaxTimers) return std::nullopt;
    if (delay < std::chrono::nanoseconds::zero()) delay = std::chrono::nanoseconds::zero();
    const auto due = delay > TimePoint::max() - now ? TimePoint::max() : now + delay;
    const TimerId id{due, ++last_sequence_};
    tasks_.emplace(id, std::move(task));
    return id;
  }

  /// The task, so that the caller can destroy it outside its lock; null if it is not pending.
  std::unique_ptr<TimerTask> remove(const TimerId& id) {
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) return nullptr;
    auto task = std::move(found->second);
    tasks_.erase(found);
    return task;
  }

  /// A timer taken out of the queue, to be fired without the caller's lock.
  struct Due {
    TimerId id;
    std::unique_ptr<TimerTask> task;
    void fire() const noexcept { task->fire(id); }
  };
  /// The first timer that is due at `now`; nothing if there is none.
  std::optional<Due> pop_due(TimePoint now) {
    if (tasks_.empty() || tasks_.begin()->first.due > now) return std::nullopt;
    auto first = tasks_.extract(tasks_.begin());
    return Due{first.key(), std::move(first.mapped())};
  }

  [[nodiscard]] std::optional<TimePoint> next_due() const {
    if (tasks_.empty()) return std::nullopt;
    return tasks_.begin()->first.due;
  }

  /// All pending tasks, unfired.
  std::map<TimerId, std::unique_ptr<TimerTask>> clear() { return std::exchange(tasks_, {}); }

 private:
  std::map<TimerId, std::unique_ptr<TimerTask>> tasks_;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace troupe
