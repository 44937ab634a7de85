#include "keeper/council.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace troupe::keeper {

using namespace council;

namespace {

constexpr std::chrono::nanoseconds kLeastBeat = std::chrono::milliseconds(5);
constexpr std::chrono::nanoseconds kMostBeat = std::chrono::seconds(1);
using Ending = CouncilActions::Ending;

constexpr const char* kTakenForLost = "the others have taken this place for lost: it ends";

}  // namespace

Council::Council(const Options& options, Actions& actions)
    : options_(options),
      actions_(&actions),
      beat_(std::clamp(std::min(options.silence / 8, options.wait / 4), kLeastBeat, kMostBeat)),
      colleagues_({.place = options.place,
                   .places = options.places,
                   .refuges = options.refuges,
                   .silence = options.silence,
                   .wait = options.wait}) {
  for (int rank = 0; rank < options.ranks; ++rank) accepted_.seats.push_back({rank, 0, 0});
  applied_ = accepted_;
}

void Council::begin(TimePoint now) {
  for (auto& one : colleagues_.all()) one.heard = now;
  last_tick_ = probed_ = now;
  without_ = now;
  look_at(0, now);
}

void Council::receive(int from, const CouncilMessage& message, TimePoint now) {
  if (over_ || from < 0 || from >= options_.places || from == options_.place) return;
  colleagues_.hear(from, now);
  const auto end = [this](const char* why) {
    over_ = true;
    actions_->end(kExitRequeue, why, Ending::place);
  };
  std::visit(
      [&]<class Message>(const Message& said) {
        if constexpr (std::is_same_v<Message, Accepted>) {
          if (reign_) reign_->hear(from, said);
        } else if constexpr (std::is_same_v<Message, Release>) {
          if (reign_) reign_->release(from, said.moves, now);
        } else if constexpr (std::is_same_v<Message, NoSpare>) {
          if (std::exchange(colleagues_.own().releases, false)) actions_->keep_rank();
        } else if constexpr (std::is_same_v<Message, Expelled>) {
          end(kTakenForLost);
        } else if constexpr (std::is_same_v<Message, AllEnded>) {
          over_ = true;
          actions_->all_have_ended(said.status);
        } else if constexpr (std::is_same_v<Message, Refuse>) {
          on(said, now);
        } else if constexpr (std::is_same_v<Message, Accept> || std::is_same_v<Message, Abort>) {
          on(from, said);
        } else {
          on(from, said, now);
        }
      },
      message);
}

void Council::closed(int place, TimePoint now) {
  if (over_ || place == options_.place) return;
  colleagues_.close(place, now);
  if (role_ == Role::looking && leader_ == place) look_on(now);
}

void Council::tick(TimePoint now) {
  if (over_) return;
  if (now - std::exchange(last_tick_, now) > options_.silence / 2) {
    // It is this process that was away: the others are heard once more first.
    colleagues_.was_away(now);
    if (without_) without_ = now;
    turned_ = now;
  }
  switch (role_) {
    case Role::leading:
      if (!reign_->judge(now)) give_up_leading(now);
      return end_if_all_have();
    case Role::following:
    case Role::attached:
      if (colleagues_.is_dead(colleagues_.at(leader_), now)) {
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
          if (!applied_.is_lost(place)) actions_->send(place, colleagues_.report(0));
        }
      }
      try_to_lead(now);
      break;
  }
  if (!over_ && without_ && now - *without_ > 2 * (options_.silence + options_.wait)) {
    over_ = true;
    const auto& own = colleagues_.own();
    if (own.state == RankState::ended) return actions_->end(own.status, "", Ending::place);
    actions_->end(kExitRequeue, "cut off from more than half of the job: this place ends",
                  Ending::place);
  }
}

void Council::set_state(RankState state, int status, TimePoint now) {
  if (over_) return;
  auto& its = colleagues_.own();
  its.state = state;
  its.status = status;
  its.heard = now;
  if (reign_) {
    end_if_all_have();
  } else if (role_ == Role::following) {
    report();
  }
}

void Council::release(TimePoint now) {
  if (over_) return;
  colleagues_.own().releases = true;
  if (reign_) {
    (void)reign_->judge(now);
  } else {
    report();
  }
}

void Council::abort(int status, const std::string& why, TimePoint) {
  if (std::exchange(over_, true)) return;
  if (reign_) {
    reign_->tell_all(Abort{status, options_.place});
  } else if (leader_ != options_.place) {
    actions_->send(leader_, Abort{status, options_.place});
  }
  actions_->end(status, why, Ending::job);
}

// Reports

void Council::on(int from, const Report& said, TimePoint now) {
  colleagues_.hear(from, said, now);
  highest_ = std::max(highest_, said.term);
  switch (role_) {
    case Role::leading: reign_->hear(from, said); return end_if_all_have();
    case Role::preparing:
      if (!colleagues_.at(from).promised) actions_->send(from, Prepare{term_});
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
  // The leader of the later term has more than half of the keepers behind it.
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
    actions_->send(from, colleagues_.report(0));
  }
}

