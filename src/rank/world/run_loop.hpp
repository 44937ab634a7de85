#pragma once

#include <cstdint>
#include <functional>

#include <troupe/checkpoint.hpp>
#include <troupe/world.hpp>

namespace troupe::rank {

class WorldCore;

/// One World::run: steps and commits, and the way back to the last common commit after a fault.
/// Lives on the program's thread.
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
  void attempt(std::int64_t from);
  void commit(std::int64_t step);
  void commit_first(std::int64_t step);
  void finish();
  /// Takes part in the recovery that is under way, or in several; the step to go on from, -1: the
  /// first.
  std::int64_t recover();
  /// The world is not in the epoch that the program has acknowledged.
  [[nodiscard]] bool interrupted() const;

  WorldCore* core_;
  Checkpoint* checkpoint_;
  const StepFunction* step_;
  const RunOptions* options_;
};

}  // namespace troupe::rank
