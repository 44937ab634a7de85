#pragma once

#include <troupe/error.hpp>

#include "rank/world/world_core.hpp"

/// What World::run asks of this rank's own commands, and what it makes of their errors. The
/// program's thread.
namespace troupe::rank_process {

/// The world is not in the epoch that the program has acknowledged, or a rank has left the run.
[[nodiscard]] bool is_interrupted(WorldCore& core);
/// Throws what the steps have left behind that nobody has taken.
void throw_error(WorldCore& core);
/// Until everything that was submitted so far has ended. Errors: of the first of it that failed or
/// was lost; world_reformed.
[[nodiscard]] Result<void> settle_commands(WorldCore& core);

/// The world has ended, or is about to: on all ranks alike.
[[nodiscard]] inline bool ends_the_world(Errc code) noexcept {
  return code == Errc::budget_exhausted || code == Errc::device_failed;
}
/// What is overcome by going back to the last commit.
[[nodiscard]] bool is_by_fault(WorldCore& core, Errc code);
/// The error of the exception that is being handled.
[[nodiscard]] Error thrown();

}  // namespace troupe::rank_process
