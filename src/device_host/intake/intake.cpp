#include "device_host/intake/intake.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace troupe::host {
namespace {

/// Commands on a queue that wait for other ranks: beyond that the next one is set aside. A stream
/// of CUDA's takes some 1,000 launches; then a launch blocks, and with it the reactor.
constexpr Sequence kMaxForPeers = 512;

/// For the other ranks of a host before a collective is set aside: some 10 us. Ranks in step need
/// no more than one of them needs to launch a collective.
constexpr int kLooksForOthers = 250;

}  // namespace

/// A command that an operation of a library, or of the reactor's own, carries out.
class Intake::SingleCommand {
 public:
  SingleCommand(const Parts& parts, const wire::Command& command)
      : parts_(parts), command_(command), lane_(command.lane()) {}

  [[nodiscard]] Queue queue(const Waits& waits) const {
    return parts_.core.lanes.queue_of(lane_, waits);
  }
  [[nodiscard]] Result<bool> libraries_ready() const { return parts_.libraries.ready(lane_); }
  [[nodiscard]] bool is_full(Queue queue) const {
    const auto& lanes = parts_.core.lanes;
    return lanes.issued(queue) - lanes.completed(queue) >= kMaxForPeers;
  }
  [[nodiscard]] static bool cells_read() { return true; }
  [[nodiscard]] Result<void> fits() const { return parts_.formation.meetings().fits(command_); }
  [[nodiscard]] std::vector<Link> new_links(const Call& call) const {
    return parts_.core.engine->collectives().new_links(command_.info(), command_.op(), call);
  }
  [[nodiscard]] bool ends_at_once(const Call& call) const {
    return command_.info().traits.collective &&
           parts_.core.engine->collectives().ends_at_once(command_.info(), command_.op(), call);
  }
  [[nodiscard]] static bool waits_at_branch(Queue, const Waits&) { return false; }
  [[nodiscard]] static bool is_sequence() { return false; }
  [[nodiscard]] bool needs_thread(Queue, const Call& call) const {
    return parts_.core.engine->blocks(command_.info(), command_.op(), call);
  }
  static void wait_for_lanes(Queue, Waits&) {}
  Result<void> launch(const Call& call) const {
    if (auto own = parts_.own.run(command_, call)) return *own;
    if (parts_.libraries[lane_].fails(command_.header().ticket))
      return Error{Errc::library, 0, std::string(command_.name()) + ": fails, as was ordered"};
    return parts_.core.engine->run(command_.info(), command_.op(), call);
  }
  Result<void> queued(Queue queue, const Waits& waits, Sequence) const {
    parts_.core.batches.add(command_, parts_.mappings.addresses(), queue, waits);
    return {};
  }
  static Step play(SetAside::Entry&, Queue, const Waits&) { return Step::blocked; }

 private:
  const Parts& parts_;
  const wire::Command& command_;
  Lane lane_;
};

/// A command that runs a recorded sequence: its graph is launched, or its commands are queued one
/// by one.
class Intake::SequenceRun {
 public:
  SequenceRun(const Parts& parts, const wire::Command& command, SequenceTable::Known& known)
      : parts_(parts),
        command_(command),
        known_(known),
        sequence_(*known.sequence),
        lane_(command.lane()) {}

