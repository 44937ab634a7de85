#include "rank/protocol/supervisor.hpp"

#include <algorithm>
#include <optional>

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

}  // namespace

WorldSupervisor::WorldSupervisor(Options options, Broadcast broadcast)
    : options_(options),
      broadcast_(std::move(broadcast)),
      acknowledged_(static_cast<std::size_t>(options.size)),
      contributions_(static_cast<std::size_t>(options.size)),
      newest_(static_cast<std::size_t>(options.size), -1),
      finished_(static_cast<std::size_t>(options.size)),
      standby_world_(options.standby, options.size, broadcast_) {
  flushed_.begin(newest_.size(), -1);
  forget_finished();
}

void WorldSupervisor::start(TimePoint now) {
  began_ = now;
  begin_round(Phase::replace, now);
}

void WorldSupervisor::receive(const RankMessage& message, TimePoint now) {
  if (stopped_ || !is_of_world(message, options_.size)) return;
  std::visit([&](const auto& said) { on(said, now); }, message);
}

void WorldSupervisor::on(const from_rank::Health& said, TimePoint) {
  auto event = said.event;
  event.rank = said.rank;
  broadcast_(from_supervisor::HealthTold{std::move(event)});
}

void WorldSupervisor::on(const from_rank::StopAsked&, TimePoint) {
  stopping_ = true;
}

void WorldSupervisor::on(const from_rank::Standby& standby, TimePoint now) {
  standby_world_.receive(standby, now);
}

void WorldSupervisor::on(const from_rank::Prepared& prepared, TimePoint now) {
  standby_world_.receive(prepared, now);
}

void WorldSupervisor::tick(TimePoint now) {
  if (stopped_) return;
  standby_world_.tick(now);
  if (phase_ == Phase::active || now - phase_since_ <= options_.phase_timeout) return;
  const auto again = next(phase_, Event::deadline);
  if (!again || rounds_ >= options_.max_rounds) {
    return stop(
        {Errc::timeout, 0,
         "phase " + std::string(to_string(phase_)) + " outlasted its deadline; waited for rank " +
             waited_for() +
             (phase_ == Phase::restore ? ", whose program has not turned to the recovery" : "")});
  }
  begin_round(*again, now);
}

void WorldSupervisor::on(const from_rank::Fault& fault, TimePoint now) {
  // A phase that failed, peers that are gone or do not come, are mostly the echo of a death that is
  // reported a moment before or after: worth a new round, but a fault of their own only if nothing
  // else comes.
  const bool echo = is_echo(fault.kind);
  if ((echo && fault.round != round_) || is_excluded(fault.rank)) return;
  begin_report(now);
  if (!echo) drop_echoes();
  if (!echo || reports_.empty()) {
    Recovery report;
    report.rank = fault.rank;
    report.kind = fault.kind;
    report.detect_ms = static_cast<double>(fault.detect_us) / 1000.0;
    reports_.push_back(std::move(report));
  }
  if (const auto first = next(phase_, Event::fault)) begin_round(*first, now);
}

void WorldSupervisor::drop_echoes() {
  std::erase_if(reports_, [](const Recovery& report) { return is_echo(report.kind); });
}

/// If this is the first that goes wrong in an active world.
void WorldSupervisor::begin_report(TimePoint now) {
  if (phase_ != Phase::active) return;
  began_ = now;
  rounds_ = 0;
  reports_.clear();
  lost_buffers_ = 0;
  times_ = {};
}

void WorldSupervisor::on(const from_rank::Failed& failed, TimePoint now) {
  if (is_excluded(failed.rank)) return;
  const bool last = static_cast<int>(excluded_.size()) + 1 == options_.size;
  if (!options_.shrink || last || epoch_ == 0) return stop(failed.error);
  exclude(failed.rank, kKindFailed, now);
}

/// Whoever still computes is worth more than a GPU in better health that is not there.
void WorldSupervisor::on(const from_rank::Withdraw& asked, TimePoint now) {
  const bool last = static_cast<int>(excluded_.size()) + 1 == options_.size;
  if (!options_.shrink || last || phase_ != Phase::active || asked.epoch != epoch_ ||
      is_excluded(asked.rank)) {
    return;
  }
  exclude(asked.rank, kKindWithdrawn, now);
}

void WorldSupervisor::exclude(std::int32_t rank, const char* kind, TimePoint now) {
  begin_report(now);
  const auto known = std::find_if(reports_.begin(), reports_.end(),
                                  [&](const Recovery& report) { return report.rank == rank; });
  if (known != reports_.end()) {
    known->kind = kind;
  } else {
    reports_.push_back({.rank = rank, .kind = kind});
  }
  drop_echoes();
  excluded_.insert(std::lower_bound(excluded_.begin(), excluded_.end(), rank), rank);
  (void)standby_world_.take();  // its standby is part of what is formed
  begin_round(Phase::halt, now);
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
    reports_.push_back({.rank = rank, .kind = kKindRejoins});
    excluded_.erase(std::find(excluded_.begin(), excluded_.end(), rank));
  }
  rejoining_.clear();
  (void)standby_world_.take();  // made without them
  begin_round(Phase::halt, now);
}

