#pragma once

#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/saved_state.hpp>

#include "rank/net/mpi_session.hpp"
#include "rank/store/generations.hpp"
#include "rank/world/state_keeper.hpp"

namespace troupe::rank {

/// Where the states that `options` speak of lie.
Generations folder_of(const SaveOptions& options);

/// Looks for a saved state on disk that is good as a whole: that of step `wanted`, or with
/// SaveOptions::kNewest the newest; what is damaged costs a line of log and the one before it is
/// taken. All ranks call it and get the same answer; each checks its share of the files. nullopt:
/// nothing has been saved. Errors: io, with what is wrong with each state.
Result<std::optional<SavedState>> find_state(MpiSession& mpi, const Generations& generations,
                                             std::int64_t wanted);

/// The state that partners hold. All ranks call it. Errors: invalid (none is complete).
Result<SavedState> partner_state(MpiSession& mpi, const StateKeeper::Held& held);

/// Loads this rank's part into the checkpoint's buffers and values. All ranks call it. Errors, of
/// this rank alone: invalid (the entries are not those of the checkpoint), io, device_lost, …
Result<void> load_part(const SavedState& state, int part, Checkpoint& checkpoint);

}  // namespace troupe::rank