void Council::on(int from, const Elsewhere& said, TimePoint now) {
  if (from != leader_ || said.place == options_.place || said.place == from) return;
  if (role_ == Role::preparing || role_ == Role::leading) return;
  if (!without_) without_ = now;
  // It does not know yet that the other one is gone: it will.
  if (colleagues_.at(said.place).closed) {
    turned_ = now;
  } else {
    look_at(said.place, now);
  }
}

// Terms

void Council::try_to_lead(TimePoint now) {
  const auto lately = now - std::max(4 * beat_, options_.wait);
  if (!colleagues_.are_quorum(applied_, [&](const Colleagues::Peer& one) {
        return one.reported && *one.reported >= lately;
      }))
    return;
  // Terms of different keepers are never the same.
  const auto places = static_cast<std::uint64_t>(options_.places);
  const auto before = std::max({highest_, promised_, term_});
  term_ = promised_ = highest_ =
      (before / places + 1) * places + static_cast<std::uint64_t>(options_.place);
  role_ = Role::preparing;
  turned_ = now;
  for (auto& one : colleagues_.all()) {
    one.promised = false;
    one.acknowledged = 0;
  }
  colleagues_.own().promised = true;
  for (int place = 0; place < options_.places; ++place) {
    if (place != options_.place && colleagues_.at(place).reported)
      actions_->send(place, Prepare{term_});
  }
  on(options_.place, Promise{term_, accepted_}, now);
}

void Council::on(int from, const Prepare& said, TimePoint now) {
  highest_ = std::max(highest_, said.term);
  if (said.term <= promised_) return actions_->send(from, Refuse{promised_});
  promised_ = said.term;
  if (role_ == Role::following || reign_) without_ = now;
  reign_.reset();
  leader_ = from;
  role_ = Role::attached;
  turned_ = now;
  actions_->send(from, Promise{said.term, accepted_});
}

void Council::on(int from, const Promise& said, TimePoint now) {
  if (said.term != term_) return;
  if (reign_) return actions_->send(from, Accept{accepted_});
  if (role_ != Role::preparing) return;
  colleagues_.at(from).promised = true;
  // The newest roster that any of more than half of the keepers has accepted may count by now.
  if (said.accepted.is_after(accepted_)) accepted_ = said.accepted;
  if (!colleagues_.are_quorum(applied_, [](const Colleagues::Peer& one) { return one.promised; }))
    return;
  role_ = Role::leading;
  leader_ = options_.place;
  without_.reset();
  for (auto& one : colleagues_.all()) {
    // Who has not reported to this keeper before is not judged by that.
    if (!one.closed) one.heard = std::max(one.heard, now - options_.silence / 2);
  }
  reign_.emplace(term_,
                 Reign::Parts{accepted_, colleagues_, *actions_, beat_, [this] { apply(); }});
  reign_->begin();
}

void Council::on(const Refuse& said, TimePoint now) {
  highest_ = std::max(highest_, said.promised);
  if ((reign_ || role_ == Role::preparing) && said.promised > term_) give_up_leading(now);
}

void Council::give_up_leading(TimePoint now) {
  if (!without_) without_ = now;
  reign_.reset();
  role_ = Role::looking;
  leader_ = options_.place;
  turned_ = now;
}

// Rosters

void Council::on(int from, const Accept& said) {
  highest_ = std::max(highest_, said.roster.term);
  if (said.roster.term < promised_) return actions_->send(from, Refuse{promised_});
  promised_ = said.roster.term;
  accepted_ = said.roster;
  reign_.reset();
  role_ = Role::following;
  leader_ = from;
  term_ = said.roster.term;
  without_.reset();
  actions_->send(from, Accepted{said.roster.term, said.roster.number});
}

void Council::apply() {
  if (accepted_.says_the_same_as(applied_)) {
    applied_ = accepted_;
    return;
  }
  applied_ = accepted_;
  if (applied_.over >= 0) {
    over_ = true;
    return actions_->end(applied_.over, reign_ ? reign_->why() : std::string(), Ending::job);
  }
  if (applied_.is_lost(options_.place)) {
    over_ = true;
    return actions_->end(kExitRequeue, kTakenForLost, Ending::place);
  }
  if (applied_.rank_at(options_.place) < 0) colleagues_.own().releases = false;
  actions_->seat(applied_);
}

// The end

void Council::end_if_all_have() {
  const auto status = reign_ && !over_ ? reign_->end_of_job() : std::nullopt;
  if (!status) return;
  over_ = true;
  reign_->tell_all(AllEnded{*status});
  actions_->all_have_ended(*status);
}

void Council::on(int from, const Abort& said) {
  if (reign_) {
    if (applied_.is_lost(said.place)) return;
    reign_->tell_all(said);
  } else if (leader_ != from) {
    // The sender has taken this keeper, or itself, for the leader.
    if (leader_ != options_.place) actions_->send(leader_, said);
    return;
  }
  over_ = true;
  actions_->end(said.status, "", Ending::job);
}

// Following

void Council::report() {
  if (leader_ == options_.place) return;
  actions_->send(leader_, colleagues_.report(role_ == Role::following ? term_ : 0));
  const int rank = applied_.rank_at(options_.place);
  if (colleagues_.own().releases && rank >= 0)
    actions_->send(leader_, Release{applied_.seats[static_cast<std::size_t>(rank)].moves});
}

void Council::look_at(int place, TimePoint now) {
  reign_.reset();
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

}  // namespace troupe::keeper
