#include "rank/world/world_core.hpp"

#include <algorithm>

#include "common/core/log.hpp"
#include "rank/device/outcome_log.hpp"
#include "rank/exit_status.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank_process {
namespace {

Recovery to_recovery(const RecoveryReport& report) {
  return {.rank = report.rank,
          .kind = report.kind,
          .iteration = report.iteration,
          .epoch = report.epoch,
          .detect_ms = report.detect_ms,
          .quiesce_ms = report.quiesce_ms,
          .replace_ms = report.replace_ms,
          .form_ms = report.form_ms,
          .verify_ms = report.verify_ms,
          .restore_ms = report.restore_ms,
          .total_ms = report.total_ms,
          .lost_buffers = report.lost_buffers,
          .repeated_iterations = report.repeated};
}

constexpr auto kConclude = std::chrono::seconds(10);  ///< it takes milliseconds

/// An error of another rank's actor, of which the program must hear: with a code by which a loss is
/// known it would pass for one of this rank's, that need not be told.
Error as_reported(const Error& error) {
  if (!OutcomeLog::is_loss(error.code)) return error;
  const auto code = error.code == Errc::stopped ? Errc::invalid : Errc::peer_lost;
  return {code, error.native, error.to_string()};
}

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

}  // namespace

Result<std::shared_ptr<WorldCore>> WorldCore::open(ActorSystem& system, MpiSession& mpi,
                                                   std::shared_ptr<DeviceCore> device,
                                                   Options options) {
  std::shared_ptr<WorldCore> core(new WorldCore(mpi, std::move(device)));
  core->save_options_ = options.save;
  core->rehearsal_ = options.rehearsal;
  core->stop_on_loss_ = options.stop_on_loss;
  core->shrink_ = options.shrink;
  core->phase_timeout_ = options.phase_timeout;
  Device program(core->device_);
  Result<void> ready;
  try {
    core->probe_ = program.alloc<std::int64_t>(1);
    core->probed_ = program.pinned<std::int64_t>(1);
  } catch (const Exception& e) {
    ready = e.error();
  }
  if (auto agreed = mpi.everyone().agree(ready); !agreed) return agreed.error();
  auto tokens = TokenRouter::open(system, mpi, core->device_, options.tokens,
                                  [core = core.get()] { return core->attached_.load(); });
  if (!tokens) return tokens.error();
  core->tokens_ = std::move(*tokens);
  core->open_actors(system.scheduler());
  if (options.check_collectives) {
    core->check_ = std::make_unique<CollectiveCheck>(
        mpi, core->device_->port(),
        [c = core.get()](std::uint32_t group) { return c->place_in(group); });
  }
  core->device_->set_collectives([c = core.get()]() -> DeviceCore::Collectives {
    return {&c->collectives(), c->epoch().value};
  });
  core->actor_ = system.spawn<WorldActor>({.name = "world", .mailbox_capacity = 1u << 16},
                                          core.get(), options);
  core->transport_ = std::make_unique<MpiTransport>(
      mpi, MpiTransport::Channel::world, [actor = core->actor_](std::vector<std::byte> bytes) {
        (void)actor.tell(world_message::FromNetwork{std::move(bytes)});
      });
  core->device_->tell(device_message::Listen{[actor = core->actor_](DeviceEvent event) {
    (void)actor.tell(world_message::FromDevice{std::move(event)});
  }});
  mpi.everyone().barrier();  // every transport listens
  (void)core->actor_.tell(world_message::Begin{});
  core->device_->flight().set_whereabouts(
      [core = core.get()] { return core->whereabouts_.now().text; });
  if (auto formed = core->wait_active(); !formed) return formed.error();
  return core;
}

CollectiveCheck::Place WorldCore::place_in(std::uint32_t group) const {
  const auto entry = group != wire::kWorld ? groups_->find(group) : nullptr;
  const auto* const view = entry ? &entry->view(members()) : nullptr;
  const auto& ranks = view != nullptr ? view->ranks : members().ranks();
  return {epoch().value, view != nullptr ? view->rank : members().rank(),
          static_cast<int>(ranks.size()), ranks.empty() ? 0 : ranks.front()};
}

