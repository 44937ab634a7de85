#include "rank/run/near_folder.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/run/restart.hpp"

namespace troupe::rank_process {

std::optional<Generations> NearFolder::states(const Generations& shared) const {
  if (save_->local.empty()) return std::nullopt;
  Generations states(near_folder_of(*save_), shared.fingerprint(), shared.ends());
  if (save_->restart == SaveOptions::kNever) states.begin_anew();
  return states;
}

NearFolder::Opened NearFolder::open(const Generations& shared, std::span<const int> nodes,
                                    std::uint64_t part_bytes, bool again) {
  const auto found = states(shared);
  if (!found) return {};
  const auto& members = core_->members();
  const auto here = nodes[static_cast<std::size_t>(members.rank())];
  const bool first = std::find(nodes.begin(), nodes.end(), here) - nodes.begin() == members.rank();
  std::uint64_t bytes = 0;
  const auto parts = members.gather(part_bytes);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (nodes[rank] == here) bytes += save_->partner ? 2 * parts[rank] : parts[rank];
  }
  Result<void> outcome;
  if (failed_) outcome = Error{Errc::io, 0, "a folder could not be had before"};
  if (outcome.ok() && first && !has_folder_) outcome = take(*found, bytes);
  if (first) core_->history().near_folders.insert(found->base());
  const auto agreed = members.agree(outcome);
  if (agreed.ok()) return {found, first};
  if (!again) throw CollectiveException(agreed.error());
  if (members.rank() == 0 && !failed_)
    log::warn("checkpoint", "no states go to checkpoint-local from now on: {}",
              agreed.error().message);
  failed_ = true;
  return {};
}

Result<void> NearFolder::take(const Generations& states, std::uint64_t bytes) {
  auto lock = FolderLock::take(states.base(), this_process(), "checkpoint-local");
  if (!lock) return lock.error();
  lock_ = std::move(*lock);
  has_folder_ = true;
  if (auto prepared = states.prepare(); !prepared) return prepared;
  return check_room(states.folder(), bytes, "checkpoint-local");
}

std::int64_t NearFolder::newest(const StateKeeper* keeper) const {
  if (save_->local.empty()) return -1;
  const auto mine = std::max(core_->history().from_nodes, keeper != nullptr ? keeper->near() : -1);
  const auto all = core_->mpi().everyone().gather(mine);
  return *std::max_element(all.begin(), all.end());
}

}  // namespace troupe::rank_process
