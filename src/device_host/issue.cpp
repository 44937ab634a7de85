#include <troupe/lib/outside.hpp>

#include "device_host/device_host.hpp"

// Commands: from the ring to the engine's lanes.

namespace troupe::host {
namespace {

/// Commands on a queue that wait for other ranks: beyond that the next one is set aside. A stream
/// of CUDA's takes some 1,000 launches; then a launch blocks, and with it the reactor.
constexpr Sequence kMaxForPeers = 512;

/// For the other ranks of a host before a collective is set aside: some 10 us. Ranks in step need
/// no more than one of them needs to launch a collective.
constexpr int kLooksForOthers = 250;

}  // namespace

bool DeviceHost::issue() {
  if (!active()) return false;
  // What is refused has done nothing; a library's failure may have come midway.
  for (const auto& [ticket, outcome] : held_answers_) {
    if (outcome.ok()) {
      batches_.add(ticket);
    } else {
      replies_.send(ticket, 1, outcome, outcome.code() == Errc::library);
    }
  }
  held_answers_.clear();
  bool any = std::exchange(set_aside_due_, false) && issue_set_aside();
  while (active() && batches_.open_count() < Batches::kMaxCommands) {
    const auto record = commands_.front();
    if (!record.ok()) {
      lose(record.error());
      end(wire::kExitCorrupt);
      return true;
    }
    if (record->empty()) break;
    if (!any) flight_.stamp();
    const auto step = issue_one(*record, nullptr);
    blocked_ = step == Step::blocked && batches_.open_count() == 0;
    if (step != Step::queued) break;
    any = true;
  }
  if (auto closed = batches_.close_all(); !closed) lose(closed.error());
  return any;
}

bool DeviceHost::issue_set_aside() {
  return set_aside_.offer([this](SetAside::Entry& entry) {
    return active() && batches_.open_count() < Batches::kMaxCommands &&
           issue_one(entry.record, &entry) == Step::queued;
  });
}

DeviceHost::Step DeviceHost::issue_one(std::span<const std::byte> record, SetAside::Entry* entry) {
  const auto source = entry == nullptr ? Source::ring : Source::set_aside;
  const auto decoded = command_.decode(record);
  const auto ticket = command_.header().ticket;
  if (!decoded && header().unknown.any() &&
      find_operation(command_.header().opcode).info == nullptr) {
    note_taken(ticket);  // the rank submitted it before this host could say so
    return answered(ticket, source,
                    Error{Errc::unsupported, 0, "the device host does not have its library"});
  }
  if (!decoded) return corrupt(decoded.error());
  const auto flags = command_.header().flags;
  if ((flags & wire::kCancelled) != 0) return answered(ticket, source, {});
  const bool alone = (flags & wire::kAlone) != 0;
  const bool first = source == Source::set_aside || set_aside_.empty();
  if ((alone || alone_) && !(batches_.empty() && first)) return Step::blocked;
  alone_ = alone;
  if (const auto unmapped = check_mapped(source)) return *unmapped;
  if (const auto* const own = own_operation(command_.header().opcode);
      own != nullptr && own->carry_out != nullptr) {
    if (const auto step = own->carry_out(*this, source)) return *step;
  }
  return issue_on_lane(record, entry);
}

std::optional<DeviceHost::Step> DeviceHost::check_mapped(Source source) {
  const auto ticket = command_.header().ticket;
  bool mapped = true, foreign = false;
  for (const auto& use : command_.operands()) {
    const bool found = is_reachable(*use.range);
    mapped &= found;
    foreign |= !found && is_foreign(use.range->region);
  }
  if (mapped) return std::nullopt;
  if (serve_control()) return Step::blocked;  // its mapping is on the way
  if (foreign) {                              // its owner gave it up, or this host could not map it
    note_taken(ticket);
    return answered(ticket, source,
                    Error{Errc::peer_lost, 0, "the other rank's memory is not mapped"});
  }
  note_issued(command_.header());  // lest the next host dies of it too
  return corrupt(
      {Errc::internal, 0, std::string(command_.name()) + ": an operand is out of bounds"});
}

bool DeviceHost::is_reachable(const Operand& range) const {
  return range.bytes == 0 || outside::is_outside(range) || addresses_.find(range) != nullptr;
}

Result<void> DeviceHost::all_mapped(const wire::Command& command) const {
  for (const auto& use : command.operands()) {
    if (!is_reachable(*use.range))
      return Error{Errc::internal, 0,
                   std::string(command.name()) + ": an operand is out of bounds"};
  }
  return {};
}

DeviceHost::Step DeviceHost::issue_on_lane(std::span<const std::byte> record,
                                           SetAside::Entry* entry) {
  const auto source = entry == nullptr ? Source::ring : Source::set_aside;
  const auto ticket = command_.header().ticket;
  const auto& info = command_.info();
  const auto operands = command_.operands();
  const auto lane = command_.lane();
  if (source == Source::ring && std::exchange(actors_[lane].fails_next, false))
    actors_[lane].failing_ticket = ticket;
  SequenceTable::Known* sequence = nullptr;
  if (sequence_call(command_).number != 0) {
    if (entry != nullptr && plays_.contains(entry->number)) return play_on(*entry);
    const auto found = find_sequence();
    if (!found.ok()) return answered(ticket, source, found.error());
    sequence = *found;
  }
  auto waits = lanes_.waits_of(operands);
  const auto queue = sequence != nullptr ? queue_of(*sequence->sequence, lane, waits)
                                         : lanes_.queue_of(lane, waits);
  const bool collective = info.traits.collective;
  const bool behind_others = source == Source::ring && set_aside_.holds_up(operands, collective);
  const auto ready =
      sequence != nullptr ? lanes_ready(*sequence->sequence, lane) : lane_ready(lane);
  if (!ready.ok() && !behind_others) return answered(ticket, source, ready.error());
  const bool full = lanes_.issued(queue) - lanes_.completed(queue) >= kMaxForPeers ||
                    (sequence != nullptr && !has_room(*sequence->sequence, queue, kMaxForPeers));
  const bool open = ready.ok() && *ready;
  bool blocks =
      behind_others || !open || (full && lanes_.waits_for_peers(queue, waits)) ||
      (collective && (forming_groups_ != 0 || opening_goes_first())) ||
      (collective && lanes_.issued(queue) - lanes_.completed(queue) >= kCollectivesAhead) ||
      (sequence != nullptr && !cells_are_read(sequence->number));
  const auto communicator = command_.header().communicator;
  if (auto* const rendezvous = rendezvous_of(communicator);
      collective && !blocks && rendezvous != nullptr) {
    meeting_ = rendezvous;
    const auto fits =
        sequence != nullptr ? fits_communicator(*sequence->sequence) : fits_communicator(command_);
    if (!fits.ok()) {
      if (rendezvous->refuse(info, command_.op())) return answered(ticket, source, fits.error());
      blocks = true;
    } else {
      const auto met = rendezvous->arrive(ticket, info, command_.op(), command_.tail(),
                                          settings().spin_us != 0 ? kLooksForOthers : 1);
      if (!met.ok()) return answered(ticket, source, met.error());
      blocks = !*met;
    }
  }
  const Call call(queue, addresses_, command_.parts(), communicator);
  std::vector<Link> links;
  if (collective && !blocks && !opening_links_)
    links = sequence != nullptr ? new_links(*sequence->sequence)
                                : engine_->collectives().new_links(info, command_.op(), call);
  blocks |= (collective && opening_links_) || !links.empty();
  // At a branch it is waited for what stands before, and nobody may wait with that.
  if (sequence != nullptr && sequence->sequence->branches())
    blocks |= waits_for_peers(*sequence->sequence, queue, waits);
  // Before it is seen whether the graph is current.
  if (sequence != nullptr && !blocks) note_overwritten(operands);
  const bool works = !blocks && (sequence != nullptr ? !takes_graph(*sequence, queue)
                                                     : engine_->blocks(info, command_.op(), call));
  if (source == Source::set_aside && (blocks || works)) {
    if (!links.empty()) open_links(communicator, std::move(links));
    if (!blocks && sequence != nullptr) return begin_play(*entry, *sequence, queue, waits);
    // What waits for other ranks would keep the library from its other commands.
    if (blocks || lanes_.waits_for_peers(queue, waits)) return Step::blocked;
    const auto begun = begin_work(*entry, queue, waits);
    return begun.ok() ? Step::blocked : not_queued(ticket, source, begun);
  }
  if (blocks || works) {
    if (ready.ok() && !*ready) hold_up(lane, true);
    if (set_aside_.full()) return Step::blocked;
    // It is to wait for these alone, not also for what is queued behind them until it is its turn.
    if (auto closed = batches_.close(waits); !closed) lose(closed.error());
    set_aside_.add(ticket, record, operands, collective);
    set_aside_due_ = true;
    note_taken(ticket);
    commands_.pop();
    return Step::queued;
  }
  if (entry != nullptr) set_aside_.begin(*entry);
  note_issued(command_.header());
  note_overwritten(operands);
  if (sequence != nullptr) wait_for_lanes(*sequence->sequence, queue, waits);
  auto outcome = batches_.order(queue, waits);
  if (outcome.ok()) {
    const TracedCommand traced(tracing_.get(), ticket, command_.name());
    outcome = sequence == nullptr
                  ? run(call)
                  : surrender_.use([&] { return engine_->launch_graph(*sequence->graph, queue); });
  }
  if (outcome.ok()) {
    const auto place = lanes_.queued(operands, queue, waits);
    if (sequence != nullptr) {
      add_run(*sequence->sequence, queue, waits, place);
      outcome = follow_graph(*sequence, queue, place);
    } else {
      batches_.add(command_, addresses_, queue, waits);
    }
    if (!outcome.ok()) lose(outcome.error());
    note_kind(command_, record);
    take(source);
    return Step::queued;
  }
  if (outcome.code() == Errc::peer_lost) {
    // Part of it may run until the communicator is aborted: it is in flight, and unanswered.
    lanes_.queued(operands, queue, waits);
    batches_.add(command_, addresses_, queue, waits);
    take(source);
    break_communicator(outcome.error());
    return Step::ended;
  }
  return not_queued(ticket, source, outcome);
}

DeviceHost::Step DeviceHost::not_queued(std::uint64_t ticket, Source source,
                                        const Result<void>& outcome) {
  if (outcome.code() == Errc::would_block) return Step::blocked;
  if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed) {
    lose(outcome.error());
    return Step::ended;
  }
  if (outcome.code() != Errc::library) return answered(ticket, source, outcome);
  // Part of it may have been launched.
  library_failed(command_.lane(), outcome.error());
  replies_.send(ticket, 1, outcome, true);
  take(source);
  return Step::queued;
}

