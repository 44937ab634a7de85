#include "rank/world/leadership.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {

Leadership::Leadership(WorldParts& parts)
    : parts_(parts), settled_(static_cast<std::size_t>(parts.core.mpi().size()), true) {
  if (parts.core.mpi().respawns().incarnation() > 0)
    settled_[static_cast<std::size_t>(parts.rank())] = false;
}

void Leadership::begin() {
  auto& core = parts_.core;
  const auto incarnation = core.mpi().respawns().incarnation();
  if (incarnation == 0) {
    if (parts_.leader) parts_.leader->start();
    return;
  }
  for (int rank = 0; rank < core.mpi().size(); ++rank) {
    if (rank != parts_.rank())
      core.send(rank, RankMessage(from_rank::Joined{parts_.rank(), incarnation}));
  }
  consider();
}

bool Leadership::learn(std::int32_t rank, std::uint32_t incarnation) {
  if (rank == parts_.rank() || !parts_.core.mpi().respawns().learn(rank, incarnation)) return false;
  if (incarnation == 0) return false;
  settled_[static_cast<std::size_t>(rank)] = false;
  parts_.core.status().note_death(rank);
  return true;
}

void Leadership::on(const from_rank::Joined& joined) {
  if (joined.rank < 0 || joined.rank >= parts_.core.mpi().size()) return;
  if (!learn(joined.rank, joined.incarnation)) return;
  // It may have started after this rank said so.
  if (!settled_[static_cast<std::size_t>(parts_.rank())]) {
    parts_.core.send(joined.rank, RankMessage(from_rank::Joined{
                                      parts_.rank(), parts_.core.mpi().respawns().incarnation()}));
  }
  const auto host = parts_.core.mpi().respawns().host_of(joined.rank);
  log::warn("world", "rank {} has died, and is back{}", joined.rank,
            host ? " on " + *host : std::string());
  if (parts_.leader) {
    parts_.leader->hear(joined);
  } else {
    consider();
  }
}

void Leadership::learn(const from_supervisor::Order& order) {
  for (const auto& [rank, number] : order.incarnations) {
    // A rank that is new itself hears of deaths that are long past: those ranks are in the world.
    auto& respawns = parts_.core.mpi().respawns();
    if (rank != parts_.rank() && respawns.incarnation_of(rank) == UINT32_MAX) {
      (void)respawns.learn(rank, number);
    } else {
      (void)learn(rank, number);
    }
  }
  // Who is not named has never died.
  for (int rank = 0; rank < parts_.core.mpi().size(); ++rank) {
    if (rank != parts_.rank()) (void)parts_.core.mpi().respawns().learn(rank, 0);
  }
  parts_.core.status().set_leader(order.leader);
}

std::vector<Incarnation> Leadership::incarnations() const {
  std::vector<Incarnation> all;
  const auto& respawns = parts_.core.mpi().respawns();
  for (int rank = 0; rank < parts_.core.mpi().size(); ++rank) {
    const auto number =
        rank == parts_.rank() ? respawns.incarnation() : respawns.incarnation_of(rank);
    if (number > 0 && number != UINT32_MAX) all.push_back({rank, number});
  }
  return all;
}

void Leadership::consider() {
  auto& core = parts_.core;
  if (settled_[static_cast<std::size_t>(core.status().leader())]) return;
  const auto first = std::find(settled_.begin(), settled_.end(), true);
  // Where all have died there is nothing to go on with: they begin anew.
  const auto leads = first != settled_.end() ? static_cast<int>(first - settled_.begin()) : 0;
  core.status().set_leader(leads);
  if (leads != parts_.rank()) return;
  const auto& member = parts_.member;
  parts_.leader.emplace(parts_);
  WorldSupervisor::Heritage heritage{.round = member.round(),
                                     .epoch = member.epoch(),
                                     .excluded = member.excluded(),
                                     .incarnations = incarnations()};
  for (const auto& [rank, number] : heritage.incarnations) {
    if (!settled_[static_cast<std::size_t>(rank)]) heritage.joined.push_back({rank, number});
  }
  parts_.leader->take_over(heritage);
}

std::vector<std::int32_t> Leadership::settle() {
  std::vector<std::int32_t> back;
  for (std::size_t rank = 0; rank < settled_.size(); ++rank) {
    const auto number = static_cast<std::int32_t>(rank);
    if (!settled_[rank] && number != parts_.rank()) back.push_back(number);
    settled_[rank] = true;
  }
  return back;
}

}  // namespace troupe::rank_process