  /// As Lanes::queue_of(): the run and all of its commands take the detours, or none of them does.
  [[nodiscard]] Queue queue(const Waits& waits) const {
    const auto& lanes = parts_.core.lanes;
    const auto& its = sequence_.lanes();
    const Queue own(lane_), detour(lane_, true);
    const auto stands = [&](Lane one) { return lanes.waits_for_peers(one, {}); };
    if (lane_ == Lane::collective) return own;
    if (!lanes.waits_for_peers(own, waits) && std::none_of(its.begin(), its.end(), stands))
      return own;
    const bool may =
        lanes.has_detour(lane_) && !lanes.waits_for_peers(detour, waits) &&
        std::all_of(its.begin(), its.end(), [&](Lane one) { return lanes.has_detour(one); });
    return may ? detour : own;
  }
  [[nodiscard]] Result<bool> libraries_ready() const {
    return parts_.libraries.all_ready(lane_, sequence_.lanes());
  }
  /// One of its queues has no room for the commands of the sequence.
  [[nodiscard]] bool is_full(Queue queue) const {
    const auto& lanes = parts_.core.lanes;
    const auto& its = sequence_.lanes();
    return lanes.issued(queue) - lanes.completed(queue) >= kMaxForPeers ||
           std::any_of(its.begin(), its.end(), [&](Lane lane) {
             const Queue one(lane, queue.detour);
             return lanes.issued(one) - lanes.completed(one) + sequence_.steps_on(lane) >=
                    kMaxForPeers;
           });
  }
  [[nodiscard]] bool cells_read() const { return parts_.runs.cells_are_read(known_.number); }
  [[nodiscard]] Result<void> fits() const {
    for (const auto& step : sequence_.steps()) {
      if (auto fits = parts_.formation.meetings().fits(*step.command); !fits) return fits;
    }
    return {};
  }
  [[nodiscard]] std::vector<Link> new_links(const Call&) const {
    std::vector<Link> all;
    for (const auto& step : sequence_.steps()) {
      if (step.lane != Lane::collective) continue;
      const Call call(step.lane, parts_.mappings.addresses(), step.command->parts(),
                      step.command->header().communicator);
      for (const auto& link : parts_.core.engine->collectives().new_links(
               step.command->info(), step.command->op(), call)) {
        if (std::find(all.begin(), all.end(), link) == all.end()) all.push_back(link);
      }
    }
    return all;
  }
  [[nodiscard]] static bool ends_at_once(const Call&) { return false; }
  /// At a branch the run waits for what stands before it, and nobody may wait with it for other
  /// ranks.
  [[nodiscard]] bool waits_at_branch(Queue queue, const Waits& waits) const {
    if (!sequence_.branches()) return false;
    const auto& lanes = parts_.core.lanes;
    const auto& its = sequence_.lanes();
    return lanes.waits_for_peers(queue, waits) ||
           std::any_of(its.begin(), its.end(), [&](Lane lane) {
             return lanes.waits_for_peers({lane, queue.detour}, {});
           });
  }
  [[nodiscard]] static bool is_sequence() { return true; }
  [[nodiscard]] bool needs_thread(Queue queue, const Call&) const {
    // Before it is seen whether the graph is current.
    parts_.libraries.note_overwritten(command_.operands());
    return !parts_.runs.graphs().can_launch(known_, queue);
  }
  /// The graph waits for all that stands on the queues of the sequence.
  void wait_for_lanes(Queue queue, Waits& waits) const {
    for (const auto lane : sequence_.lanes()) {
      const Queue one(lane, queue.detour);
      if (one != queue) waits.raise(one.index(), parts_.core.lanes.issued(one));
    }
  }
  Result<void> launch(const Call& call) const {
    return parts_.formation.surrender().use(
        [&] { return parts_.core.engine->graphs().launch(*known_.graph, call.queue()); });
  }
  /// The queues of the sequence go on behind its graph.
  Result<void> queued(Queue queue, const Waits& waits, Sequence place) const {
    parts_.runs.add_run(command_, sequence_, queue, waits, place);
    ++known_.launches;
    Waits behind;
    behind.raise(queue.index(), place);
    for (const auto lane : sequence_.lanes()) {
      const Queue one(lane, queue.detour);
      if (one == queue) continue;
      if (auto ordered = parts_.core.batches.order(one, behind); !ordered) return ordered;
      (void)parts_.core.lanes.queued({}, one, behind);
      parts_.core.batches.add_place(one, behind);
    }
    return {};
  }
  Step play(SetAside::Entry& entry, Queue queue, const Waits& waits) const {
    return parts_.runs.begin(entry, command_, known_, queue, waits);
  }

 private:
  const Parts& parts_;
  const wire::Command& command_;
  SequenceTable::Known& known_;
  const RecordedSequence& sequence_;
  Lane lane_;
};

