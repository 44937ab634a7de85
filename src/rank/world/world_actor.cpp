#include "rank/world/world_actor.hpp"

#include <algorithm>
#include <cstring>

#include "common/core/log.hpp"
#include "rank/exit_status.hpp"
#include "rank/world/program_call.hpp"

namespace troupe::rank_process {

using namespace world_message;

namespace {

/// How often deadlines are looked at: many times in a phase, seldom enough to cost nothing.
std::chrono::nanoseconds look_every(std::chrono::nanoseconds phase_timeout) {
  return std::clamp<std::chrono::nanoseconds>(phase_timeout / 256, std::chrono::milliseconds(5),
                                              std::chrono::milliseconds(100));
}

constexpr auto kLookForRoom = std::chrono::milliseconds(1);  ///< between tries with a full ring

/// The programs' threads wait in MPI for what never comes: nothing else ends that.
[[noreturn]] void end_the_job(const Error& error) {
  log::error("world", "{}", error.to_string());
  MpiSession::abort(exit_status(error.code));
}

/// Submits what is not the program's business, and waits for nothing.
class OfTheWorld final : public detail::Submitter {
 public:
  explicit OfTheWorld(CommandPort& port) : port_(&port) {}
  Future<void> submit(const detail::CommandView& command) override {
    auto own = command;
    own.quiet = true;
    return port_->try_submit(own);
  }
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }

 private:
  CommandPort* port_;
};

}  // namespace

WorldActor::WorldActor(WorldCore* core, std::shared_ptr<Probe> probe)
    : core_(core),
      probe_(std::move(probe)),
      look_every_(look_every(core->options().phase_timeout)),
      trace_(core->options().collector),
      member_(core->mpi().rank(), this),
      relay_(
          {.rank = core->mpi().rank(),
           .tree = {.size = core->mpi().size()},
           .phase_timeout = core->options().phase_timeout},
          [this](int to, const RankMessage& message) {
            if (to == WorldRelay::kToSupervisor) return hear(message);
            core_->send(to, message);
          },
          [this](int to, const SupervisorMessage& message) { core_->send(to, message); },
          [this](const SupervisorMessage& message) { member_.receive(message); }),
      report_at_(core->options().stall_report),
      late_program_at_(core->options().stall_report) {
  if (core->mpi().rank() != 0) return;
  supervisor_.emplace(
      WorldSupervisor::Options{.size = core->mpi().size(),
                               .phase_timeout = core->options().phase_timeout,
                               .shrink = core->options().shrink,
                               .standby = {.wanted = core->options().standby_world,
                                           .timeout = core->options().phase_timeout}},
      // By way of the transport: rank 0 hears it as the others do, and after this
      // has returned.
      [core](const SupervisorMessage& message) { core->send(0, message); });
  inquiry_.emplace(core->mpi().size(),
                   [core](const SupervisorMessage& message) { core->send(0, message); });
  libraries_.emplace(core->mpi().size());
  splits_.emplace(
      [core](int rank, const SupervisorMessage& message) { core->send(rank, message); });
}

void WorldActor::on(Begin) {
  if (supervisor_) supervisor_->start(context().now());
  tell_library({"engine", core_->device().info().libraries});
  context().schedule(look_every_, Deadline{});
}

void WorldActor::on(FromDevice event) {
  if (const auto* memory = std::get_if<DeviceStandbyMemory>(&event.event))
    return core_->status().standbys().set_memory(memory->bytes);
  if (const auto* opened = std::get_if<DeviceLibrary>(&event.event))
    return tell_library(opened->library);
  if (const auto* standby = std::get_if<DeviceStandby>(&event.event))
    core_->status().standbys().set_ready(standby->ready);
  if (const auto* failed = std::get_if<DeviceFailed>(&event.event)) failed_ = failed->error;
  if (const auto* health = std::get_if<DeviceHealth>(&event.event); health && health->event.failing)
    consider_leaving(health->event.text);
  member_.device_event(event.event);
}

void WorldActor::consider_leaving(const std::string& text) {
  if (!core_->options().leaves_failing || core_->status().health().failing()) return;
  core_->status().health().set_failing(text);
  if (core_->mpi().size() == 1) return log::warn("world", "the GPU stays: it is the only one");
  if (!core_->options().shrink)
    log::warn("world", "the GPU stays: on-health = shrink wants on-loss = shrink");
}

