#include "device_host/sequences/runs.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

namespace troupe::host {

Result<SequenceTable::Known*> SequenceRuns::find(const wire::Command& command) {
  const auto call = sequence_call(command);
  if ((call.list->region & kPinnedRegion) == 0)
    return Error{Errc::invalid, 0, "the list of a sequence is not in pinned memory"};
  const auto* const list = mappings_->addresses().find(*call.list);
  return table_.find(call, {list, static_cast<std::size_t>(call.list->bytes)});
}

bool SequenceRuns::cells_are_read(std::uint64_t number) const {
  const auto run = to_be_judged_.find(number);
  return run == to_be_judged_.end() ||
         core_->lanes.completed(run->second.first) >= run->second.second;
}

void SequenceRuns::add_run(const wire::Command& command, const RecordedSequence& sequence,
                           Queue queue, const Waits& waits, Sequence place) {
  const auto& addresses = mappings_->addresses();
  core_->batches.add(command, addresses, queue, waits);
  if (sequence.judged().empty()) return;
  for (const auto step : sequence.judged())
    core_->batches.judge(command.header().ticket, *sequence.steps()[step].command, step + 1,
                         addresses, queue);
  std::erase_if(to_be_judged_, [this](const auto& one) { return cells_are_read(one.first); });
  to_be_judged_[sequence_call(command).number] = {queue, place};
}

Result<void> SequenceRuns::note_places(const RecordedSequence& sequence, Queue queue,
                                       Sequence place) {
  // They are answered behind it: what comes to stand behind them is not to be answered with it.
  if (auto closed = core_->batches.close(queue); !closed) return closed;
  // One of them may wait for other ranks wherever the run itself does.
  Waits with;
  with.raise(queue.index(), place);
  for (const auto lane : sequence.lanes()) {
    const Queue one(lane, queue.detour);
    if (one == queue) continue;
    // Each of them takes room on the stream.
    for (auto left = sequence.steps_on(lane); left != 0; --left)
      (void)core_->lanes.queued({}, one, with);
    core_->batches.add_place(one, with);
  }
  return {};
}

Step SequenceRuns::begin(SetAside::Entry& entry, const wire::Command& command,
                         const SequenceTable::Known& known, Queue queue, const Waits& waits) {
  set_aside_->begin(entry);
  core_->note_issued(command.header());
  if (auto ordered = core_->batches.order(queue, waits); !ordered)
    return outcomes_->not_queued(command, ordered);
  plays_.emplace(entry.number, Play{Playing(known.sequence, *core_->engine, queue), waits, {}});
  return go_on(entry, command);
}

Step SequenceRuns::go_on(SetAside::Entry& entry, const wire::Command& command) {
  auto& play = plays_.at(entry.number);
  auto& playing = play.playing;
  const auto ticket = command.header().ticket;
  auto outcome = play.outcome;
  while (outcome.ok() && !playing.done()) {
    const auto& step = playing.next();
    if (step.by != 0) {
      const auto passed = pass_branch(playing);
      if (passed.ok() && !*passed) return Step::blocked;
      if (!passed.ok()) outcome = passed.error();
      continue;
    }
    const auto ready = libraries_->ready(step.lane);
    if (ready.ok() && !*ready) return Step::blocked;
    outcome = ready.ok() ? playing.order_next() : ready.error();
    if (!outcome.ok()) break;
    if (const auto mapped = mappings_->reaches_all(*step.command); !mapped.ok())
      return outcomes_->corrupt(mapped.error());
    const auto& info = step.command->info();
    const Call call(playing.next_queue(), mappings_->addresses(), step.command->parts(),
                    step.command->header().communicator);
    if (core_->engine->blocks(info, step.command->op(), call)) {
      // What waits for other ranks would keep the library from its other commands. The run's own
      // collectives are under way on all ranks, and need its next steps.
      if (!core_->lanes.stands_behind_peers(playing.origin(), play.waits))
        begin_step(entry, play, ticket);
      return Step::blocked;
    }
    libraries_->note_overwritten(step.command->operands());
    outcome = run_step(step, call, ticket);
    if (outcome.ok()) outcome = playing.passed();
  }
  if (outcome.code() == Errc::would_block) return Step::blocked;
  return end(entry, command, outcome);
}

Result<bool> SequenceRuns::pass_branch(Playing& playing) {
  const auto& step = playing.next();
  bool jumps = true;
  if (step.flag != nullptr) {
    const auto ended = playing.ended();
    if (!ended.ok()) return ended;
    if (!*ended) {
      waits_at_branch_ = true;
      return false;
    }
    std::int32_t flag = 0;
    const auto* const at = mappings_->addresses().find(*step.flag);
    if (at != nullptr) std::memcpy(&flag, at, sizeof flag);
    jumps = flag == 0;
  }
  if (auto went = playing.go_on(jumps); !went) return went.error();
  return true;
}

bool SequenceRuns::can_go_on() {
  if (!waits_at_branch_ || core_->life.mode() != Life::Mode::active) return false;
  return std::any_of(plays_.begin(), plays_.end(), [](auto& one) {
    auto& playing = one.second.playing;
    if (playing.done() || playing.next().flag == nullptr) return false;
    const auto ended = playing.ended();
    return !ended.ok() || *ended;
  });
}

Result<void> SequenceRuns::run_step(const RecordedSequence::Step& step, const Call& call,
                                    std::uint64_t ticket) {
  if (std::exchange((*libraries_)[step.lane].fails_next, false))
    return Error{Errc::library, 0, std::string(step.command->name()) + ": fails, as was ordered"};
  const TracedCommand traced(core_->tracing.get(), ticket, step.command->name());
  return core_->engine->run(step.command->info(), step.command->op(), call);
}

void SequenceRuns::begin_step(SetAside::Entry& entry, const Play& play, std::uint64_t ticket) {
  const auto* const step = &play.playing.next();
  libraries_->note_overwritten(step->command->operands());
  const auto addresses = std::make_shared<const AddressMap>(mappings_->addresses());
  const auto call = [this, step, addresses, ticket,
                     queue = play.playing.next_queue()]() -> Result<void> {
    const TracedCommand traced(core_->tracing.get(), ticket, step->command->name());
    return core_->engine->run(step->command->info(), step->command->op(),
                              Call(queue, *addresses, step->command->parts()));
  };
  const auto ended = [this, number = entry.number](const Result<void>& outcome) {
    if (core_->life.lost()) return;
    set_aside_->release(number);
    auto& its_play = plays_.at(number);
    if (outcome.code() == Errc::would_block) return;
    its_play.outcome = outcome.ok() ? its_play.playing.passed() : outcome;
  };
  // Where too much is under way it is offered again.
  entry.held = libraries_->carry_out(step->lane, call, ended);
}

Step SequenceRuns::end(SetAside::Entry& entry, const wire::Command& command, Result<void> outcome) {
  const auto node = plays_.extract(entry.number);
  auto& [playing, waits, ignored] = node.mapped();
  const auto ticket = command.header().ticket;
  auto& life = core_->life;
  if (life.lose_if_dead(outcome)) return Step::ended;
  const auto failed_lane = playing.done() ? Lane::memory : playing.next().lane;
  if (!outcome.ok()) outcome = at_step(outcome.error(), playing.next_index() + 1);
  if (!outcome.ok() && outcome.code() != Errc::library && outcome.code() != Errc::corrupt &&
      outcome.code() != Errc::peer_lost && playing.untouched())
    return outcomes_->answered(ticket, outcome);
  if (auto joined = playing.join(); !joined.ok()) {
    life.lose(joined.error());  // nobody knows when it ends
    return Step::ended;
  }
  const auto queue = playing.origin();
  const auto place = core_->lanes.queued(command.operands(), queue, waits);
  add_run(command, playing.sequence(), queue, waits, place);
  if (auto noted = note_places(playing.sequence(), queue, place); !noted.ok()) {
    life.lose(noted.error());
    return Step::ended;
  }
  if (outcome.code() == Errc::peer_lost) {
    life.break_communicator(outcome.error());
    return Step::ended;
  }
  if (outcome.ok()) {
    graphs_.record(sequence_call(command).number, playing);
  } else {
    if (outcome.code() == Errc::library) libraries_->failed(failed_lane, outcome.error());
    core_->replies.send(ticket, 1, outcome, true);
  }
  return Step::queued;
}

void SequenceRuns::abandon() {
  for (auto& [number, play] : plays_) {
    if (!play.playing.join().ok()) continue;  // what is lost shows at the batches' marks
    const auto queue = play.playing.origin();
    const auto place = core_->lanes.queued({}, queue, play.waits);
    core_->batches.add_place(queue, play.waits);
    // What is lost shows at the batches' marks, here too.
    (void)note_places(play.playing.sequence(), queue, place);
  }
  plays_.clear();
  waits_at_branch_ = false;
}

}  // namespace troupe::host