Intake::Intake(const Parts& parts, std::function<bool()> more_is_known)
    : parts_(parts),
      more_is_known_(std::move(more_is_known)),
      commands_(parts.core.port.commands()) {}

bool Intake::issue() {
  auto& core = parts_.core;
  if (!core.life.active()) return false;
  parts_.outcomes.answer_held();
  const auto may_issue = [&core] {
    return core.life.active() && core.batches.open_count() < Batches::kMaxCommands;
  };
  bool any = std::exchange(core.set_aside_due, false) &&
             parts_.set_aside.offer([&](SetAside::Entry& entry) {
               return may_issue() && issue_one(entry.record, &entry) == Step::queued;
             });
  while (may_issue()) {
    const auto record = commands_.front();
    if (!record.ok()) {
      parts_.outcomes.corrupt(record.error());
      return true;
    }
    if (record->empty()) break;
    if (!any) core.flight.stamp();
    const auto step = issue_one(*record, nullptr);
    blocked_ = step == Step::blocked && core.batches.open_count() == 0;
    if (step != Step::queued) break;
    commands_.pop();
    any = true;
  }
  if (auto closed = core.batches.close_all(); !closed) core.life.lose(closed.error());
  return any;
}

Step Intake::issue_one(std::span<const std::byte> record, SetAside::Entry* entry) {
  auto& core = parts_.core;
  auto& outcomes = parts_.outcomes;
  const auto decoded = command_.decode(record);
  const auto ticket = command_.header().ticket;
  if (!decoded && core.port.header().unknown.any() &&
      find_operation(command_.header().opcode).info == nullptr) {
    core.port.note_taken(ticket);  // the rank submitted it before this host could say so
    return outcomes.answered(
        ticket, Error{Errc::unsupported, 0, "the device host does not have its library"});
  }
  if (!decoded) return outcomes.corrupt(decoded.error());
  const auto flags = command_.header().flags;
  if ((flags & wire::kCancelled) != 0) return outcomes.answered(ticket, {});
  const bool alone = (flags & wire::kAlone) != 0;
  const bool first = entry != nullptr || parts_.set_aside.empty();
  if ((alone || alone_) && !(core.batches.empty() && first)) return Step::blocked;
  alone_ = alone;
  if (const auto unmapped = check_mapped()) return *unmapped;
  if (const auto step = parts_.own.carry_out({&command_, record, entry == nullptr})) return *step;
  return issue_on_lane(record, entry);
}

std::optional<Step> Intake::check_mapped() {
  const auto ticket = command_.header().ticket;
  bool mapped = true, foreign = false, allowed = true;
  for (const auto& use : command_.operands()) {
    const bool found = parts_.mappings.reaches(*use.range);
    mapped &= found;
    foreign |= !found && is_foreign(use.range->region);
    allowed &= Mappings::may_use(command_, use);
  }
  if (mapped && allowed) return std::nullopt;
  if (!mapped && more_is_known_()) return Step::blocked;  // its mapping is on the way
  if (foreign && allowed) {  // its owner gave it up, or this host could not map it
    parts_.core.port.note_taken(ticket);
    return parts_.outcomes.answered(
        ticket, Error{Errc::peer_lost, 0, "the other rank's memory is not mapped"});
  }
  parts_.core.note_issued(command_.header());  // lest the next host dies of it too
  return parts_.outcomes.corrupt(
      {Errc::internal, 0, std::string(command_.name()) + ": an operand is out of bounds"});
}

Step Intake::issue_on_lane(std::span<const std::byte> record, SetAside::Entry* entry) {
  const auto ticket = command_.header().ticket;
  auto& actor = parts_.libraries[command_.lane()];
  if (entry == nullptr && std::exchange(actor.fails_next, false)) actor.failing_ticket = ticket;
  if (sequence_call(command_).number == 0)
    return issue_as(SingleCommand(parts_, command_), record, entry);
  if (entry != nullptr && parts_.runs.has_begun(*entry)) return parts_.runs.go_on(*entry, command_);
  const auto known = parts_.runs.find(command_);
  if (!known.ok()) return parts_.outcomes.answered(ticket, known.error());
  return issue_as(SequenceRun(parts_, command_, **known), record, entry);
}