void WorldActor::retire() {
  left_gpu_ = true;
  const auto why = core_->status().health().failing().value_or(std::string());
  core_->device().tell(
      device_message::GiveUp{{Errc::device_failed, 0, "the GPU says that it is failing: " + why}});
}

void WorldActor::on(Deadline) {
  if (supervisor_) {
    supervisor_->tick(context().now());
    tell_of_standby_world();
    report_inquiry();
    splits_->tick(context().now());
    warn(libraries_->tick(context().now()));
  }
  relay_.tick(context().now());
  look_at_progress();
  look_at_program();
  // Only once the epoch has begun: a rank is called spectator as soon as the world is halted for
  // it.
  if (member_.spectator() && !left_gpu_ && member_.phase() == Phase::active &&
      core_->options().rejoin_after.count() != 0 &&
      context().now() - revived_at_ > core_->options().rejoin_after) {
    revived_at_ = context().now();
    core_->device().tell(device_message::Revive{});
  }
  context().schedule(look_every_, Deadline{});
}

void WorldActor::on(FromNetwork message) {
  const auto decoded = decode_world_message(message.bytes);
  if (!decoded.ok()) return log::error("world", "{}", decoded.error().to_string());
  if (const auto* const from_rank = std::get_if<RankMessage>(&*decoded))
    return relay_.up(*from_rank);
  const auto& said = std::get<SupervisorMessage>(*decoded);
  if (const auto* const agreed = std::get_if<from_supervisor::SplitAgreed>(&said))
    return core_->status().splits().set_answer(*agreed);
  if (std::holds_alternative<from_supervisor::AskCall>(said)) return answer_call();
  if (const auto* const order = std::get_if<from_supervisor::Order>(&said))
    log::debug("world", "round {}: {}", order->round, to_string(order->phase));
  relay_.down(said, context().now());
  trace_.at(member_.phase());
}

void WorldActor::hear(const RankMessage& message) {
  const auto now = context().now();
  std::visit(
      [&](const auto& said) {
        if constexpr (requires { inquiry_->receive(said, now); }) {
          inquiry_->receive(said, now);
        } else if constexpr (requires { splits_->receive(said, now); }) {
          report_disagreement(splits_->receive(said, now));
        } else if constexpr (requires { said.library; }) {
          libraries_->receive(said.rank, said.library, now);
        } else {
          supervisor_->receive(message, now);
          tell_of_standby_world();
        }
      },
      message);
}

void WorldActor::tell_of_standby_world() {
  if (core_->options().standby_world)
    core_->status().standbys().set_world(supervisor_->standby_world().formed());
}

bool WorldActor::counts(std::uint32_t epoch, std::uint32_t run) const {
  if (epoch != member_.epoch() || member_.phase() != Phase::active) return false;
  // Else the run was left, and ended, before its last commit was complete.
  return !finished_ || finished_->epoch != epoch || finished_->run < run;
}

void WorldActor::on(Flushed done) {
  if (counts(done.epoch, done.run)) member_.flushed(done.step);
}

void WorldActor::on(Committed done) {
  if (!counts(done.epoch, done.run)) return;
  if (done.outcome.ok()) return member_.committed(done.step);
  const auto code = done.outcome.code();
  if (code != Errc::device_lost && code != Errc::world_reformed)  // else the world re-forms
    core_->status().run().fail_commit(done.outcome.error());
}

void WorldActor::on(Finished done) {
  finished_ = done;
  if (done.epoch == member_.epoch()) member_.finished(done.step);
}

void WorldActor::on(EndEpoch end) {
  if (end.epoch != member_.epoch() || member_.phase() != Phase::active) return;  // it has ended
  member_.device_event(DeviceFault{kKindError, end.error, context().now(), context().now()});
}