bool WorldSupervisor::is_excluded(int rank) const {
  return std::binary_search(excluded_.begin(), excluded_.end(), rank);
}

void WorldSupervisor::on(const from_rank::Loss& loss, TimePoint) {
  lost_buffers_ += loss.lost_buffers;
  const auto unnamed = std::find_if(reports_.begin(), reports_.end(), [&](const Recovery& report) {
    return report.rank == loss.rank && report.kind.empty();
  });
  if (unnamed != reports_.end()) unnamed->kind = loss.kind;
  for (auto& report : reports_) {
    if (report.rank == loss.rank && report.end_ms == 0)
      report.end_ms = static_cast<double>(loss.end_us) / 1e3;
  }
}

void WorldSupervisor::begin_round(Phase first, TimePoint now) {
  ++round_;
  if (++rounds_ > options_.max_rounds) {
    return stop(
        {Errc::budget_exhausted, 0,
         "the world could not be re-formed in " + std::to_string(options_.max_rounds) + " rounds"});
  }
  forget_finished();
  enter(first, now);
}

void WorldSupervisor::enter(Phase phase, TimePoint now) {
  if (phase_ != Phase::active) times_.*time_of(phase_) += to_ms(now - phase_since_);
  phase_ = phase;
  phase_since_ = now;
  std::fill(acknowledged_.begin(), acknowledged_.end(), false);
  acknowledgements_ = 0;
  late_.clear();
  from_supervisor::Order order{
      .round = round_, .phase = phase, .epoch = epoch_ + 1, .excluded = excluded_};
  if (phase == Phase::halt) standby_world_.interrupted();
  if (phase == Phase::replace) {
    const auto formation = standby_world_.take();
    order.formation = keeps_device_hosts() ? 0 : formation;
    promoting_ = order.formation != 0;
    // Not every member contributes: what one gave to a communicator before would count as well.
    std::fill(contributions_.begin(), contributions_.end(), std::vector<std::byte>());
  }
  if (phase == Phase::form) order.contributions = Contributions::of(contributions_);
  if (phase == Phase::restore) {
    order.step = target_;
    for (const auto& report : reports_) order.asked.push_back(report.rank);
  }
  broadcast_(order);
}

/// Operations past their deadline, and errors that no fault explains, and nothing else: the device
/// hosts live, and what they have in their contexts is worth more than the time that the standby
/// world would save.
bool WorldSupervisor::keeps_device_hosts() const {
  return !reports_.empty() &&
         std::all_of(reports_.begin(), reports_.end(), [](const Recovery& report) {
           return report.kind == "timeout" || report.kind == kKindError;
         });
}

void WorldSupervisor::on(const from_rank::Done& done, TimePoint now) {
  const auto first = static_cast<std::size_t>(done.rank);
  const auto end = first + static_cast<std::size_t>(done.covered);
  if (done.round != round_ || done.phase != phase_ || acknowledged_[first]) return;
  for (auto rank = first; rank < end; ++rank) {
    acknowledged_[rank] = true;
    if (phase_ == Phase::replace) newest_[rank] = done.newest;
  }
  acknowledgements_ += done.covered;
  lost_buffers_ += done.lost_buffers;
  const auto speaks_for = [&](std::int32_t rank) {
    return rank >= done.rank && rank < done.rank + done.covered;
  };
  for (const auto& [rank, bytes] : done.contributions) {
    if (phase_ == Phase::replace && speaks_for(rank))
      contributions_[static_cast<std::size_t>(rank)] = bytes;
  }
  for (const auto& [rank, step] : done.iterations) {
    for (auto& report : reports_) {
      if (phase_ == Phase::restore && speaks_for(rank) && report.rank == rank)
        report.iteration = step;
    }
  }
  for (auto& report : reports_)
    report.repeated_iterations = std::max(report.repeated_iterations, done.repeated);
  if (acknowledgements_ == options_.size) advance(now);
}

void WorldSupervisor::advance(TimePoint now) {
  const bool promoted = phase_ == Phase::replace && promoting_;
  const auto to = next(phase_, promoted ? Event::all_promoted : Event::all_done);
  if (!to) return;
  if (phase_ == Phase::verify) {
    target_ = *std::min_element(newest_.begin(), newest_.end());
    if (target_ == kAnyStep) target_ = -1;  // nobody has a state
  }
  if (*to == Phase::active) return activate(now);
  enter(*to, now);
}

