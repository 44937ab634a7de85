#include "rank/world/world_status.hpp"

#include <algorithm>

#include "common/core/log.hpp"

namespace troupe::rank_process {
namespace {

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

}  // namespace

WorldStatus::WorldStatus(MpiSession& mpi, Whereabouts& whereabouts)
    : mpi_(&mpi),
      whereabouts_(&whereabouts),
      members_(&mpi.everyone()),
      forming_(&mpi.everyone()),
      newest_{0, &mpi.everyone()},
      acknowledged_(newest_) {}

// Any thread

std::vector<Recovery> WorldStatus::recoveries() const {
  const std::lock_guard lock(mutex_);
  return recoveries_;
}

std::vector<HealthEvent> WorldStatus::health_events() const {
  const std::lock_guard lock(mutex_);
  return health_events_;
}

void WorldStatus::add_health(HealthEvent event) {
  const std::lock_guard lock(mutex_);
  health_events_.push_back(std::move(event));
}

void WorldStatus::set_failing(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!failing_) failing_ = text;
}

std::optional<std::string> WorldStatus::failing() const {
  const std::lock_guard lock(mutex_);
  return failing_;
}

std::uint64_t WorldStatus::commits() const {
  const std::lock_guard lock(mutex_);
  return commits_;
}

void WorldStatus::begin_commit(std::int64_t step, TimePoint now) {
  const std::lock_guard lock(mutex_);
  committing_ = {step, now};
}

void WorldStatus::inject_in_phase(memory::FaultKind kind, Phase phase) {
  const std::lock_guard lock(mutex_);
  ordered_faults_.emplace_back(phase, kind);
}

void WorldStatus::tell_faults_left() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [phase, kind] : ordered_faults_) {
    log::warn("world",
              "the {} that was ordered for {} has not struck: no recovery came to that phase",
              to_string(kind), to_string(phase));
  }
}

bool WorldStatus::standby_ready() const {
  const std::lock_guard lock(mutex_);
  return active_ && standby_ && standby_world_formed_;
}

bool WorldStatus::has_standby() const {
  const std::lock_guard lock(mutex_);
  return active_ && standby_;
}

std::optional<std::uint64_t> WorldStatus::standby_memory() const {
  const std::lock_guard lock(mutex_);
  return standby_memory_;
}

// The WorldActor

void WorldStatus::close() {
  const std::lock_guard lock(mutex_);
  active_ = false;
  restore_.reset();
  parts_.port->gate().set_epoch(Epoch(0));
  parts_.tokens->end_epoch(epoch_, kReformed);
  if (parts_.check != nullptr) parts_.check->close(epoch_);
  if (attached_) parts_.port->gate().close(kReformed);
  changed_.notify_all();
}

bool WorldStatus::ask_restore(std::uint32_t round, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  // Without the members' state there is nothing to go back to: that of the members before is still
  // needed, for theirs is made from it.
  if (!attached_ || watches() || newest_.number != settled_) return false;
  restore_ = Restore{round, step};
  if (!waits_since_) waits_since_ = SteadyClock::time();
  changed_.notify_all();
  return true;
}

std::optional<TimePoint> WorldStatus::recovery_waits_since() const {
  const std::lock_guard lock(mutex_);
  return waits_since_;
}

void WorldStatus::activate(std::uint32_t epoch, std::int64_t stable,
                           const std::vector<Recovery>& reports,
                           const std::vector<std::int32_t>& excluded) {
  const std::lock_guard lock(mutex_);
  if (excluded != excluded_) {
    const bool out = std::binary_search(excluded.begin(), excluded.end(), mpi_->rank());
    newest_ = {newest_.number + 1, out ? &nobody_ : forming_};
    excluded_ = excluded;
    parts_.tokens->set_excluded(excluded);
    parts_.actors->set_excluded(excluded);
  }
  active_ = true;
  waits_since_.reset();
  standby_ = false;  // the device says it again
  epoch_ = epoch;
  all_flushed_ = stable_ = stable;
  if (keeper_) keeper_->activated(epoch, stable);
  for (const auto& report : reports) {
    recoveries_.push_back(report);
    if (mpi_->rank() != 0) continue;
    const std::string_view what =
        report.kind == kKindFailed || report.kind == kKindWithdrawn ? "is out of the world"
        : report.kind == kKindRejoins                               ? "is back in the world"
        : report.kind == kKindLeft                                  ? "has left its run"
        : report.kind == kKindError ? "has met an error that no fault explains"
                                    : "lost its device host";
    log::info("world", "epoch {}: rank {} {} ({}), recovered in {:.0f} ms", epoch, report.rank,
              what, report.kind, report.total_ms);
  }
  changed_.notify_all();
}

void WorldStatus::set_all_flushed(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  all_flushed_ = step;
  changed_.notify_all();
}

