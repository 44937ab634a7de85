#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>

#include <troupe/clock.hpp>

namespace troupe {

/// How a turn ended.
enum class Turn : std::uint8_t {
  idle,   ///< nothing to do: somebody will submit it again. It must not be touched any more
  again,  ///< there is more to do: run it again after the others
  wait,   ///< as `again`, but another thread must first finish a hand-over: let it have the core
  ended   ///< it has ended and may be gone
};

/// Something that has turns; a scheduler runs it in one thread at a time.
class Schedulable {
 public:
  /// Handles at most `budget` messages. Called by the scheduler only, once per submit() and per
  /// `again`.
  virtual Turn run(int budget) noexcept = 0;

  Schedulable* next_in_queue = nullptr;  ///< the scheduler's own, while it is submitted

 protected:
  ~Schedulable() = default;
};

/// Names a pending timer; those due at the same time fire in the order in which they were made.
struct TimerId {
  TimePoint due{};
  std::uint64_t sequence = 0;
  friend auto operator<=>(const TimerId&, const TimerId&) = default;
};

/// What a timer does when it is due. Runs on a scheduler thread and must not block. Destroyed
/// unfired if the timer is cancelled or the scheduler stops.
class TimerTask {
 public:
  virtual ~TimerTask() = default;
  virtual void fire(const TimerId& self) noexcept = 0;
};

/// Gives turns to actors and fires timers. Serves one ActorSystem. All functions may be called from
/// any thread unless they say otherwise.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  [[nodiscard]] virtual const Clock& clock() const noexcept = 0;

  /// Queues `job` for a turn. It must not be queued already, and must live until that turn.
  virtual void submit(Schedulable& job) noexcept = 0;

  /// Asked in a turn that has run out of work: whether it may keep its thread for some microseconds
  /// to see if more comes.
  [[nodiscard]] virtual bool may_linger() const noexcept { return false; }

  /// Fires `task` once, `delay` from now; nothing if there are too many timers or it has been
  /// stopped.
  virtual std::optional<TimerId> schedule(std::chrono::nanoseconds delay,
                                          std::unique_ptr<TimerTask> task) = 0;
  /// False if the timer has fired, is just firing, or was cancelled.
  virtual bool cancel(const TimerId& timer) noexcept = 0;

  /// Waits (or, stepped, works) until nothing is runnable, at most `limit`; true if that was
  /// reached. Not from a handler.
  virtual bool drain(std::chrono::nanoseconds limit) = 0;

  /// Ends all threads and drops all timers; nothing may be submitted any more. Not from a handler.
  virtual void stop() noexcept = 0;
};

}  // namespace troupe