template <class What>
Step Intake::issue_as(What what, std::span<const std::byte> record, SetAside::Entry* entry) {
  const auto& lanes = parts_.core.lanes;
  const bool from_ring = entry == nullptr;
  const auto waits = lanes.waits_of(command_.operands());
  const auto on = what.queue(waits);
  const Call call(on, parts_.mappings.addresses(), command_.parts(),
                  command_.header().communicator);
  const auto clear = is_clear(what, on, waits, call, from_ring);
  if (!clear.ok()) return parts_.outcomes.answered(command_.header().ticket, clear.error());
  const Course course{.may_go = *clear,
                      .needs_thread = *clear && what.needs_thread(on, call),
                      .from_ring = from_ring,
                      .room = !parts_.set_aside.full(),
                      .sequence = What::is_sequence(),
                      .waits_for_peers = !from_ring && *clear && lanes.waits_for_peers(on, waits)};
  switch (fate_of(course)) {
    case Fate::queue: return queue(what, on, waits, call, record, entry);
    case Fate::set_aside: return put_aside(record, waits);
    case Fate::play: return what.play(*entry, on, waits);
    case Fate::work: return begin_work(*entry, on, waits);
    case Fate::wait: break;
  }
  return Step::blocked;
}

template <class What>
Result<bool> Intake::is_clear(What& what, Queue queue, const Waits& waits, const Call& call,
                              bool from_ring) {
  auto& core = parts_.core;
  auto& formation = parts_.formation;
  const auto lane = command_.lane();
  const bool collective = command_.info().traits.collective;
  const auto ready = what.libraries_ready();
  const bool behind_others =
      from_ring && parts_.set_aside.holds_up(command_.operands(), collective);
  if (!ready.ok() && !behind_others) return ready.error();
  if (from_ring && ready.ok() && !*ready) parts_.libraries.hold_up(lane, true);
  Standing standing{.behind_others = behind_others,
                    .libraries_ready = ready.ok() && *ready,
                    .cells_read = what.cells_read(),
                    .collective = collective};
  standing.queue_full = what.is_full(queue);
  standing.waits_for_peers = standing.queue_full && core.lanes.waits_for_peers(queue, waits);
  if (collective) {
    standing.communicator_busy = formation.is_forming();
    standing.opening_goes_first = parts_.libraries.opening_goes_first();
    if (!what.ends_at_once(call)) standing.collectives_ahead = slow_ahead();
  }
  if (!may_go(standing)) return false;
  if (collective) {
    const auto met = formation.meetings().come(command_, what.fits(),
                                               core.settings().spin_us != 0 ? kLooksForOthers : 1);
    if (!met.ok() || !*met) return met;
    if (formation.is_linking()) return false;
    if (auto links = what.new_links(call); !links.empty()) {
      if (!from_ring) formation.open_links(command_.header().communicator, std::move(links));
      return false;
    }
  }
  return !what.waits_at_branch(queue, waits);
}

std::uint64_t Intake::slow_ahead() {
  const auto completed = parts_.core.lanes.completed(Lane::collective);
  while (!slow_.empty() && slow_.front() <= completed) slow_.pop_front();
  return slow_.size();
}

Step Intake::put_aside(std::span<const std::byte> record, const Waits& waits) {
  auto& core = parts_.core;
  // It is to wait for these alone, not also for what is queued behind them until it is its turn.
  if (auto closed = core.batches.close(waits); !closed) core.life.lose(closed.error());
  const auto ticket = command_.header().ticket;
  parts_.set_aside.add(ticket, record, command_.operands(), command_.info().traits.collective);
  core.set_aside_due = true;
  core.port.note_taken(ticket);
  return Step::queued;
}