void WorldStatus::set_stable(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  stable_ = step;
  ++commits_;
  if (parts_.collector != nullptr && committing_.step == step)
    parts_.collector->span(trace::SpanKind::commit, committing_.since, SteadyClock::time(),
                           "commit of step " + std::to_string(step));
  if (keeper_) keeper_->stable(step);
  changed_.notify_all();
}

void WorldStatus::set_stopping(std::int64_t since) {
  const std::lock_guard lock(mutex_);
  if (!stopping_since_) stopping_since_ = since;
}

void WorldStatus::set_finished(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  ++finished_runs_;
  end_ = step == kAnyStep ? kNoEnd : step;
  all_flushed_ = stable_ = -1;
  if (keeper_) keeper_->stopped();            // what is not stable now never will be
  if (stopping_since_) stopping_since_ = -1;  // another run would end with its first commit
  changed_.notify_all();
}

void WorldStatus::set_left(std::int64_t run, int rank, const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto text = "rank " + std::to_string(rank) + " has left the run: " + error.message;
  left_ = Left{run, {error.code, error.native, text}};
  changed_.notify_all();
}

void WorldStatus::fail_commit(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!commit_error_) commit_error_ = error;
  changed_.notify_all();
}

void WorldStatus::stop(const Error& error) {
  const std::lock_guard lock(mutex_);
  stopped_ = error;
  waits_since_.reset();
  active_ = false;
  if (keeper_) keeper_->stopped();
  parts_.port->gate().set_epoch(Epoch(0));
  parts_.port->gate().close(error);
  parts_.tokens->end_epoch(token_message::kNoMoreEpochs, error);
  parts_.actors->end(error);
  if (parts_.check != nullptr) parts_.check->close(epoch_);
  changed_.notify_all();
}

void WorldStatus::set_split_answer(const from_supervisor::SplitAgreed& answer) {
  const std::lock_guard lock(mutex_);
  split_answer_ = answer;
  changed_.notify_all();
}

std::optional<memory::FaultKind> WorldStatus::take_fault(Phase phase) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(ordered_faults_.begin(), ordered_faults_.end(),
                               [&](const auto& fault) { return fault.first == phase; });
  if (it == ordered_faults_.end()) return std::nullopt;
  const auto kind = it->second;
  ordered_faults_.erase(it);
  return kind;
}

void WorldStatus::set_standby(bool ready) {
  const std::lock_guard lock(mutex_);
  standby_ = ready;
}

void WorldStatus::set_standby_world(bool formed) {
  const std::lock_guard lock(mutex_);
  standby_world_formed_ = formed;
}

void WorldStatus::set_standby_memory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  standby_memory_ = bytes;
}

void WorldStatus::regroup(std::shared_ptr<const HostGroup> group, bool current) {
  const std::lock_guard lock(mutex_);
  if (current) forming_ = group ? group.get() : &mpi_->everyone();
  if (group) host_groups_.push_back(std::move(group));
}

// The program's thread

void WorldStatus::acknowledge() {
  acknowledged_ = newest_;
  program_epoch_.store(epoch_, std::memory_order_release);
  parts_.tokens->begin_epoch(epoch_);
}

Result<Epoch> WorldStatus::wait_active() {
  const Whereabouts::Wait wait(*whereabouts_, "World::wait_active");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || active_; });
  if (stopped_) return *stopped_;
  acknowledge();
  turn_to_members();
  settled_ = acknowledged_.number;
  parts_.port->outcomes().forgive_losses();
  return Epoch(epoch_);
}

Result<WorldStatus::ActiveEpoch> WorldStatus::wait_for_epoch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || active_ || attached_; });
  if (stopped_) return *stopped_;
  if (attached_ && is_interrupted()) return kReformed;
  return ActiveEpoch{epoch_, excluded_};
}

bool WorldStatus::wait_for_end_of_epoch(std::uint32_t epoch, std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return stopped_ || !active_ || epoch_ != epoch; });
}

void WorldStatus::wait_for_end_of_epoch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !active_ || has_new_epoch(); });
  if (stopped_) throw WorldStopped(*stopped_);
}

Result<void> WorldStatus::begin_split() {
  const std::lock_guard lock(mutex_);
  if (stopped_) return *stopped_;
  if (attached_ && is_interrupted()) return kReformed;
  split_answer_.reset();
  return {};
}

std::optional<Result<void>> WorldStatus::wait_for_split(const HostCall& call, bool gives_up) {
  std::unique_lock lock(mutex_);
  const auto answered = [&] {
    return split_answer_ && split_answer_->communicator == call.communicator &&
           split_answer_->number == call.number;
  };
  changed_.wait(
      lock, [&] { return stopped_ || answered() || (gives_up && attached_ && is_interrupted()); });
  // The answer comes first: the others have it too, and go on.
  if (answered()) return split_answer_->code == Errc::ok ? Result<void>() : kReformed;
  if (stopped_) return *stopped_;
  return std::nullopt;
}