void WorldCore::open_actors(Scheduler& scheduler) {
  actor_transport_ = std::make_shared<std::unique_ptr<MpiTransport>>();
  actors_ = ActorPost::make(
      {.rank = mpi_->rank(),
       .size = mpi_->size(),
       .scheduler = &scheduler,
       .send = [transport = actor_transport_](
                   int rank,
                   std::vector<std::byte> bytes) { (*transport)->send(rank, std::move(bytes)); },
       .report = [device = device_](
                     const Error& error) { (void)device->port().report(as_reported(error)); },
       .progress = &device_->port()});
  *actor_transport_ =
      std::make_unique<MpiTransport>(*mpi_, MpiTransport::Channel::actors,
                                     [post = actors_.get()](const std::vector<std::byte>& bytes) {
                                       if (const auto read = post->received(bytes); !read)
                                         log::error("actor", "{}", read.error().to_string());
                                     });
}

void WorldCore::leave_actors() {
  const Whereabouts::Wait wait(whereabouts_, "the end of the program",
                               Whereabouts::Sort::end_of_program);
  (*actor_transport_)->leave();
  actors_->end(Error{Errc::stopped, 0, "the runtime has ended"});
}

WorldCore::~WorldCore() {
  if (actors_) leave_actors();
  device_->flight().set_whereabouts(nullptr);
  const Whereabouts::Wait wait(whereabouts_, "the end of the program",
                               Whereabouts::Sort::end_of_program);
  if (tokens_) tokens_->end();  // the others' requests are served until they are here too
  if (keeper_) end_abandoned_runs();
  if (check_) check_->leave();
  if (keeper_) keeper_->close();  // while the world can still say what becomes of its last commit
  // What the device has loaded last is on its way to rank 0 before this rank leaves.
  if (transport_ && !actor_.ended()) {
    (void)device_->libraries();
    (void)actor_.ask(world_message::Conclude{false}, kConclude).wait();
  }
  if (transport_)
    transport_->leave();  // until all have left the supervisor is needed, and the actors speak
  if (transport_ && mpi_->rank() == 0 && !actor_.ended())
    (void)actor_.ask(world_message::Conclude{true}, kConclude).wait();
  actor_.stop();
  actor_.wait_ended();  // a handler may be at work here
  for (auto& maker : group_makers_) MpiSession::forsaken() ? maker.detach() : maker.join();
  groups_->close();  // with MPI there, whatever the program still has of them
}

// The WorldActor's side

void WorldCore::close() {
  const std::lock_guard lock(mutex_);
  active_ = false;
  restore_.reset();
  device_->port().set_epoch(Epoch(0));
  tokens_->end_epoch(epoch_, kReformed);
  if (check_) check_->close(epoch_);
  if (attached_) device_->port().close_gate(kReformed);
  changed_.notify_all();
}

void WorldCore::ask_restore(std::uint32_t round, std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    // Without the members' state there is nothing to go back to: that of the members before is
    // still needed, for theirs is made from it.
    if (attached_ && !watches() && newest_.number == settled_) {
      restore_ = Restore{round, step};
      changed_.notify_all();
      return;
    }
  }
  (void)actor_.tell(world_message::Restored{round, {}, -1, 0});
}

void WorldCore::activate(std::uint32_t epoch, std::int64_t stable,
                         const std::vector<RecoveryReport>& reports,
                         const std::vector<std::int32_t>& excluded) {
  const std::lock_guard lock(mutex_);
  if (excluded != excluded_) {
    const bool out = std::binary_search(excluded.begin(), excluded.end(), mpi_->rank());
    newest_ = {newest_.number + 1, out ? &nobody_ : forming_};
    excluded_ = excluded;
    tokens_->set_excluded(excluded);
    actors_->set_excluded(excluded);
  }
  active_ = true;
  standby_ = false;  // the device says it again
  epoch_ = epoch;
  all_flushed_ = stable_ = stable;
  if (keeper_) keeper_->activated(epoch, stable);
  for (const auto& report : reports) {
    recoveries_.push_back(to_recovery(report));
    if (mpi_->rank() != 0) continue;
    const std::string_view what = report.kind == kKindFailed    ? "is out of the world"
                                  : report.kind == kKindRejoins ? "is back in the world"
                                  : report.kind == kKindLeft    ? "has left its run"
                                                                : "lost its device host";
    log::info("world", "epoch {}: rank {} {} ({}), recovered in {:.0f} ms", epoch, report.rank,
              what, report.kind, report.total_ms);
  }
  changed_.notify_all();
}

