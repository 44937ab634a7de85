#include "rank/protocol/supervisor.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "common/core/one_of.hpp"

namespace troupe::rank_process {

namespace {

enum class Event { all_done, all_promoted, fault, deadline };

/// Where the event leads from this phase; nullopt: nowhere.
std::optional<Phase> next(Phase from, Event event) {
#define TROUPE_TRANSITION(phase, on, into) \
  if (from == Phase::phase && event == Event::on) return Phase::into;
#include "rank/protocol/transitions.def"
#undef TROUPE_TRANSITION
  return std::nullopt;
}

bool is_last_member(const std::vector<std::int32_t>& excluded, int size) {
  return static_cast<int>(excluded.size()) + 1 == size;
}

/// What begins a round, or answers its orders.
template <class M>
concept IsForSupervisor = kIsOneOf<M, from_rank::Fault, from_rank::Done, from_rank::Failed,
                                   from_rank::Withdraw, from_rank::Rejoin, from_rank::Health,
                                   from_rank::Left, from_rank::Late, from_rank::Joined>;
template <class M>
concept IsForRun = kIsOneOf<M, from_rank::Flushed, from_rank::Committed, from_rank::Finished,
                            from_rank::StopAsked>;
template <class M>
concept IsForStandbys = kIsOneOf<M, from_rank::Standby, from_rank::Prepared>;
/// Inquiry, SplitOrder and LibraryComparison, beside the supervisor, hear these.
template <class M>
concept IsForOthers = kIsOneOf<M, from_rank::Stalled, from_rank::Standing, from_rank::Splitting,
                               from_rank::SplitGivenUp, from_rank::AtCall, from_rank::Library>;

}  // namespace

WorldSupervisor::WorldSupervisor(Options options, Broadcast broadcast)
    : options_(options),
      broadcast_(std::move(broadcast)),
      roll_(options.size),
      contributions_(static_cast<std::size_t>(options.size)),
      progress_(options.size),
      standby_world_(options.standby, options.size, broadcast_) {}

void WorldSupervisor::start(TimePoint now) {
  reports_.start(now);
  begin_round(Phase::replace, {}, now);
}

void WorldSupervisor::take_over(const Heritage& heritage, TimePoint now) {
  // The one before may have begun a round, or an epoch, of which this rank has not heard. And
  // should another rank take over, too, its rounds are others than this one's.
  constexpr std::uint32_t kAhead = 2;
  rounds_apart_ = static_cast<std::uint32_t>(options_.size);
  round_ = (heritage.round + kAhead) / rounds_apart_ * rounds_apart_ +
           static_cast<std::uint32_t>(options_.leader);
  epoch_ = heritage.epoch + 1;
  excluded_ = excluded_active_ = heritage.excluded;
  reports_.begin(now);
  for (const auto& joined : heritage.joined) {
    reports_.name(joined.rank, newcomers_.kind_of(joined));
    newcomers_.take_in(joined, excluded_, rejoining_);
  }
  for (const auto& process : heritage.incarnations) newcomers_.learn(process);
  begin_round(Phase::halt, {Errc::peer_lost, 0, "the rank that led has died"}, now);
}

void WorldSupervisor::on(const from_rank::Joined& joined, TimePoint now) {
  begin_report(now);
  rounds_ = 0;  // whatever has failed was the echo of this
  reports_.name(joined.rank, newcomers_.kind_of(joined));
  newcomers_.take_in(joined, excluded_, rejoining_);
  (void)standby_world_.take();  // its standby was part of what is formed
  begin_round(Phase::halt,
              {Errc::peer_lost, 0, "rank " + std::to_string(joined.rank) + " has died"}, now);
}

void WorldSupervisor::receive(const RankMessage& message, TimePoint now) {
  if (stopped_ || !is_of_world(message, options_.size)) return;
  std::visit([&](const auto& said) { hear(said, now); }, message);
}

template <class Message>
void WorldSupervisor::hear(const Message& said, TimePoint now) {
  if constexpr (IsForSupervisor<Message>) {
    on(said, now);
  } else if constexpr (IsForRun<Message>) {
    // What comes too late was rolled back, and will be said again.
    if constexpr (requires { said.epoch; }) {
      if (phase_ != Phase::active || said.epoch != epoch_) return;
    }
    tell(progress_.on(said));
  } else if constexpr (IsForStandbys<Message>) {
    standby_world_.receive(said, now);
  } else if constexpr (std::is_same_v<Message, from_rank::Loss>) {
    reports_.on(said);
  } else {
    static_assert(IsForOthers<Message>, "a message that nobody on rank 0 has a function for");
  }
}

void WorldSupervisor::tell(RunProgress::News news) {
  if (!news.ok()) return stop(news.error());
  if (*news) broadcast_(**news);
}

void WorldSupervisor::on(const from_rank::Health& said, TimePoint) {
  auto event = said.event;
  event.rank = said.rank;
  broadcast_(from_supervisor::HealthTold{std::move(event)});
}

void WorldSupervisor::tick(TimePoint now) {
  if (stopped_) return;
  standby_world_.tick(now);
  if (phase_ == Phase::active || now - phase_since_ <= options_.phase_timeout) return;
  const Error late{
      Errc::timeout, 0,
      "phase " + std::string(to_string(phase_)) + " outlasted its deadline; waited for rank " +
          roll_.missing() +
          (phase_ == Phase::restore ? ", whose program has not turned to the recovery" : "")};
  const auto again = next(phase_, Event::deadline);
  if (!again || rounds_ >= options_.max_rounds) return stop(late);
  begin_round(*again, late, now);
}

void WorldSupervisor::on(const from_rank::Fault& fault, TimePoint now) {
  // A phase that failed, peers that are gone or do not come, are mostly the echo of a death that is
  // reported a moment before or after: worth a new round, but a fault of their own only if nothing
  // else comes.
  const bool echo = is_echo(fault.kind);
  if ((echo && fault.round != round_) || is_excluded(fault.rank)) return;
  begin_report(now);
  reports_.add(fault, echo);
  const auto first = next(phase_, Event::fault);
  if (!first) return;
  auto why = fault.error;
  why.message = "rank " + std::to_string(fault.rank) +
                (fault.kind.empty() ? "" : " (" + fault.kind + ")") + ": " + why.message;
  begin_round(*first, why, now);
}

void WorldSupervisor::begin_report(TimePoint now) {
  if (phase_ != Phase::active) return;
  rounds_ = 0;
  reports_.begin(now);
}

void WorldSupervisor::on(const from_rank::Failed& failed, TimePoint now) {
  if (is_excluded(failed.rank)) return;
  if (!options_.shrink || is_last_member(excluded_, options_.size) || epoch_ == 0)
    return stop(failed.error);
  exclude(failed.rank, kKindFailed, failed.error, now);
}

/// Whoever still computes is worth more than a GPU in better health that is not there.
void WorldSupervisor::on(const from_rank::Withdraw& asked, TimePoint now) {
  if (!options_.shrink || is_last_member(excluded_, options_.size) || phase_ != Phase::active ||
      asked.epoch != epoch_ || is_excluded(asked.rank)) {
    return;
  }
  exclude(asked.rank, kKindWithdrawn,
          {Errc::device_failed, 0, "rank " + std::to_string(asked.rank) + "'s GPU is failing"},
          now);
}

void WorldSupervisor::exclude(std::int32_t rank, const char* kind, const Error& why,
                              TimePoint now) {
  begin_report(now);
  reports_.name(rank, kind);
  excluded_.insert(std::lower_bound(excluded_.begin(), excluded_.end(), rank), rank);
  (void)standby_world_.take();  // its standby is part of what is formed
  begin_round(Phase::halt, why, now);
}

void WorldSupervisor::on(const from_rank::Rejoin& asked, TimePoint now) {
  const bool known =
      std::find(rejoining_.begin(), rejoining_.end(), asked.rank) != rejoining_.end();
  if (!is_excluded(asked.rank) || known) return;
  rejoining_.push_back(asked.rank);
  if (phase_ == Phase::active) admit(now);
}

/// Those that rejoin are members from the next epoch on, which begins now.
void WorldSupervisor::admit(TimePoint now) {
  begin_report(now);
  for (const auto rank : rejoining_) {
    reports_.add(rank, kKindRejoins);
    excluded_.erase(std::find(excluded_.begin(), excluded_.end(), rank));
  }
  rejoining_.clear();
  (void)standby_world_.take();  // made without them
  begin_round(Phase::halt, {}, now);
}

bool WorldSupervisor::is_excluded(int rank) const {
  return std::binary_search(excluded_.begin(), excluded_.end(), rank);
}

void WorldSupervisor::begin_round(Phase first, const Error& why, TimePoint now) {
  round_ += rounds_apart_;
  if (++rounds_ > options_.max_rounds) {
    const auto rounds = std::to_string(options_.max_rounds) + " rounds; the last failure: ";
    // A job's script need not try again what has never worked.
    if (epoch_ == 0) {
      return stop(
          {why.code, why.native, "the world could not be formed in " + rounds + why.message});
    }
    return stop({Errc::budget_exhausted, why.native,
                 "the world could not be re-formed in " + rounds + why.message});
  }
  progress_.forget_ends();
  enter(first, now);
}

void WorldSupervisor::enter(Phase phase, TimePoint now) {
  if (phase_ != Phase::active) reports_.took(phase_, now - phase_since_);
  phase_ = phase;
  phase_since_ = now;
  roll_.begin();
  from_supervisor::Order order{.round = round_,
                               .phase = phase,
                               .epoch = epoch_ + 1,
                               .leader = options_.leader,
                               .incarnations = newcomers_.incarnations(),
                               .joined = newcomers_.joined(),
                               .excluded = excluded_};
  if (phase == Phase::halt) standby_world_.interrupted();
  if (phase == Phase::replace) {
    const auto formation = standby_world_.take();
    order.formation = reports_.keeps_device_hosts() ? 0 : formation;
    promoting_ = order.formation != 0;
    // Not every member contributes: what one gave to a communicator before would count as well.
    std::fill(contributions_.begin(), contributions_.end(), std::vector<std::byte>());
    newcomers_.begin_replace();
  }
  if (phase == Phase::form) order.contributions = Contributions::of(contributions_);
  if (phase == Phase::restore) {
    order.step = newcomers_.any() ? newcomers_.common() : progress_.common();
    order.asked = reports_.ranks();
  }
  broadcast_(order);
}

void WorldSupervisor::on(const from_rank::Done& done, TimePoint now) {
  if (done.round != round_ || done.phase != phase_ || !roll_.answer(done.rank, done.covered))
    return;
  reports_.on(done);
  if (phase_ == Phase::replace) {
    progress_.set_newest(done.rank, done.covered, done.newest);
    newcomers_.on(done);
    if (done.stop_asked) (void)progress_.on(from_rank::StopAsked{done.rank});
    for (const auto& [rank, bytes] : done.contributions) {
      if (rank >= done.rank && rank < done.rank + done.covered)
        contributions_[static_cast<std::size_t>(rank)] = bytes;
    }
  }
  if (roll_.complete()) advance(now);
}

void WorldSupervisor::advance(TimePoint now) {
  if (phase_ == Phase::replace && newcomers_.are_too_late()) {
    return stop(
        {Errc::budget_exhausted, 0,
         "rank " + std::to_string(newcomers_.first()) +
             " has died behind the end of the program's first run, and begins with that again: "
             "the job ends"},
        true);
  }
  const bool promoted = phase_ == Phase::replace && promoting_;
  const auto to = next(phase_, promoted ? Event::all_promoted : Event::all_done);
  if (!to) return;
  if (*to == Phase::active) return activate(now);
  enter(*to, now);
}

void WorldSupervisor::activate(TimePoint now) {
  reports_.took(phase_, now - phase_since_);
  phase_ = Phase::active;
  ++epoch_;
  const bool renewed = newcomers_.any();
  progress_.begin_at(excluded_ == excluded_active_ && !renewed ? progress_.common() : -1);
  excluded_active_ = excluded_;
  newcomers_.settle();
  broadcast_(from_supervisor::Activate{.round = round_,
                                       .epoch = epoch_,
                                       .stable = progress_.stable(),
                                       .reports = reports_.take(epoch_, now),
                                       .excluded = excluded_,
                                       .renewed = renewed});
  standby_world_.activated(epoch_, std::vector<bool>(contributions_.size(), true));
  if (!rejoining_.empty()) admit(now);
}

/// The ranks leave the run at different places: collectives of some wait for others that will never
/// give them, or would meet their next ones. So the epoch ends.
void WorldSupervisor::on(const from_rank::Left& left, TimePoint now) {
  if (left.run <= left_) return;
  left_ = left.run;
  begin_report(now);
  reports_.drop_echoes();
  reports_.add(left.rank, kKindLeft);
  if (const auto first = next(phase_, Event::fault)) begin_round(*first, left.error, now);
  broadcast_(from_supervisor::RunLeft{.rank = left.rank, .run = left.run, .error = left.error});
}

void WorldSupervisor::on(const from_rank::Late& late, TimePoint) {
  if (late.round == round_ && late.phase == phase_) roll_.set_late(late.ranks);
}

void WorldSupervisor::stop(const Error& error, bool at_once) {
  stopped_ = true;
  broadcast_(from_supervisor::Stop{error, at_once});
}

}  // namespace troupe::rank_process
