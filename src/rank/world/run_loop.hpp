#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

namespace troupe::rank {

class StateKeeper;
class WorldCore;

/// One World::run: steps and commits, the way back to the last common commit after a fault, and the
/// state beside GPU memory that it begins with and leaves. Lives on the program's thread.
class RunLoop {
 public:
  using StepFunction = std::function<Step(std::int64_t step)>;

  /// Everything must outlive the loop.
  RunLoop(WorldCore& core, Checkpoint& checkpoint, const StepFunction& step,
          const RunOptions& options);
  ~RunLoop();
  RunLoop(const RunLoop&) = delete;
  RunLoop& operator=(const RunLoop&) = delete;

  /// To the end of the run. Throws Exception with what cannot be recovered.
  void run();

 private:
  void check_save_options();
  void begin_keeping();
  void loop();
  /// Loads what was saved, if anything was and this run is to go on from it.
  void restart();
  void adopt(const SavedState& state);
  void attempt();
  /// True if the step that comes next follows a commit.
  [[nodiscard]] bool commit_is_due(std::int64_t step) const;
  void commit(std::int64_t step);
  /// Waits until nothing is under way to disk or to a partner.
  void settle_keeper();
  /// Ends the run on all ranks together.
  void finish();
  /// After the commit of a run that was asked to stop: throws requeue.
  [[noreturn]] void stop(std::int64_t step);
  /// The error of a world that has ended, with what is left to go on from.
  [[nodiscard]] Error rescue(const Error& error);
  /// Takes part in the recovery that is under way, or in several; the step to go on from, -1: the
  /// first.
  std::int64_t recover();
  void restore(std::unique_lock<std::mutex>& lock, std::optional<std::int64_t>& restored);
  /// The world is not in the epoch that the program has acknowledged.
  [[nodiscard]] bool interrupted() const;

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const StepFunction* step_;
  const RunOptions* options_;
  SaveOptions save_;
  StateKeeper* keeper_ = nullptr;  ///< nullptr: the state stays in GPU memory
  bool restarted_ = false;         ///< restart() is done
  std::int64_t first_;             ///< the step that the run began with
  std::int64_t from_;              ///< the step to go on from
  bool stopping_ = false;          ///< the newest commit is the last
};

}  // namespace troupe::rank