Result<void> DeviceHost::run(const Call& call) {
  if (const auto* const own = own_operation(command_.header().opcode); own != nullptr)
    return own->run(*this, call);
  if (actors_[call.queue().lane].fails(command_.header().ticket))
    return Error{Errc::library, 0, std::string(command_.name()) + ": fails, as was ordered"};
  return engine_->run(command_.info(), command_.op(), call);
}

Result<void> DeviceHost::fits_communicator(const wire::Command& command) const {
  const auto check_world = command.info().check_world;
  const auto* const rendezvous = rendezvous_of(command.header().communicator);
  if (check_world == nullptr || rendezvous == nullptr || rendezvous->size() == 0) return {};
  return check_world(command.op(), rendezvous->rank(), rendezvous->size());
}

DeviceHost::Step DeviceHost::answered(std::uint64_t ticket, Source source,
                                      const Result<void>& outcome) {
  if (outcome.ok()) {
    batches_.add(ticket);
  } else {
    replies_.send(ticket, 1, with_memory_use(outcome.error()));
  }
  take(source);
  return Step::queued;
}

DeviceHost::Step DeviceHost::corrupt(const Error& error) {
  lose(error);
  end(wire::kExitCorrupt);
  return Step::ended;
}

void DeviceHost::open_links(std::uint32_t communicator, std::vector<Link> links) {
  opening_links_ =
      helpers_.start([this, communicator, links = std::move(links)]() -> Helpers::Finish {
        auto opened = engine_->collectives().open_links(communicator, links);
        return [this, opened = std::move(opened)] {
          opening_links_ = false;
          if (opened.ok() || opened.code() == Errc::world_reformed) return;
          if (opened.code() == Errc::device_lost || opened.code() == Errc::device_failed) {
            lose(opened.error());
          } else if (mode_ == Mode::active) {
            break_communicator(opened.error());
          }
        };
      });
}

}  // namespace troupe::host