template <class What>
Step Intake::queue(What& what, Queue queue, Waits waits, const Call& call,
                   std::span<const std::byte> record, SetAside::Entry* entry) {
  auto& core = parts_.core;
  const auto operands = command_.operands();
  if (entry != nullptr) parts_.set_aside.begin(*entry);
  core.note_issued(command_.header());
  parts_.libraries.note_overwritten(operands);
  what.wait_for_lanes(queue, waits);
  const bool slow = queue.lane == Lane::collective && !what.ends_at_once(call);
  auto outcome = core.batches.order(queue, waits, slow);
  if (outcome.ok()) {
    const TracedCommand traced(core.tracing.get(), command_.header().ticket, command_.name());
    outcome = what.launch(call);
  }
  if (outcome.ok()) {
    const auto place = core.lanes.queued(operands, queue, waits);
    if (slow) slow_.push_back(place);
    if (auto queued = what.queued(queue, waits, place); !queued.ok())
      core.life.lose(queued.error());
    parts_.preparations.note_kind(command_, record);
    return Step::queued;
  }
  if (outcome.code() != Errc::peer_lost) return parts_.outcomes.not_queued(command_, outcome);
  // Part of it may run until the communicator is aborted: it is in flight, and unanswered.
  core.lanes.queued(operands, queue, waits);
  core.batches.add(command_, parts_.mappings.addresses(), queue, waits);
  if (entry == nullptr) commands_.pop();
  core.life.break_communicator(outcome.error());
  return Step::ended;
}

namespace {

/// A command that a thread of its library carries out.
struct Work {
  SetAside::Number number = 0;
  Queue queue;
  Waits waits;
  AddressMap addresses;  ///< as it was: the reactor's changes meanwhile
  std::vector<std::byte> record;
  wire::Command command;
};

}  // namespace

Step Intake::begin_work(SetAside::Entry& entry, Queue queue, const Waits& waits) {
  auto& core = parts_.core;
  auto work = std::make_shared<Work>();
  work->record = entry.record;
  work->number = entry.number;
  work->queue = queue;
  work->waits = waits;
  work->addresses = parts_.mappings.addresses();
  const auto& command = work->command;
  if (auto decoded = work->command.decode(entry.record); !decoded)
    return parts_.outcomes.not_queued(command_, decoded);
  auto& actor = parts_.libraries[queue.lane];
  const auto ticket = command.header().ticket;
  const bool fails = actor.fails(ticket);
  parts_.set_aside.begin(entry);
  core.note_issued(command.header());
  parts_.libraries.note_overwritten(command.operands());
  if (auto ordered = core.batches.order(queue, waits); !ordered)
    return parts_.outcomes.not_queued(command_, ordered);
  const auto call = [&core, work, fails]() -> Result<void> {
    const auto& its = work->command;
    const TracedCommand traced(core.tracing.get(), its.header().ticket, its.name());
    if (fails) return Error{Errc::library, 0, std::string(its.name()) + ": fails, as was ordered"};
    return core.engine->run(its.info(), its.op(), Call(work->queue, work->addresses, its.parts()));
  };
  const auto ended = [this, work](const Result<void>& outcome) {
    const auto& its = work->command;
    if (parts_.core.life.lost()) return;
    if (outcome.code() == Errc::would_block) return parts_.set_aside.release(work->number);
    if (parts_.core.life.lose_if_dead(outcome)) return;
    if (outcome.ok()) {
      parts_.core.lanes.queued(its.operands(), work->queue, work->waits);
      parts_.core.batches.add(its, parts_.mappings.addresses(), work->queue, work->waits);
      parts_.preparations.note_kind(its, work->record);
    } else {
      if (outcome.code() == Errc::library)
        parts_.libraries.failed(work->queue.lane, outcome.error());
      parts_.outcomes.hold(its.header().ticket, outcome);
    }
    parts_.set_aside.erase(work->number);
  };
  entry.held = parts_.libraries.carry_out(queue.lane, call, ended);
  // Too much is under way: it is offered again.
  if (!entry.held && fails) actor.failing_ticket = ticket;
  return Step::blocked;
}

}  // namespace troupe::host
