#include "rank/world/world_core.hpp"

#include <algorithm>
#include <thread>

#include "common/core/log.hpp"
#include "rank/world/world_actor.hpp"

namespace troupe::rank {
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

const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

}  // namespace

Result<std::shared_ptr<WorldCore>> WorldCore::open(ActorSystem& system, MpiSession& mpi,
                                                   std::shared_ptr<DeviceCore> device,
                                                   Options options) {
  std::shared_ptr<WorldCore> core(new WorldCore(mpi, std::move(device)));
  Device program(core->device_);
  Result<void> ready;
  try {
    core->probe_ = program.alloc<std::int64_t>(1);
    core->probed_ = program.pinned<std::int64_t>(1);
  } catch (const Exception& e) {
    ready = e.error();
  }
  if (auto agreed = mpi.agree(ready); !agreed) return agreed.error();
  auto tokens = TokenRouter::open(system, mpi, core->device_, options.tokens);
  if (!tokens) return tokens.error();
  core->tokens_ = std::move(*tokens);
  core->actor_ = system.spawn<WorldActor>({.name = "world", .mailbox_capacity = 1u << 16},
                                          core.get(), options);
  core->transport_ = std::make_unique<MpiTransport>(
      mpi, MpiTransport::Channel::world, [actor = core->actor_](std::vector<std::byte> bytes) {
        (void)actor.tell(world_message::FromNetwork{std::move(bytes)});
      });
  core->device_->tell(device_message::Listen{[actor = core->actor_](DeviceEvent event) {
    (void)actor.tell(world_message::FromDevice{std::move(event)});
  }});
  mpi.barrier();  // every transport listens
  (void)core->actor_.tell(world_message::Begin{});
  if (auto formed = core->wait_active(); !formed) return formed.error();
  return core;
}

WorldCore::~WorldCore() {
  if (tokens_) tokens_->end();  // the others' requests are served until they are here too
  if (transport_)
    transport_->leave();  // until all have left the supervisor is needed, and the actors speak
  actor_.stop();
  while (!actor_.ended())
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // a handler may be at work here
}

// The WorldActor's side

void WorldCore::close() {
  const std::lock_guard lock(mutex_);
  active_ = false;
  finished_ = false;
  restore_.reset();
  device_->port().set_epoch(Epoch(0));
  if (attached_) device_->port().close_gate(kReformed);
  changed_.notify_all();
}

void WorldCore::ask_restore(std::uint32_t round, std::int64_t step) {
  {
    const std::lock_guard lock(mutex_);
    if (attached_) {
      restore_ = Restore{round, step};
      changed_.notify_all();
      return;
    }
  }
  (void)actor_.tell(world_message::Restored{round, {}, -1, 0});
}

void WorldCore::activate(std::uint32_t epoch, std::int64_t stable,
                         const std::vector<RecoveryReport>& reports) {
  const std::lock_guard lock(mutex_);
  active_ = true;
  epoch_ = epoch;
  stable_ = stable;
  for (const auto& report : reports) {
    recoveries_.push_back(to_recovery(report));
    if (mpi_->rank() == 0) {
      log::info("world", "epoch {}: rank {} lost its device host ({}), recovered in {:.0f} ms",
                epoch, report.rank, report.kind, report.total_ms);
    }
  }
  changed_.notify_all();
}

void WorldCore::set_stable(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  stable_ = step;
  changed_.notify_all();
}

void WorldCore::set_finished() {
  const std::lock_guard lock(mutex_);
  finished_ = true;
  stable_ = -1;
  changed_.notify_all();
}

void WorldCore::stop(const Error& error) {
  const std::lock_guard lock(mutex_);
  stopped_ = error;
  active_ = false;
  device_->port().set_epoch(Epoch(0));
  device_->port().close_gate(error);
  changed_.notify_all();
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

void WorldCore::device_event(DeviceEvent event) {
  (void)actor_.tell(world_message::FromDevice{std::move(event)});
}

// The program's thread

Result<Epoch> WorldCore::wait_active() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || active_; });
  if (stopped_) return *stopped_;
  program_epoch_.store(epoch_, std::memory_order_release);
  return Epoch(epoch_);
}