void WorldCore::set_all_flushed(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  all_flushed_ = step;
  changed_.notify_all();
}

void WorldCore::set_stable(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  stable_ = step;
  if (keeper_) keeper_->stable(step);
  changed_.notify_all();
}

void WorldCore::set_stopping(std::int64_t since) {
  const std::lock_guard lock(mutex_);
  if (!stopping_since_) stopping_since_ = since;
}

void WorldCore::set_finished() {
  const std::lock_guard lock(mutex_);
  ++finished_runs_;
  all_flushed_ = stable_ = -1;
  if (keeper_) keeper_->stopped();            // what is not stable now never will be
  if (stopping_since_) stopping_since_ = -1;  // another run would end with its first commit
  changed_.notify_all();
}

void WorldCore::set_left(std::int64_t run, int rank, const Error& error) {
  const std::lock_guard lock(mutex_);
  const auto text = "rank " + std::to_string(rank) + " has left the run: " + error.message;
  left_ = Left{run, {error.code, error.native, text}};
  changed_.notify_all();
}

void WorldCore::fail_commit(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!commit_error_) commit_error_ = error;
  changed_.notify_all();
}

void WorldCore::stop(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = error;
    active_ = false;
    if (keeper_) keeper_->stopped();
    device_->port().set_epoch(Epoch(0));
    device_->port().close_gate(error);
    tokens_->end_epoch(token_message::kNoMoreEpochs, error);
    actors_->end(error);
    if (check_) check_->close(epoch_);
    changed_.notify_all();
  }
  // A collective with a rank that is gone would never end. Unlocked: whoever waits is told here.
  device_->port().end(error);
  transport_->watch(phase_timeout_, [error](const std::vector<int>& ranks, bool again) {
    forsake(error, ranks, again);
  });
}

void WorldCore::forsake(const Error& error, const std::vector<int>& ranks, bool again) {
  // The program, on its own thread, may be waiting for them in a host collective.
  if (again) MpiSession::abort(exit_status(error.code));
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  log::warn("world", "the job ends without waiting for rank{} {}, silent since it was stopped: {}",
            ranks.size() == 1 ? "" : "s", names, error.to_string());
  MpiSession::forsake();
}

std::optional<memory::FaultKind> WorldCore::take_fault(Phase phase) {
  const std::lock_guard lock(mutex_);
  const auto it = std::find_if(ordered_faults_.begin(), ordered_faults_.end(),
                               [&](const auto& fault) { return fault.first == phase; });
  if (it == ordered_faults_.end()) return std::nullopt;
  const auto kind = it->second;
  ordered_faults_.erase(it);
  return kind;
}

void WorldCore::set_standby(bool ready) {
  const std::lock_guard lock(mutex_);
  standby_ = ready;
}

void WorldCore::set_standby_world(bool formed) {
  const std::lock_guard lock(mutex_);
  standby_world_formed_ = formed;
}

void WorldCore::make_group(std::vector<int> ranks, std::uint32_t round) {
  group_makers_.emplace_back([actor = actor_, mpi = mpi_, ranks = std::move(ranks), round] {
    (void)actor.tell(world_message::Regrouped{
        round, mpi->make_group(ranks, MpiSession::GroupTag::world, static_cast<int>(round))});
  });
}

void WorldCore::regroup(std::shared_ptr<const HostGroup> group, bool current) {
  const std::lock_guard lock(mutex_);
  if (current) forming_ = group ? group.get() : &mpi_->everyone();
  if (group) host_groups_.push_back(std::move(group));
}

void WorldCore::device_event(DeviceEvent event) {
  (void)actor_.tell(world_message::FromDevice{std::move(event)});
}

// The program's thread

Result<Epoch> WorldCore::wait_active() {
  const Whereabouts::Wait wait(whereabouts_, "World::wait_active");
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || active_; });
  if (stopped_) return *stopped_;
  acknowledge();
  turn_to_members();
  settle();
  device_->port().forgive_losses();
  return Epoch(epoch_);
}

