#include "rank/world/leading.hpp"

#include <string>

#include "common/core/log.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {

std::uint32_t Leading::incarnation_of(int rank) const {
  return parts_.core.mpi().respawns().incarnation_of(rank);
}

bool Leading::learn(int rank, std::uint32_t incarnation) {
  return parts_.core.mpi().respawns().learn(rank, incarnation);
}

void Leading::died(const from_rank::Joined& joined) {
  parts_.core.status().note_death(joined.rank);
  const auto host = parts_.core.mpi().respawns().host_of(joined.rank);
  log::warn("world", "rank {} has died, and is back{}", joined.rank,
            host ? " on " + *host : std::string());
}

void Leading::send(int rank, const from_rank::Joined& joined) {
  parts_.core.send(rank, RankMessage(joined));
}

void Leading::follow(int leader) {
  parts_.core.status().set_leader(leader);
}

void Leading::lead(const Heard& heard, const std::vector<Incarnation>& all,
                   const std::vector<from_rank::Joined>& joined) {
  parts_.leader.emplace(parts_);
  parts_.leader->take_over({.round = heard.round,
                            .epoch = heard.epoch,
                            .excluded = parts_.member.excluded(),
                            .incarnations = all,
                            .joined = joined});
}

std::uint32_t Leading::round() const {
  return parts_.leader->round();
}

void Leading::resign() {
  parts_.leader.reset();
}

void Leading::take_in(const from_rank::Joined& joined) {
  parts_.leader->hear(joined);
}

}  // namespace troupe::rank_process
