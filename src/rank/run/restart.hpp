#pragma once

#include <filesystem>
#include <optional>

#include <troupe/checkpoint.hpp>
#include <troupe/saved_state.hpp>

#include "rank/net/host_group.hpp"
#include "rank/store/direct_io.hpp"
#include "rank/store/generations.hpp"

namespace troupe::rank_process {

/// What `options` leave open comes from the program's own.
SaveOptions with_defaults(SaveOptions options, const SaveOptions& program);

/// Where the states that `options` speak of lie, and where on a node.
std::filesystem::path folder_of(const SaveOptions& options);
std::filesystem::path near_folder_of(const SaveOptions& options);

/// The fingerprint of a run with these options, with what their input files hold. Errors: io.
Result<Fingerprint> fingerprint_of(const SaveOptions& options);

/// The states that `options` speak of, of the run behind those that have ended so. All of the group
/// call it: the fingerprint is that of the first. Errors, the same on all: io (an input file cannot
/// be read).
Result<Generations> states_of(const HostGroup& group, const SaveOptions& options, const Ends& ends);

/// The same of the newest run that has left a state. All of the group call it.
Result<Generations> newest_states_of(const HostGroup& group, const SaveOptions& options);

/// Looks for a saved state on disk that is good as a whole: that of step `wanted`, or with
/// SaveOptions::kNewest the newest; what is damaged costs a line of log and the one before it is
/// taken. All of the group call it and get the same answer; each checks its share of the files.
/// nullopt: nothing has been saved. Errors: io, with what is wrong with each state; invalid, if the
/// state is of another problem: its fingerprint is not that of `generations` or, where as many
/// ranks have saved it and the run is under way (`in_run`), its runs before have ended with other
/// steps.
Result<std::optional<SavedState>> find_state(const HostGroup& group, const Generations& generations,
                                             std::int64_t wanted, bool in_run);

/// The same of the states in the nodes' folders: the newest that is complete over all nodes, or
/// that of step `wanted`. `node` is that of this rank. All of the group call it, and keep to what
/// MemoryState wants. Errors: invalid, as above.
Result<std::optional<SavedState>> find_near(const HostGroup& group, int node,
                                            const Generations& near, std::int64_t wanted,
                                            bool in_run);

/// A saved state to go on from, and which levels have it.
struct FoundState {
  std::optional<SavedState> state = {};  ///< nullopt: nothing has been saved
  bool on_nodes = false, on_disk = false;
};

/// The newest state that is good as a whole, or that of step `wanted`, of both levels: the nodes'
/// folders (`near`; nullopt: there are none) and the shared one. Of the same step the nodes' is
/// taken, which is nearer. All of the group call it, as find_near(). Errors: those of find_state().
Result<FoundState> find_on_levels(const HostGroup& group, int node, const Generations& shared,
                                  const std::optional<Generations>& near, std::int64_t wanted,
                                  bool in_run);

/// What has been loaded, and how it came.
struct Loaded {
  std::uint64_t bytes = 0;
  StateIo io = StateIo::pinned;
};

/// Loads a part into the checkpoint's buffers and values: with `direct` buffers straight from disk,
/// where the state is there. All ranks call it. Errors, of this rank alone: invalid (the entries
/// are not those of the checkpoint, a checksum is wrong), io, device_lost, …
Result<Loaded> load_part(const SavedState& state, int part, Checkpoint& checkpoint,
                         DirectIo* direct = nullptr);

}  // namespace troupe::rank_process