void WorldActor::restore(std::uint32_t round, std::int64_t step) {
  if (!core_->status().run().ask_restore(round, step))
    (void)core_->actor().tell(Restored{round, {}, -1, 0});
}
void WorldActor::close_world() {
  core_->device().flight().board().active.store(0, std::memory_order_relaxed);
  core_->status().epochs().close();
}
void WorldActor::halt(std::uint32_t round) {
  core_->device().tell(DeviceOrder{DeviceDone::Order::halt, round});
}
void WorldActor::quiesce(std::uint32_t round) {
  core_->device().tell(DeviceOrder{DeviceDone::Order::quiesce, round});
}
void WorldActor::replace(std::uint32_t round) {
  core_->device().tell(DeviceOrder{DeviceDone::Order::replace, round});
}
void WorldActor::promote(std::uint32_t round, std::uint32_t formation) {
  // One that was made since the standbys formed theirs would be missing.
  if (!core_->groups()->all_in(prepared_)) {
    return member_.device_event(
        DeviceDone{DeviceDone::Order::promote, round, 0,
                   Error{Errc::device_lost, 0, "the standby has not formed all groups"}});
  }
  core_->device().tell(DeviceOrder{DeviceDone::Order::promote, round, formation});
}
void WorldActor::contribute(std::uint32_t round) {
  const auto& out =
      core_->status().members().excluded();  // of the world of now, which only this actor changes
  const bool returns = std::binary_search(out.begin(), out.end(), core_->mpi().rank());
  contributed_ = core_->groups()->listing(member_.excluded(), returns);
  core_->device().tell(
      DeviceOrder{DeviceDone::Order::contribute, round, 0, place(), members(), contributed_});
}
void WorldActor::connect(std::uint32_t round, std::vector<std::vector<std::byte>> contributions) {
  auto formation = connect_order(round, 0, contributed_, std::move(contributions));
  if (!formation.ok())
    return member_.device_event(
        DeviceDone{DeviceDone::Order::connect, round, 0, formation.error()});
  core_->device().tell(std::move(*formation));
}
void WorldActor::prepare_contribute(std::uint32_t formation) {
  prepared_ = core_->groups()->listing(member_.excluded(), false);
  if (prepared_.size() > Groups::kMaxWarm) {
    return member_.device_event(
        DeviceDone{DeviceDone::Order::contribute, 0, formation,
                   Error{Errc::unsupported, 0,
                         "there are more than " + std::to_string(Groups::kMaxWarm) + " groups"}});
  }
  core_->device().tell(
      DeviceOrder{DeviceDone::Order::contribute, 0, formation, place(), members(), prepared_});
}
void WorldActor::prepare_connect(std::uint32_t formation,
                                 std::vector<std::vector<std::byte>> contributions) {
  auto its = connect_order(0, formation, prepared_, std::move(contributions));
  if (!its.ok())
    return member_.device_event(DeviceDone{DeviceDone::Order::connect, 0, formation, its.error()});
  prepared_ = its->groups;
  core_->device().tell(std::move(*its));
}

std::int32_t WorldActor::place() const {
  const auto& excluded = member_.excluded();
  const auto rank = core_->mpi().rank();
  const auto before = std::lower_bound(excluded.begin(), excluded.end(), rank) - excluded.begin();
  return rank - static_cast<std::int32_t>(before);
}
std::int32_t WorldActor::members() const {
  return core_->mpi().size() - static_cast<std::int32_t>(member_.excluded().size());
}

Result<DeviceOrder> WorldActor::connect_order(
    std::uint32_t round, std::uint32_t formation, const std::vector<wire::FormingGroup>& listed,
    std::vector<std::vector<std::byte>> contributions) const {
  const auto& excluded = member_.excluded();
  for (auto rank = excluded.rbegin(); rank != excluded.rend(); ++rank) {
    if (*rank < static_cast<std::int32_t>(contributions.size()))
      contributions.erase(contributions.begin() + *rank);
  }
  std::vector<wire::Contribution> decoded;
  for (const auto& bytes : contributions) {
    auto one = wire::decode_contribution(bytes);
    if (!one.ok()) return one.error();
    decoded.push_back(std::move(*one));
  }
  // It does not matter for a standby world: the active device hosts still have those groups.
  if (formation == 0) core_->groups()->forget(listed, decoded);
  return DeviceOrder{DeviceDone::Order::connect,
                     round,
                     formation,
                     place(),
                     members(),
                     wire::groups_to_form(listed, decoded),
                     std::make_shared<const DeviceOrder::Blobs>(std::move(contributions))};
}

