#include "rank/store/state_io.hpp"

namespace troupe::rank_process {

Result<IoChoice> choose_io(StateIo wanted, bool in_host_memory,
                           std::span<const DirectTrial> trials) {
  if (wanted == StateIo::pinned) return IoChoice{};
  if (wanted == StateIo::automatic && in_host_memory)
    return IoChoice{StateIo::pinned, "the state is in host memory for a partner anyway"};
  for (std::size_t rank = 0; rank < trials.size(); ++rank) {
    const auto& trial = trials[rank];
    if (trial.outcome == DirectTrial::Outcome::direct) continue;
    if (wanted == StateIo::automatic) {
      return IoChoice{StateIo::pinned, trial.outcome == DirectTrial::Outcome::not_direct
                                           ? trial.reason
                                           : "a fault has ended the trial"};
    }
    if (trial.outcome == DirectTrial::Outcome::not_direct) {
      return Error{Errc::invalid, 0,
                   "checkpoint-io = direct: rank " + std::to_string(rank) +
                       " cannot write to checkpoint-dir directly: " + trial.reason +
                       " (auto or pinned can)"};
    }
  }
  return IoChoice{StateIo::direct, {}};
}

}  // namespace troupe::rank_process