std::vector<Recovery> WorldCore::recoveries() const {
  const std::lock_guard lock(mutex_);
  return recoveries_;
}

void WorldCore::inject_in_phase(memory::FaultKind kind, Phase phase) {
  const std::lock_guard lock(mutex_);
  ordered_faults_.emplace_back(phase, kind);
}

bool WorldCore::interrupted() const {
  const std::lock_guard lock(mutex_);
  return stopped_ || !active_ || epoch_ != program_epoch_.load(std::memory_order_relaxed);
}

void WorldCore::run(Checkpoint& checkpoint, const std::function<Step(std::int64_t)>& step,
                    const RunOptions& options) {
  check(options.commit_every >= 1, "commit_every must be at least 1");
  {
    const std::lock_guard lock(mutex_);
    check(!attached_, "one run at a time");
    attached_ = true;
    finished_ = false;
    if (!active_) device_->port().close_gate(kReformed);
  }
  struct Detach {
    WorldCore* core;
    ~Detach() {
      const std::lock_guard lock(core->mutex_);
      core->attached_ = false;
      core->at_step_ = -1;
    }
  } detach{this};

  std::int64_t from = options.first_step;
  for (;;) {
    try {
      const bool first = checkpoint.newest() < 0;
      if (first) commit_first(checkpoint, from);
      attempt(checkpoint, step, from, options);
      return;
    } catch (const Exception& e) {
      const bool by_fault =
          e.code() == Errc::device_lost || e.code() == Errc::world_reformed ||
          ((e.code() == Errc::stale || e.code() == Errc::peer_lost) && interrupted());
      if (!by_fault) throw;
      log::debug("world", "the run is interrupted: {}", e.what());
    }
    const auto restored = recover(checkpoint);
    from = restored >= 0 ? restored : options.first_step;
  }
}

std::int64_t WorldCore::attempt(Checkpoint& checkpoint,
                                const std::function<Step(std::int64_t)>& step, std::int64_t from,
                                const RunOptions& options) {
  for (std::int64_t i = from;; ++i) {
    {
      const std::lock_guard lock(mutex_);
      at_step_ = i;
    }
    if (interrupted()) throw Exception(kReformed);
    const auto answer = step(i);
    if (const auto error = device_->port().take_error()) throw Exception(*error);
    if (answer == Step::done) {
      finish(checkpoint);
      return i;
    }
    if ((i + 1 - options.first_step) % options.commit_every == 0) commit(checkpoint, i + 1);
  }
}

void WorldCore::commit(Checkpoint& checkpoint, std::int64_t step) {
  // The half to be overwritten holds the commit before the newest: nobody may still need it.
  if (checkpoint.newest() >= 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || !active_ || stable_ >= checkpoint.newest(); });
    if (stopped_) throw CollectiveException(*stopped_);
    if (!active_ || epoch_ != program_epoch_.load()) throw Exception(kReformed);
  }
  const auto epoch = program_epoch_.load();
  checkpoint.commit(step).on_ready([actor = actor_, epoch, step](const Result<void>& outcome) {
    if (outcome.ok()) (void)actor.tell(world_message::Committed{epoch, step});
  });
}

void WorldCore::commit_first(Checkpoint& checkpoint, std::int64_t step) {
  commit(checkpoint, step);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || !active_ || stable_ >= step; });
  if (stopped_) throw CollectiveException(*stopped_);
  if (!active_ || epoch_ != program_epoch_.load()) throw Exception(kReformed);
}

