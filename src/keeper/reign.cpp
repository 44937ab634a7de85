#include "keeper/reign.hpp"

#include <algorithm>
#include <utility>

#include "common/keeper/job.hpp"

namespace troupe::keeper {

using namespace council;

namespace {

void insert_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

}  // namespace

void Reign::begin() {
  auto first = parts_.accepted;
  first.number = 0;
  propose(std::move(first));
}

void Reign::propose(Roster roster) {
  roster.term = term_;
  ++roster.number;
  parts_.accepted = std::move(roster);
  parts_.colleagues.own().acknowledged = parts_.accepted.number;
  tell_all(Accept{parts_.accepted});
  count_acceptances();
}

void Reign::count_acceptances() {
  const auto number = parts_.accepted.number;
  if (is_committed() ||
      !parts_.colleagues.are_quorum(
          parts_.accepted, [&](const Colleagues::Peer& one) { return one.acknowledged == number; }))
    return;
  committed_ = number;
  tell_all(Here{term_, committed_});
  parts_.committed();
}

void Reign::hear(int from, const Report& said) {
  if (parts_.accepted.is_lost(from)) {
    parts_.actions.send(from, Expelled{});
  } else if (said.term != term_) {
    parts_.actions.send(from, Accept{parts_.accepted});
  }
}

void Reign::hear(int from, const Accepted& said) {
  if (said.term != term_) return;
  auto& its = parts_.colleagues.at(from);
  its.acknowledged = std::max(its.acknowledged, said.number);
  if (is_committed()) return parts_.actions.send(from, Here{term_, committed_});
  count_acceptances();
}

void Reign::release(int place, std::uint32_t moves, TimePoint now) {
  const int rank = parts_.accepted.rank_at(place);
  if (rank < 0 || parts_.accepted.seats[static_cast<std::size_t>(rank)].moves != moves) return;
  parts_.colleagues.at(place).releases = true;
  (void)judge(now);
}

bool Reign::judge(TimePoint now) {
  auto& colleagues = parts_.colleagues;
  if (!colleagues.are_quorum(parts_.accepted, [&](const Colleagues::Peer& one) {
        return !colleagues.is_dead(one, now);
      }))
    return false;
  tell_all(Here{term_, committed_});
  // A connection that broke may have taken it along.
  if (!is_committed()) tell_all(Accept{parts_.accepted});
  if (!is_committed() || parts_.accepted.over >= 0) return true;
  auto next = with_the_lost(now);
  next.replaceable = ranks_are_replaceable(next);
  seat_anew(next, now);
  if (!next.says_the_same_as(parts_.accepted)) propose(std::move(next));
  return true;
}

Roster Reign::with_the_lost(TimePoint now) const {
  auto roster = parts_.accepted;
  const auto& colleagues = parts_.colleagues;
  for (int place = 0; place < colleagues.places(); ++place) {
    if (place != colleagues.place() && colleagues.is_dead(colleagues.at(place), now))
      insert_sorted(roster.lost, place);
  }
  return roster;
}

/// Gives another place to each rank whose place is lost, or of no use to it.
void Reign::seat_anew(Roster& roster, TimePoint now) {
  for (std::size_t rank = 0; rank < roster.seats.size(); ++rank) {
    auto& seat = roster.seats[rank];
    auto& its = parts_.colleagues.at(seat.place);
    const bool is_lost = roster.is_lost(seat.place);
    if ((!is_lost && !its.releases) || its.state == RankState::ended) continue;
    const int other = seat.moves + 1 < kMostPlaces ? free_place(roster, is_lost, now) : -1;
    if (is_lost && (other < 0 || !parts_.accepted.replaceable)) {
      why_ = "rank " + std::to_string(rank) + " is lost with its node, and " +
             (parts_.accepted.replaceable ? "there is no spare place for it (--spares)"
                                          : "cannot be started again now") +
             ": the job ends";
      roster.over = kExitRequeue;
      return;
    }
    its.releases = false;
    if (other >= 0) {
      if (!is_lost) insert_sorted(roster.spent, seat.place);
      seat = {other, seat.moves + 1, seat.deaths + its.deaths + 1};
      parts_.colleagues.at(other).deaths = 0;
    } else if (seat.place == parts_.colleagues.place()) {
      parts_.actions.keep_rank();
    } else {
      parts_.actions.send(seat.place, NoSpare{});
    }
  }
}

bool Reign::ranks_are_replaceable(const Roster& roster) const {
  return std::all_of(roster.seats.begin(), roster.seats.end(), [&](const Seat& seat) {
    const auto& its = parts_.colleagues.at(seat.place);
    // A leader that has just begun knows of lost ranks only what keepers have agreed on before.
    const bool known = seat.place == parts_.colleagues.place() || its.reported;
    switch (known ? its.state : RankState::none) {
      case RankState::replaceable: return true;
      case RankState::none: return roster.replaceable;
      case RankState::starting: return seat.moves > 0 && roster.replaceable;
      case RankState::irreplaceable:
      case RankState::ended: return false;
    }
    return false;
  });
}

int Reign::free_place(const Roster& roster, bool is_lost, TimePoint now) const {
  for (int place = 0; place < parts_.colleagues.places(); ++place) {
    const auto& its = parts_.colleagues.at(place);
    const bool lives = place == parts_.colleagues.place() ||
                       (!its.closed && its.reported && now - its.heard < 4 * parts_.beat);
    if (!is_lost && parts_.colleagues.is_refuge(place)) break;
    if (lives && !roster.is_lost(place) && !roster.is_spent(place) && roster.rank_at(place) < 0)
      return place;
  }
  return -1;
}

std::optional<int> Reign::end_of_job() const {
  if (!is_committed()) return std::nullopt;
  int status = 0;
  for (const auto& seat : parts_.accepted.seats) {
    const auto& its = parts_.colleagues.at(seat.place);
    if (its.state != RankState::ended) return std::nullopt;
    if (status == 0) status = its.status;
  }
  return status;
}

void Reign::tell_all(const CouncilMessage& message) {
  for (int place = 0; place < parts_.colleagues.places(); ++place) {
    if (place != parts_.colleagues.place() && !parts_.accepted.is_lost(place))
      parts_.actions.send(place, message);
  }
}

}  // namespace troupe::keeper
