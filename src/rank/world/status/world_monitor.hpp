#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include <troupe/error.hpp>

namespace troupe::rank_process {

/// What has ended the world: thrown on all ranks.
class WorldStopped : public CollectiveException {
 public:
  using CollectiveException::CollectiveException;
};

/// A rank has left a run by an error of its own, which it tells itself: thrown on the others.
class RunLeft : public CollectiveException {
 public:
  using CollectiveException::CollectiveException;
};

inline const Error kWorldReformed{Errc::world_reformed, 0, "the world is re-formed"};

/// What threads of a rank wait for: the epoch, the end of the world, the end of a run. The parts of
/// WorldStatus share it, and its lock.
struct WorldMonitor {
  struct Left {
    std::int64_t run;
    Error error;
  };

  mutable std::mutex mutex;
  std::condition_variable changed;

  // With the mutex held.

  bool active = false;           ///< the newest epoch has begun, and has not ended
  std::uint32_t epoch = 0;       ///< the newest
  std::optional<Error> stopped;  ///< what has ended the world
  std::uint32_t runs = 0;        ///< that have begun here
  std::uint32_t deaths = 0;      ///< of ranks that this one has heard of
  std::uint32_t finished = 0;    ///< runs that have ended on all ranks
  std::optional<Left> left;      ///< the newest run that a rank has left by an error of its own

  [[nodiscard]] bool has_new_epoch() const {
    return active && epoch != program_epoch.load(std::memory_order_relaxed);
  }
  /// A rank has left the newest run.
  [[nodiscard]] bool is_left() const { return left && left->run + 1 == runs; }
  /// The run cannot go on as it is.
  [[nodiscard]] bool is_interrupted() const {
    return !active || epoch != program_epoch.load(std::memory_order_relaxed) || is_left();
  }
  void throw_if_stopped() const {
    if (stopped) throw WorldStopped(*stopped);
  }
  void throw_if_ended() const {
    throw_if_stopped();
    if (is_left()) throw RunLeft(left->error);
  }

  // Any thread.

  std::atomic<std::uint32_t> program_epoch{0};  ///< that the program has acknowledged
  std::atomic<bool> begun{false};               ///< a run, or several
  std::atomic<bool> in_run{false};              ///< rollback is the program's business
};

}  // namespace troupe::rank_process
