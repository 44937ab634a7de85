#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <troupe/troupe.hpp>

#include "options.hpp"

namespace troupe::drill {

/// One repetition of an attack; the same on all ranks.
struct Outcome {
  std::vector<Recovery> recoveries;
  /// From the order of the (first) fault until the last rank has downloaded and checked an
  /// all_reduce in the world that has overcome all of it. Between nodes as exact as a barrier.
  double wall_ms = 0;
  std::int64_t failed_commands = 0;  ///< all_reduces whose futures failed, over all ranks
  bool kept_intact = true;           ///< on every rank the kept buffer is bit for bit what it was

  /// What the recoveries add up to: times and losses of each epoch once, its slowest detection.
  [[nodiscard]] Recovery sum() const;
};

/// All ranks: an all_reduce whose result is known. Throws Exception (library) if it is another one.
void reduce_and_verify(World& world, Device& device, const GpuRef<double>& stream);

/// Lets device hosts suffer faults while all ranks stream all_reduces, and watches the world
/// recover. All ranks call these functions alike.
class Drill {
 public:
  /// Throws Exception (out_of_memory).
  Drill(Runtime& runtime, const Options& options);

  /// Waits until the world is ready for the next fault. Throws Exception (timeout) if the standbys
  /// do not come up.
  void settle();
  /// Throws Exception if the world does not recover or computes wrongly. In a world that shrinks it
  /// goes on until the lost ranks are back.
  Outcome suffer(const Attack& attack);
  /// How they came back, the last time: the wall clock is then the pause in the step loop. It began
  /// with the fault if they were back before the smaller world had done a step.
  [[nodiscard]] const Outcome& came_back() const { return came_back_; }

 private:
  using Clock = std::chrono::steady_clock;

  void suffer_outside_run();
  void suffer_in_run();
  Epoch active_epoch();
  Step step(std::int64_t number);
  /// After everything is overcome: done when all ranks are in the world.
  Step wait_for_all();
  void take_over(const SavedState& state);
  void order_fault();
  void stream();
  void reduce_and_verify();
  void keep();
  [[nodiscard]] bool kept_is_intact();

  World& world_;
  Device& device_;
  const Options& options_;
  const bool is_victim_, is_second_;
  const bool has_standby_;
  const std::chrono::nanoseconds fault_limit_;
  const int all_ranks_;
  GpuRef<double> stream_;
  GpuRef<float> kept_;
  std::vector<float> kept_values_;

  // The repetition under way:
  memory::FaultKind kind_{};
  std::size_t known_ = 0, expected_ = 0;  ///< recoveries before it and after it
  std::int64_t failed_ = 0;
  Clock::time_point deadline_{}, verified_{};
  std::optional<Clock::time_point> ordered_;
  Clock::time_point streamed_{};     ///< the last time that all went well
  Clock::duration longest_pause_{};  ///< that a return was part of
  bool goes_out_ = false;            ///< this rank is out of the world for a while
  std::int64_t failed_before_ = 0;   ///< commands until then
  Outcome came_back_;
};

}  // namespace troupe::drill