void WorldCore::finish(const Checkpoint& checkpoint) {
  std::unique_lock lock(mutex_);
  // A commit on its way must not be taken for one of the next run.
  changed_.wait(lock, [&] { return stopped_ || !active_ || stable_ >= checkpoint.newest(); });
  (void)actor_.tell(world_message::Finished{program_epoch_.load()});
  changed_.wait(lock, [&] { return stopped_ || !active_ || finished_; });
  if (finished_) return;
  if (stopped_) throw CollectiveException(*stopped_);
  throw Exception(kReformed);
}

std::int64_t WorldCore::recover(Checkpoint& checkpoint) {
  std::int64_t iteration = -1;
  std::optional<std::int64_t> restored;
  std::unique_lock lock(mutex_);
  iteration = at_step_;
  for (;;) {
    changed_.wait(lock, [&] {
      return stopped_ || restore_ ||
             (active_ && epoch_ != program_epoch_.load(std::memory_order_relaxed));
    });
    if (stopped_) throw CollectiveException(*stopped_);
    if (restore_) {
      const auto order = *std::exchange(restore_, std::nullopt);
      lock.unlock();
      const CommandPort::Passage passage;
      // Without a commit everywhere no step has run yet: the state is what it was.
      const auto outcome = order.step >= 0 ? checkpoint.rollback(order.step) : checkpoint.forget();
      if (outcome.ok()) restored = order.step;
      if (outcome.code() == Errc::internal) throw Exception(outcome.error());
      (void)actor_.tell(world_message::Restored{order.round, outcome, iteration,
                                                std::max<std::int64_t>(0, iteration - order.step)});
      lock.lock();
      continue;
    }
    program_epoch_.store(epoch_, std::memory_order_release);
    device_->port().open_gate();
    (void)device_->port().take_error();  // what failed on the way was rolled back
    check(restored.has_value(), "the world became active without a rollback of this rank");
    return *restored;
  }
}

}  // namespace troupe::rank

namespace troupe {

int World::rank() const {
  return core_->mpi().rank();
}
int World::size() const {
  return core_->mpi().size();
}
int World::local_rank() const {
  return core_->mpi().local_rank();
}
int World::local_size() const {
  return core_->mpi().local_size();
}
Epoch World::epoch() const {
  return core_->epoch();
}
Result<Epoch> World::wait_active() {
  return core_->wait_active();
}
void World::run(Checkpoint& checkpoint, const std::function<Step(std::int64_t)>& step,
                const RunOptions& options) {
  core_->run(checkpoint, step, options);
}
std::vector<Recovery> World::recoveries() const {
  return core_->recoveries();
}

Future<void> World::fetch_range(const GpuToken& token, DType dtype, const Operand& destination) {
  return core_->tokens().fetch(token, dtype, destination);
}
Future<void> World::put_range(const Operand& source, DType dtype, const GpuToken& token) {
  return core_->tokens().put(source, dtype, token);
}
Future<TokenLease> World::hold(const GpuToken& token) {
  return core_->tokens().hold(token);
}
RemoteDevice World::device(Rank rank) {
  return core_->tokens().device(rank);
}

bool World::inject_in_phase(memory::FaultKind kind, const std::string& phase) {
  for (std::size_t i = 1; i < rank::kPhaseCount; ++i) {
    if (phase != to_string(static_cast<rank::Phase>(i))) continue;
    core_->inject_in_phase(kind, static_cast<rank::Phase>(i));
    return true;
  }
  return false;
}

void World::barrier() {
  core_->mpi().barrier();
}
std::vector<std::string> World::gather_text(const std::string& text) {
  return core_->mpi().gather_text(text);
}
void World::host_all_gather(std::span<const std::byte> value, std::span<std::byte> all) {
  core_->mpi().all_gather(value, all);
}
std::vector<std::vector<std::byte>> World::host_all_to_all(
    const std::vector<std::vector<std::byte>>& outgoing) {
  return core_->mpi().all_to_all(outgoing);
}

void World::agree(const Result<void>& outcome) {
  const auto agreed = core_->mpi().agree(outcome);
  if (!agreed.ok()) throw CollectiveException(agreed.error());
}

}  // namespace troupe