void WorldStatus::wait_stable(std::int64_t step) {
  const Whereabouts::Wait wait(*whereabouts_,
                               "World::run for the commit of step " + std::to_string(step));
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return stopped_ || is_interrupted() || stable_ >= step || commit_error_; });
  if (stopped_) throw WorldStopped(*stopped_);
  if (is_interrupted()) throw Exception(kReformed);
  if (stable_ >= step) return;
  (void)parts_.port->outcomes().take_error();  // it is told here
  throw Exception(*commit_error_);
}

void WorldStatus::wait_all_flushed(std::int64_t step) {
  const Whereabouts::Wait wait(
      *whereabouts_,
      "World::run for the requests before the commit of step " + std::to_string(step));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_interrupted() || all_flushed_ >= step; });
  if (stopped_) throw WorldStopped(*stopped_);
  if (is_interrupted()) throw Exception(kReformed);
}

bool WorldStatus::stopping_after(std::int64_t newest) const {
  const std::lock_guard lock(mutex_);
  return stopping_since_ && *stopping_since_ <= newest;
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> WorldStatus::wait_for_abandoned_run() {
  std::unique_lock lock(mutex_);
  if (finished_runs_ == runs_) return std::nullopt;
  changed_.wait(lock, [&] { return stopped_ || active_; });
  if (stopped_ || finished_runs_ == runs_) return std::nullopt;
  return std::pair{runs_ - 1, epoch_};
}

void WorldStatus::wait_for_its_end(std::uint32_t epoch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return stopped_ || !active_ || epoch_ != epoch || finished_runs_ == runs_; });
}

// RunLoop

std::int64_t WorldStatus::end_of_run() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

std::optional<std::uint32_t> WorldStatus::begin_run() {
  const std::lock_guard lock(mutex_);
  if (attached_) return std::nullopt;
  attached_ = true;
  commit_error_.reset();
  if (!active_) parts_.port->gate().close(kReformed);
  return runs_++;
}

std::optional<WorldStatus::Restore> WorldStatus::end_run() {
  const std::lock_guard lock(mutex_);
  attached_ = false;
  waits_since_.reset();
  whereabouts_->set_step(-1);
  if (stopped_) return std::nullopt;
  parts_.port->gate().open();
  return std::exchange(restore_, std::nullopt);
}

bool WorldStatus::interrupted() const {
  const std::lock_guard lock(mutex_);
  return stopped_ || is_interrupted();
}

void WorldStatus::throw_if_ended() const {
  if (stopped_) throw WorldStopped(*stopped_);
  if (is_left()) throw RunLeft(left_->error);
}

void WorldStatus::wait_for_end_of_run() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_left(); });
}

void WorldStatus::throw_end_of_run() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_left(); });
  if (stopped_) throw WorldStopped(*stopped_);
  throw RunLeft(left_->error);
}

void WorldStatus::resume(const ProgramPlace& place) {
  acknowledge();
  commit_error_.reset();
  parts_.port->outcomes().forget_since(place);
  parts_.port->gate().open();
}

std::optional<WorldStatus::Restore> WorldStatus::wait_for_recovery(const ProgramPlace& place) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_left() || restore_ || has_new_epoch(); });
  waits_since_.reset();
  throw_if_ended();
  if (restore_) return std::exchange(restore_, std::nullopt);
  resume(place);
  return std::nullopt;
}

bool WorldStatus::wait_finished(std::uint32_t run) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_runs_ > run || stopped_ || is_interrupted(); });
  if (finished_runs_ > run) return true;
  if (stopped_) throw WorldStopped(*stopped_);
  return false;
}

WorldStatus::Seen WorldStatus::watch(std::uint32_t run, const ProgramPlace& place, bool waits) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (finished_runs_ > run) return Seen::finished;
    throw_if_ended();
    if (has_new_epoch()) {
      resume(place);
      return Seen::new_epoch;
    }
    if (!waits) return Seen::nothing;
    changed_.wait(lock);
  }
}

std::unique_ptr<StateKeeper> WorldStatus::exchange_keeper(std::unique_ptr<StateKeeper> keeper) {
  const std::lock_guard lock(mutex_);
  std::swap(keeper_, keeper);
  if (keeper_) keeper_->activated(epoch_, -1);
  return keeper;
}

std::vector<SavedCheckpoint> WorldStatus::saved() const {
  const std::lock_guard lock(mutex_);
  return keeper_ ? keeper_->saved() : std::vector<SavedCheckpoint>();
}

void WorldStatus::settle() {
  const std::lock_guard lock(mutex_);
  settled_ = acknowledged_.number;
}

}  // namespace troupe::rank_process
