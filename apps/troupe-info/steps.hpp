#pragma once

#include <functional>
#include <vector>

#include <troupe/launched_job.hpp>
#include <troupe/world.hpp>

#include "burn_in.hpp"

namespace troupe::info {

/// The steps of a burn-in. After each step every rank knows whether one has failed; then no rank
/// begins another step. All ranks call the same functions in the same order.
class Steps {
 public:
  /// `facts` take the error of this rank, if it has one. Errors of commands before do not count.
  Steps(const Device& device, const LaunchedJob& job, BurnIn& facts);
  /// Runs the step, unless a rank has failed before. True if none has failed after it.
  bool run(const std::function<void()>& step);
  /// Finds out which ranks have lost their device hosts. Such a rank may have no error, for
  /// commands that can go on with another host do; and other ranks may have one.
  void look_for_losses(World& world);
  /// The answer of rank 0.
  [[nodiscard]] bool first_says(bool yes) const;

 private:
  void note(const Error& error);
  /// The recoveries of the world. Where a command has told of a loss before the world has: waits
  /// until all ranks have heard of it, for some seconds at most.
  std::vector<Recovery> heard_of_losses(World& world);
  /// How many ranks say so.
  [[nodiscard]] int count(bool yes) const;

  const Device& device_;
  const LaunchedJob& job_;
  BurnIn& facts_;
  bool go_on_ = true;
  bool loss_ = false;  ///< the error tells of a loss, here or elsewhere
};

}  // namespace troupe::info