Result<WorldCore::ActiveEpoch> WorldCore::wait_for_epoch() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || active_ || attached_; });
  if (stopped_) return *stopped_;
  if (attached_ && is_interrupted()) return kReformed;
  return ActiveEpoch{epoch_, excluded_};
}

bool WorldCore::wait_for_end_of_epoch(std::uint32_t epoch, std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return stopped_ || !active_ || epoch_ != epoch; });
}

Result<void> WorldCore::agree_on_split(const HostCall& call) {
  if (call.ranks.size() < 2) return {};
  std::unique_lock lock(mutex_);
  const auto interrupted = [&] { return attached_ && is_interrupted(); };
  if (stopped_) return *stopped_;
  if (interrupted()) return kReformed;
  split_answer_.reset();
  WorldMessage message{
      .kind = WorldMessage::Kind::splitting, .rank = mpi_->rank(), .payload = encode(call)};
  transport_->send(0, encode(message));
  const auto answered = [&] {
    return stopped_ || (split_answer_ && split_answer_->communicator == call.communicator &&
                        split_answer_->number == call.number);
  };
  changed_.wait(lock, [&] { return answered() || interrupted(); });
  if (!answered()) {  // the others may have come meanwhile: rank 0 knows
    message.kind = WorldMessage::Kind::split_given_up;
    transport_->send(0, encode(message));
    changed_.wait(lock, answered);
  }
  if (stopped_) return *stopped_;
  if (split_answer_->code != Errc::ok) return kReformed;
  return {};
}

void WorldCore::set_split_answer(const SplitAnswer& answer) {
  const std::lock_guard lock(mutex_);
  split_answer_ = answer;
  changed_.notify_all();
}

void WorldCore::groups_changed() {
  (void)actor_.tell(world_message::GroupsChanged{});
}

void WorldCore::acknowledge() {
  acknowledged_ = newest_;
  program_epoch_.store(epoch_, std::memory_order_release);
  tokens_->begin_epoch(epoch_);
}

std::vector<Recovery> WorldCore::recoveries() const {
  const std::lock_guard lock(mutex_);
  return recoveries_;
}

void WorldCore::request_stop() {
  (void)actor_.tell(world_message::AskToStop{});
}

void WorldCore::inject_in_phase(memory::FaultKind kind, Phase phase) {
  const std::lock_guard lock(mutex_);
  ordered_faults_.emplace_back(phase, kind);
}

bool WorldCore::standby_ready() const {
  const std::lock_guard lock(mutex_);
  return active_ && standby_ && standby_world_formed_;
}

void WorldCore::wait_stable(std::int64_t step) {
  const Whereabouts::Wait wait(whereabouts_,
                               "World::run for the commit of step " + std::to_string(step));
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return stopped_ || is_interrupted() || stable_ >= step || commit_error_; });
  if (stopped_) throw WorldStopped(*stopped_);
  if (is_interrupted()) throw Exception(kReformed);
  if (stable_ >= step) return;
  (void)device_->port().take_error();  // it is told here
  throw Exception(*commit_error_);
}

void WorldCore::wait_all_flushed(std::int64_t step) {
  const Whereabouts::Wait wait(
      whereabouts_,
      "World::run for the requests before the commit of step " + std::to_string(step));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_interrupted() || all_flushed_ >= step; });
  if (stopped_) throw WorldStopped(*stopped_);
  if (is_interrupted()) throw Exception(kReformed);
}

void WorldCore::end_abandoned_runs() {
  const Whereabouts::Wait wait(whereabouts_, "World::run for the end of the run before");
  std::unique_lock lock(mutex_);
  while (finished_runs_ < runs_) {
    changed_.wait(lock, [&] { return stopped_ || active_; });
    if (stopped_) return;
    const auto epoch = epoch_;
    (void)actor_.tell(world_message::Finished{epoch, runs_ - 1});
    changed_.wait(
        lock, [&] { return stopped_ || !active_ || epoch_ != epoch || finished_runs_ == runs_; });
  }
}

bool WorldCore::stopping_after(std::int64_t newest) const {
  const std::lock_guard lock(mutex_);
  return stopping_since_ && *stopping_since_ <= newest;
}

}  // namespace troupe::rank_process
