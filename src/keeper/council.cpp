#include "keeper/council.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "common/keeper/job.hpp"

namespace troupe::keeper {

using namespace council;

namespace {

constexpr std::chrono::nanoseconds kLeastBeat = std::chrono::milliseconds(5);
constexpr std::chrono::nanoseconds kMostBeat = std::chrono::seconds(1);
using Ending = Council::Actions::Ending;

constexpr const char* kTakenForLost = "the others have taken this place for lost: it ends";

void insert_sorted(std::vector<std::int32_t>& list, std::int32_t value) {
  const auto at = std::lower_bound(list.begin(), list.end(), value);
  if (at == list.end() || *at != value) list.insert(at, value);
}

}  // namespace

Council::Council(const Options& options, Actions& actions)
    : options_(options),
      actions_(&actions),
      beat_(std::clamp(std::min(options.silence / 8, options.wait / 4), kLeastBeat, kMostBeat)),
      peers_(static_cast<std::size_t>(options.places)) {
  for (int rank = 0; rank < options.ranks; ++rank) accepted_.seats.push_back({rank, 0});
  applied_ = accepted_;
}

void Council::begin(TimePoint now) {
  for (auto& one : peers_) one.heard = now;
  last_tick_ = probed_ = now;
  without_ = now;
  look_at(0, now);
}

void Council::receive(int from, const CouncilMessage& message, TimePoint now) {
  if (over_ || from < 0 || from >= options_.places || from == options_.place) return;
  peer(from).heard = now;
  peer(from).closed.reset();
  std::visit([&](const auto& said) { on(from, said, now); }, message);
}

void Council::closed(int place, TimePoint now) {
  if (over_ || place == options_.place) return;
  auto& its = peer(place);
  if (!its.closed) its.closed = now;
  its.reported.reset();
  if (role_ == Role::looking && leader_ == place) look_on(now);
}

void Council::tick(TimePoint now) {
  if (over_) return;
  if (now - std::exchange(last_tick_, now) > options_.silence / 2) {
    // It is this process that was away: the others are heard once more first.
    for (auto& one : peers_) {
      one.heard = now;
      if (one.closed) one.closed = now;
    }
    if (without_) without_ = now;
    turned_ = now;
  }
  switch (role_) {
    case Role::leading: return judge(now);
    case Role::following:
      if (is_dead(peer(leader_), now)) {
        look_on(now);
      } else {
        report();
      }
      break;
    case Role::attached:
      if (is_dead(peer(leader_), now)) {
        look_on(now);
      } else {
        report();
      }
      break;
    case Role::preparing:
      if (now - turned_ > options_.wait) give_up_leading(now);
      break;
    case Role::looking:
      if (leader_ != options_.place) {
        report();
        if (now - turned_ > options_.wait) look_on(now);
        break;
      }
      // A lower one that was out of reach may be back.
      if (now - probed_ > options_.wait) {
        probed_ = now;
        for (int place = 0; place < options_.place; ++place) {
          if (!applied_.is_lost(place)) actions_->send(place, own_report(0));
        }
      }
      try_to_lead(now);
      break;
  }
  if (!over_ && without_ && now - *without_ > 2 * (options_.silence + options_.wait)) {
    over_ = true;
    if (own().state == RankState::ended) return actions_->end(own().status, "", Ending::place);
    actions_->end(kExitRequeue, "cut off from more than half of the job: this place ends",
                  Ending::place);
  }
}

void Council::set_state(RankState state, int status, TimePoint now) {
  if (over_) return;
  auto& its = peer(options_.place);
  its.state = state;
  its.status = status;
  its.heard = now;
  if (role_ == Role::leading) {
    look_for_the_end();
  } else if (role_ == Role::following) {
    report();
  }
}

void Council::release(TimePoint now) {
  if (over_) return;
  peer(options_.place).releases = true;
  if (role_ == Role::leading) return judge(now);
  report();
}

void Council::abort(int status, const std::string& why, TimePoint) {
  if (std::exchange(over_, true)) return;
  if (role_ == Role::leading) {
    tell_all(Abort{status, options_.place});
  } else if (leader_ != options_.place) {
    actions_->send(leader_, Abort{status, options_.place});
  }
  actions_->end(status, why, Ending::job);
}

// Reports

void Council::on(int from, const Report& said, TimePoint now) {
  auto& its = peer(from);
  its.reported = now;
  its.state = said.state;
  its.status = said.status;
  its.deaths = said.deaths;
  highest_ = std::max(highest_, said.term);
  switch (role_) {
    case Role::leading:
      if (applied_.is_lost(from)) return actions_->send(from, Expelled{});
      if (said.term != term_) actions_->send(from, Accept{accepted_});
      return look_for_the_end();
    case Role::preparing:
      if (!its.promised) actions_->send(from, Prepare{term_});
      return;
    case Role::looking:
      actions_->send(from, Here{});
      if (is_candidate()) try_to_lead(now);
      return;
    case Role::attached:
    case Role::following: return actions_->send(from, Elsewhere{leader_});
  }
}

void Council::on(int from, const Here& said, TimePoint now) {
  highest_ = std::max(highest_, said.term);
  if (said.term == 0) {
    if (role_ != Role::looking || (from != leader_ && !(is_candidate() && from < options_.place)))
      return;
    leader_ = from;
    role_ = Role::attached;
    return;
  }
  // Of two that lead, the one of the later term has more than half of the keepers behind it.
  const bool newer = role_ == Role::following || role_ == Role::leading || role_ == Role::preparing
                         ? said.term > term_
                         : said.term >= promised_;
  if (newer && (role_ != Role::following || from != leader_)) {
    look_at(from, now);
    return;
  }
  if (role_ != Role::following || from != leader_ || said.term != term_) return;
  if (accepted_.number == said.committed) {
    apply();
  } else if (accepted_.number < said.committed) {
    // The connection that would have brought it broke.
    actions_->send(from, own_report(0));
  }
}

void Council::on(int from, const Elsewhere& said, TimePoint now) {
  if (from != leader_ || said.place == options_.place || said.place == from) return;
  if (role_ == Role::preparing || role_ == Role::leading) return;
  if (!without_) without_ = now;
  // It does not know yet that the other one is gone: it will.
  if (peer(said.place).closed) {
    turned_ = now;
  } else {
    look_at(said.place, now);
  }
}

// Terms

void Council::try_to_lead(TimePoint now) {
  const auto lately = now - std::max(4 * beat_, options_.wait);
  if (!quorum_of([&](const Peer& one) { return one.reported && *one.reported >= lately; })) return;
  // Terms of different keepers are never the same.
  const auto places = static_cast<std::uint64_t>(options_.places);
  const auto before = std::max({highest_, promised_, term_});
  term_ = promised_ = highest_ =
      (before / places + 1) * places + static_cast<std::uint64_t>(options_.place);
  role_ = Role::preparing;
  turned_ = now;
  for (auto& one : peers_) {
    one.promised = false;
    one.acknowledged = 0;
  }
  peer(options_.place).promised = true;
  for (int place = 0; place < options_.places; ++place) {
    if (place != options_.place && peer(place).reported) actions_->send(place, Prepare{term_});
  }
  on(options_.place, Promise{term_, accepted_}, now);
}

void Council::on(int from, const Prepare& said, TimePoint now) {
  highest_ = std::max(highest_, said.term);
  if (said.term <= promised_) return actions_->send(from, Refuse{promised_});
  promised_ = said.term;
  if (role_ == Role::following || role_ == Role::leading) without_ = now;
  leader_ = from;
  role_ = Role::attached;
  turned_ = now;
  actions_->send(from, Promise{said.term, accepted_});
}

void Council::on(int from, const Promise& said, TimePoint now) {
  if (said.term != term_ || (role_ != Role::preparing && role_ != Role::leading)) return;
  if (role_ == Role::leading) return actions_->send(from, Accept{accepted_});
  peer(from).promised = true;
  // What may count by now is what one of more than half of the keepers has accepted last.
  if (said.accepted.is_after(accepted_)) accepted_ = said.accepted;
  if (!quorum_of([](const Peer& one) { return one.promised; })) return;
  role_ = Role::leading;
  leader_ = options_.place;
  without_.reset();
  committed_ = 0;
  for (auto& one : peers_) {
    // Who has not reported to this keeper before is not judged by that.
    if (!one.closed) one.heard = std::max(one.heard, now - options_.silence / 2);
  }
  auto first = accepted_;
  first.term = term_;
  first.number = 0;
  propose(std::move(first));
}

void Council::on(int, const Refuse& said, TimePoint now) {
  highest_ = std::max(highest_, said.promised);
  const bool mine = role_ == Role::preparing || role_ == Role::leading;
  if (mine && said.promised > term_) give_up_leading(now);
}

void Council::give_up_leading(TimePoint now) {
  if (!without_) without_ = now;
  role_ = Role::looking;
  leader_ = options_.place;
  turned_ = now;
}

// Rosters

void Council::propose(Roster roster) {
  roster.term = term_;
  ++roster.number;
  accepted_ = std::move(roster);
  peer(options_.place).acknowledged = accepted_.number;
  tell_all(Accept{accepted_});
  count_acceptances();
}

void Council::on(int from, const Accept& said, TimePoint) {
  highest_ = std::max(highest_, said.roster.term);
  if (said.roster.term < promised_) return actions_->send(from, Refuse{promised_});
  promised_ = said.roster.term;
  accepted_ = said.roster;
  follow(from, said.roster.term);
  actions_->send(from, Accepted{said.roster.term, said.roster.number});
}

void Council::on(int from, const Accepted& said, TimePoint) {
  if (role_ != Role::leading || said.term != term_) return;
  peer(from).acknowledged = std::max(peer(from).acknowledged, said.number);
  if (committed_ == accepted_.number) return actions_->send(from, Here{term_, committed_});
  count_acceptances();
}

void Council::count_acceptances() {
  if (committed_ == accepted_.number ||
      !quorum_of([&](const Peer& one) { return one.acknowledged == accepted_.number; }))
    return;
  committed_ = accepted_.number;
  tell_all(Here{term_, committed_});
  apply();
}

void Council::apply() {
  if (accepted_.says_the_same_as(applied_)) {
    applied_ = accepted_;
    return;
  }
  applied_ = accepted_;
  if (applied_.over >= 0) {
    over_ = true;
    return actions_->end(applied_.over, role_ == Role::leading ? why_ : std::string(),
                         Ending::job);
  }
  if (applied_.is_lost(options_.place)) {
    over_ = true;
    return actions_->end(kExitRequeue, kTakenForLost, Ending::place);
  }
  if (applied_.rank_at(options_.place) < 0) peer(options_.place).releases = false;
  actions_->seat(applied_);
}

void Council::judge(TimePoint now) {
  if (!quorum_of([&](const Peer& one) { return &one == &own() || !is_dead(one, now); }))
    return give_up_leading(now);
  tell_all(Here{term_, committed_});
  // A connection that broke may have taken it along.
  if (committed_ != accepted_.number) tell_all(Accept{accepted_});
  look_for_the_end();
  if (over_ || committed_ != accepted_.number || accepted_.over >= 0) return;
  auto next = accepted_;
  next.replaceable = ranks_are_replaceable(next);
  for (int place = 0; place < options_.places; ++place) {
    if (place != options_.place && !next.is_lost(place) && is_dead(peer(place), now))
      insert_sorted(next.lost, place);
  }
  for (int rank = 0; rank < options_.ranks; ++rank) {
    auto& seat = next.seats[static_cast<std::size_t>(rank)];
    auto& its = peer(seat.place);
    const bool is_lost = next.is_lost(seat.place);
    if ((!is_lost && !its.releases) || its.state == RankState::ended) continue;
    const int other = seat.moves + 1 < kMostPlaces ? free_place(next, now) : -1;
    if (is_lost && (other < 0 || !accepted_.replaceable)) {
      why_ = "rank " + std::to_string(rank) + " is lost with its node, and " +
             (accepted_.replaceable ? "there is no spare place for it (--spares)"
                                    : "cannot be started again now") +
             ": the job ends";
      next.over = kExitRequeue;
      break;
    }
    if (other < 0) {
      its.releases = false;
      if (seat.place == options_.place) {
        actions_->keep_rank();
      } else {
        actions_->send(seat.place, NoSpare{});
      }
      continue;
    }
    if (!is_lost) insert_sorted(next.spent, seat.place);
    its.releases = false;
    seat = {other, seat.moves + 1, seat.deaths + its.deaths + 1};
    peer(other).deaths = 0;
  }
  if (!next.says_the_same_as(accepted_)) propose(std::move(next));
}

bool Council::ranks_are_replaceable(const Roster& roster) const {
  return std::all_of(roster.seats.begin(), roster.seats.end(), [&](const Seat& seat) {
    const auto& its = peers_[static_cast<std::size_t>(seat.place)];
    // A leader that has just begun knows of lost ones what keepers have agreed on before.
    const bool known = seat.place == options_.place || its.reported;
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

int Council::free_place(const Roster& roster, TimePoint now) const {
  for (int place = 0; place < options_.places; ++place) {
    const auto& its = peers_[static_cast<std::size_t>(place)];
    const bool lives =
        place == options_.place || (!its.closed && its.reported && now - its.heard < 4 * beat_);
    if (lives && !roster.is_lost(place) && !roster.is_spent(place) && roster.rank_at(place) < 0)
      return place;
  }
  return -1;
}

void Council::on(int from, const Release& said, TimePoint now) {
  const int rank = accepted_.rank_at(from);
  if (role_ != Role::leading || rank < 0 ||
      accepted_.seats[static_cast<std::size_t>(rank)].moves != said.moves)
    return;
  peer(from).releases = true;
  judge(now);
}

void Council::on(int, const NoSpare&, TimePoint) {
  if (!std::exchange(peer(options_.place).releases, false)) return;
  actions_->keep_rank();
}

// The end

void Council::look_for_the_end() {
  int status = 0;
  for (const auto& seat : accepted_.seats) {
    const auto& its = peer(seat.place);
    if (its.state != RankState::ended) return;
    if (status == 0) status = its.status;
  }
  if (committed_ != accepted_.number || std::exchange(over_, true)) return;
  tell_all(AllEnded{status});
  actions_->all_have_ended(status);
}

void Council::on(int, const AllEnded& said, TimePoint) {
  over_ = true;
  actions_->all_have_ended(said.status);
}

void Council::on(int from, const Abort& said, TimePoint) {
  if (role_ == Role::leading) {
    if (applied_.is_lost(said.place)) return;
    tell_all(said);
  } else if (leader_ != from) {
    // That one has taken this keeper for the leader, or itself.
    if (leader_ != options_.place) actions_->send(leader_, said);
    return;
  }
  over_ = true;
  actions_->end(said.status, "", Ending::job);
}

void Council::on(int, const Expelled&, TimePoint) {
  over_ = true;
  actions_->end(kExitRequeue, kTakenForLost, Ending::place);
}

// Following

Report Council::own_report(std::uint64_t term) const {
  return {term, own().state, own().status, own().deaths};
}

void Council::report() {
  if (leader_ == options_.place) return;
  const auto& its = own();
  actions_->send(leader_, own_report(role_ == Role::following ? term_ : 0));
  const int rank = applied_.rank_at(options_.place);
  if (its.releases && rank >= 0)
    actions_->send(leader_, Release{applied_.seats[static_cast<std::size_t>(rank)].moves});
}

void Council::follow(int leader, std::uint64_t term) {
  role_ = Role::following;
  leader_ = leader;
  term_ = term;
  without_.reset();
}

void Council::look_at(int place, TimePoint now) {
  role_ = Role::looking;
  leader_ = place;
  turned_ = now;
  if (place == options_.place) {
    try_to_lead(now);
  } else {
    report();
  }
}

void Council::look_on(TimePoint now) {
  if (!without_) without_ = now;
  int next = leader_ + 1;
  while (next < options_.place && applied_.is_lost(next)) ++next;
  look_at(std::min(next, options_.place), now);
}

bool Council::is_dead(const Peer& peer, TimePoint now) const {
  return now - peer.heard >= options_.silence ||
         (peer.closed && now - *peer.closed >= options_.wait);
}

bool Council::is_quorum(int count, bool with_first) const noexcept {
  return 2 * count > options_.places || (2 * count == options_.places && with_first);
}

template <class Condition>
bool Council::quorum_of(const Condition& counts) const {
  int count = 0;
  bool with_first = false;
  for (int place = 0; place < options_.places; ++place) {
    const auto& one = peers_[static_cast<std::size_t>(place)];
    if (place != options_.place && (!counts(one) || applied_.is_lost(place))) continue;
    ++count;
    with_first = with_first || place == 0;
  }
  return is_quorum(count, with_first);
}

void Council::tell_all(const CouncilMessage& message) {
  for (int place = 0; place < options_.places; ++place) {
    if (place != options_.place && !accepted_.is_lost(place)) actions_->send(place, message);
  }
}

}  // namespace troupe::keeper