void WorldSupervisor::activate(TimePoint now) {
  times_.*time_of(phase_) += to_ms(now - phase_since_);
  phase_ = Phase::active;
  ++epoch_;
  stable_ = excluded_ == excluded_active_ ? target_ : -1;
  std::fill(newest_.begin(), newest_.end(), stable_);
  flushed_.begin(newest_.size(), stable_);
  excluded_active_ = excluded_;
  for (auto& report : reports_) {
    report.epoch = epoch_;
    for (const auto& time : kRecoveryTimes) report.*time.ms += times_.*time.ms;
    report.total_ms = report.detect_ms + to_ms(now - began_);
    report.lost_buffers = lost_buffers_;
  }
  broadcast_(from_supervisor::Activate{.round = round_,
                                       .epoch = epoch_,
                                       .stable = stable_,
                                       .reports = reports_,
                                       .excluded = excluded_});
  reports_.clear();
  standby_world_.activated(epoch_, std::vector<bool>(newest_.size(), true));
  if (!rejoining_.empty()) admit(now);
}

void WorldSupervisor::on(const from_rank::Flushed& flushed, TimePoint) {
  if (phase_ != Phase::active || flushed.epoch != epoch_) return;  // the commit will be made again
  const auto everywhere = flushed_.say(static_cast<std::size_t>(flushed.rank),
                                       static_cast<std::size_t>(flushed.covered), flushed.step);
  if (everywhere) broadcast_(from_supervisor::AllFlushed{*everywhere});
}

void WorldSupervisor::on(const from_rank::Committed& committed, TimePoint) {
  if (phase_ != Phase::active || committed.epoch != epoch_)
    return;  // the replace phase will say it again
  const auto first = newest_.begin() + committed.rank;
  std::for_each(first, first + committed.covered,
                [&](std::int64_t& newest) { newest = std::max(newest, committed.step); });
  judge_end_of_run();
  const auto everywhere = *std::min_element(newest_.begin(), newest_.end());
  if (stopped_ || everywhere <= stable_) return;
  stable_ = everywhere;
  broadcast_(from_supervisor::Stable{.step = stable_, .stopping = stopping_});
}

void WorldSupervisor::on(const from_rank::Finished& finished, TimePoint) {
  if (phase_ != Phase::active || finished.epoch != epoch_)
    return;  // it will be rolled back, and finish again
  std::fill_n(finished_.begin() + finished.rank, finished.covered, true);
  for (const auto& end : finished.ends) {
    if (end.step < first_end_.step) first_end_ = end;
    if (end.step > last_end_.step) last_end_ = end;
  }
  judge_end_of_run();
  if (stopped_ || !std::all_of(finished_.begin(), finished_.end(), [](bool yes) { return yes; }))
    return;
  const auto step = first_end_.step;
  forget_finished();
  std::fill(newest_.begin(), newest_.end(), -1);
  flushed_.begin(newest_.size(), -1);
  stable_ = -1;
  broadcast_(from_supervisor::AllFinished{step});
}

void WorldSupervisor::forget_finished() {
  std::fill(finished_.begin(), finished_.end(), false);
  first_end_ = {.rank = 0, .step = kAnyStep};
  last_end_ = {.rank = 0, .step = -1};
}

void WorldSupervisor::judge_end_of_run() {
  if (first_end_.step == kAnyStep) return;
  const auto has_ended = "the ranks disagree on the end of the run: rank " +
                         std::to_string(first_end_.rank) + " has ended it with step " +
                         std::to_string(first_end_.step) + ", rank ";
  if (last_end_.step > first_end_.step)
    return stop({Errc::invalid, 0,
                 has_ended + std::to_string(last_end_.rank) + " with step " +
                     std::to_string(last_end_.step)});
  for (std::size_t rank = 0; rank < newest_.size(); ++rank) {
    if (newest_[rank] == kAnyStep || newest_[rank] <= first_end_.step) continue;
    return stop({Errc::invalid, 0,
                 has_ended + std::to_string(rank) + " has gone on to a commit of step " +
                     std::to_string(newest_[rank])});
  }
}

/// The ranks leave the run at different places: collectives of some wait for others that will never
/// give them, or would meet their next ones. So the epoch ends.
void WorldSupervisor::on(const from_rank::Left& left, TimePoint now) {
  if (left.run <= left_) return;
  left_ = left.run;
  begin_report(now);
  drop_echoes();
  reports_.push_back({.rank = left.rank, .kind = kKindLeft});
  if (const auto first = next(phase_, Event::fault)) begin_round(*first, now);
  broadcast_(from_supervisor::RunLeft{.rank = left.rank, .run = left.run, .error = left.error});
}

void WorldSupervisor::on(const from_rank::Late& late, TimePoint) {
  if (late.round == round_ && late.phase == phase_) late_ = late.ranks;
}

/// The ranks that the last relay to complain has named; where none has, those not heard of.
std::string WorldSupervisor::waited_for() const {
  auto ranks = late_;
  for (int rank = 0; rank < options_.size && late_.empty(); ++rank) {
    if (!acknowledged_[static_cast<std::size_t>(rank)]) ranks.push_back(rank);
  }
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

void WorldSupervisor::stop(const Error& error) {
  stopped_ = true;
  broadcast_(from_supervisor::Stop{error});
}

}  // namespace troupe::rank_process
