#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <troupe/saved_state.hpp>

#include "rank/store/generations.hpp"
#include "rank/store/state_folder.hpp"
#include "rank/store/state_keeper.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// The folder of this rank's node in which a run keeps states, beside the one that all ranks see
/// (SaveOptions::local). The program's thread.
class NearFolder {
 public:
  /// Both outlive this.
  NearFolder(WorldCore& core, const SaveOptions& save) : core_(&core), save_(&save) {}

  /// The states in it, of the run whose states `shared` are; nullopt: there is no such folder.
  [[nodiscard]] std::optional<Generations> states(const Generations& shared) const;
  /// The states that are written there from now on, if any.
  struct Opened {
    std::optional<Generations> states = {};
    bool publishes = false;  ///< this rank makes it visible
  };
  /// All members, which are on these nodes and have parts of so many bytes: the first rank of each
  /// node takes its folder. If one cannot be had nothing is written. Throws CollectiveException for
  /// that, but `again`, later in the run, costs a line of log.
  Opened open(const Generations& shared, std::span<const int> nodes, std::uint64_t part_bytes,
              bool again);
  /// All ranks of the job: the newest step that the run knows to be there, on any of them; -1:
  /// none.
  [[nodiscard]] std::int64_t newest(const StateKeeper* keeper) const;

 private:
  Result<void> take(const Generations& states, std::uint64_t bytes);

  WorldCore* core_;
  const SaveOptions* save_;
  FolderLock lock_;
  bool has_folder_ = false;
  bool failed_ = false;  ///< on some node
};

}  // namespace troupe::rank_process