void WorldActor::on(GroupsChanged) {
  const auto& groups = *core_->groups();
  if (!groups.all_in(prepared_) || groups.lacks_any(prepared_))
    member_.groups_changed(core_->status().standbys().own_ready());
}

void WorldActor::regroup(std::uint32_t round) {
  if (member_.excluded().empty()) return on(Regrouped{round, nullptr});
  std::vector<int> ranks;
  for (int rank = 0; rank < core_->mpi().size(); ++rank) {
    if (!std::binary_search(member_.excluded().begin(), member_.excluded().end(), rank))
      ranks.push_back(rank);
  }
  core_->make_group(std::move(ranks), round);
}

void WorldActor::on(Regrouped done) {
  core_->status().members().regroup(std::move(done.group), member_.regrouped(done.round));
}

void WorldActor::verify(std::uint32_t round, std::uint32_t epoch) {
  core_->device().port().gate().set_epoch(Epoch(epoch));
  if (!probe_->on_device.valid()) probe_->on_device.renew();
  probe_->on_host[0] = -1;
  verification_ = {round, epoch, {}};
  on(VerifyOn{round});
}

/// A full ring is no reason to wait in here: the supervisor, on rank 0, must hear of a device host
/// that dies with it.
void WorldActor::on(VerifyOn next) {
  if (next.round != verification_.round || member_.phase() != Phase::verify) return;
  const Gate::Passage passage;
  OfTheWorld port(core_->device().port());
  const auto probe = probe_->on_device.operand();
  auto& commands = verification_.commands;
  const auto submit_next = [&] {
    switch (commands.size()) {
      case 0: {
        const std::int64_t value = place() + 1;
        memory::Fill fill{DType::i64, 1, {}, probe};
        std::memcpy(fill.pattern, &value, sizeof value);
        return detail::submit(port, fill);
      }
      case 1:
        return detail::submit(port,
                              collective::AllReduce{DType::i64, ReduceOp::sum, 0, 1, probe, probe},
                              {}, verification_.epoch);
      default:
        return detail::submit(port, memory::Copy{DType::i64, probe, probe_->on_host.operand()});
    }
  };
  while (commands.size() < 3) {
    auto submitted = submit_next();
    if (submitted.ready() && submitted.wait().code() == Errc::would_block) {
      (void)context().schedule(kLookForRoom, next);
      return;
    }
    commands.push_back(std::move(submitted));
  }
  context().pipe(when_all(std::move(commands)), [round = next.round](const Result<void>& outcome) {
    return Verified{round, outcome};
  });
}

void WorldActor::on(Verified done) {
  const std::int64_t size = members(), expected = size * (size + 1) / 2;
  if (done.outcome.ok() && probe_->on_host[0] != expected) {
    done.outcome =
        Error{Errc::library, 0,
              "the new communicator's all_reduce gives " + std::to_string(probe_->on_host[0]) +
                  ", not " + std::to_string(expected)};
  }
  member_.verified(done.round, done.outcome);
}

void WorldActor::activate(std::uint32_t epoch, std::int64_t stable, std::vector<Recovery> reports) {
  if (member_.spectator() && failed_)
    log::warn("world", "the world goes on without this rank: {}", failed_->to_string());
  failed_.reset();
  trace_.recovered(epoch, reports);
  core_->status().epochs().activate(epoch, stable, reports, member_.excluded());
  auto& board = core_->device().flight().board();
  board.epoch.store(epoch, std::memory_order_relaxed);
  board.recoveries.store(static_cast<std::uint32_t>(core_->status().epochs().recoveries().size()),
                         std::memory_order_relaxed);
  board.active.store(1, std::memory_order_relaxed);
  revived_at_ = context().now();
  core_->device().tell(device_message::WorldActive{});
}

// Progress

std::chrono::nanoseconds WorldActor::waited() const {
  const auto now = SteadyClock::time();
  const auto since = core_->whereabouts().now().since;
  const auto program = since == TimePoint{} ? std::chrono::nanoseconds{} : now - since;
  const auto commands =
      retired_since_ == TimePoint{} ? std::chrono::nanoseconds{} : now - retired_since_;
  return std::max(program, commands);
}

void WorldActor::look_at_progress() {
  const auto& port = core_->device().port();
  const auto retired = port.retired();
  if (retired != retired_ || retired == port.submitted() || retired_since_ == TimePoint{})
    retired_since_ = SteadyClock::time();
  if (retired == port.submitted()) retired_since_ = {};
  retired_ = retired;
  const auto wait = waited();
  if (core_->whereabouts().at_the_end()) return;  // the others may take their time
  if (wait < core_->options().stall_report) report_at_ = core_->options().stall_report;
  // A recovery's phases have deadlines of their own, which say who is late.
  if (core_->options().stall_report.count() == 0 || wait < report_at_ ||
      member_.phase() != Phase::active)
    return;
  report_at_ = 2 * wait;
  relay_.up(from_rank::Stalled{core_->mpi().rank()});
}

void WorldActor::look_at_program() {
  const auto since = core_->status().run().recovery_waits_since();
  if (!since) late_program_at_ = core_->options().stall_report;
  if (!since || core_->options().stall_report.count() == 0) return;
  const auto wait = SteadyClock::time() - *since;
  if (wait < late_program_at_) return;
  late_program_at_ = 2 * wait;
  const auto call = mpi_call_of_main_thread();
  log::warn(
      "world",
      "a recovery has waited for {} s for this rank's program, which is {}{}: nothing interrupts "
      "what it calls there by itself, such as MPI",
      std::chrono::duration_cast<std::chrono::seconds>(wait).count(),
      core_->whereabouts().now().text, call ? ", in " + *call : "");
}

void WorldActor::answer(std::uint32_t inquiry) {
  const auto where = core_->whereabouts().now();
  auto text = member_.spectator() ? "out of the world, " + where.text : where.text;
  if (where.since == TimePoint{}) {  // at work, by itself: a wait of troupe's has a name already
    if (const auto call = mpi_call_of_main_thread()) text += ", in " + *call;
  }
  const auto& port = core_->device().port();
  const auto oldest = port.retired() + 1;
  if (oldest <= port.submitted()) {
    const auto command = core_->device().flight().describe(oldest);
    text += command.empty() ? "" : ", its device in " + command;
  }
  core_->device().flight().dump("no progress");
  relay_.up(from_rank::Standing{
      .rank = core_->mpi().rank(),
      .inquiry = inquiry,
      .text = text,
      .step = where.step,
      .waited_us = std::chrono::duration_cast<std::chrono::microseconds>(waited()).count(),
      .awaits = where.awaits});
}

void WorldActor::report_inquiry() {
  const auto finding = inquiry_->tick(context().now());
  if (!finding) return;
  log::warn("world", "{}", finding->text);
  if (finding->deadlock) end_the_job(*finding->deadlock);
  if (finding->error) supervisor_->end(*finding->error);
}

/// Straight to rank 0.
void WorldActor::answer_call() {
  from_rank::AtCall answer{.rank = core_->mpi().rank()};
  if (auto call = core_->whereabouts().call()) {
    answer.awaits = Awaits::host_call;
    answer.call = std::move(*call);
  } else if (core_->whereabouts().at_the_end()) {
    answer.awaits = Awaits::end_of_program;
    answer.place = core_->whereabouts().now().text;
  }
  core_->send(0, answer);
}

void WorldActor::report_disagreement(const std::optional<SplitOrder::Finding>& finding) {
  if (!finding || supervisor_->stopped()) return;
  if (finding->in_mpi) end_the_job(finding->error);
  supervisor_->end(finding->error);
}

// Libraries

/// Straight to rank 0: it is rare, and at the end of the program nobody relays any more.
void WorldActor::tell_library(const OpenedLibrary& library) {
  if (library.stands_on.empty()) return;
  core_->send(0, from_rank::Library{core_->mpi().rank(), library});
}

void WorldActor::warn(const std::vector<std::string>& lines) {
  for (const auto& line : lines) log::warn("world", "{}", line);
}

bool WorldActor::on(Conclude conclude) {
  if (conclude.all_left && libraries_) warn(libraries_->conclude());
  return true;
}

void WorldActor::strike(Phase phase) {
  if (const auto kind = core_->status().faults().take(phase)) {
    core_->device().tell(device_message::Suffer{*kind});
  }
}

}  // namespace troupe::rank_process
