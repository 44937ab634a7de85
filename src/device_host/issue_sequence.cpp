#include <algorithm>
#include <cstring>

#include "common/core/log.hpp"
#include "device_host/device_host.hpp"
#include "device_host/graph_branches.hpp"

// Commands that run recorded sequences: as lists, whose commands are queued one by one, and as the
// graphs that are made of these. A list does whatever its commands do; a graph is quicker.
//
// Between two places of one queue stands all that a run queues, so that one mark behind it answers
// the command, and its operands are ordered by that queue. A graph works with the handles and the
// workspaces of the lanes that it was made on: it waits for all that stands there, and they for it.

namespace troupe::host {
namespace {

using Form = SequenceTable::Form;

/// How many graphs are made of a sequence whose graphs do not last.
constexpr int kGraphs = 4;

bool ends_all(Errc code) {
  return code == Errc::device_lost || code == Errc::device_failed;
}

}  // namespace

Result<SequenceTable::Known*> DeviceHost::find_sequence() {
  const auto call = sequence_call(command_);
  if ((call.list->region & kPinnedRegion) == 0)
    return Error{Errc::invalid, 0, "the list of a sequence is not in pinned memory"};
  const auto* const list = addresses_.find(*call.list);
  return sequences_.find(call, {list, static_cast<std::size_t>(call.list->bytes)});
}

Result<bool> DeviceHost::lanes_ready(const RecordedSequence& sequence, Lane origin) {
  auto all = lane_ready(origin);
  for (const auto lane : sequence.lanes()) {
    const auto ready = lane_ready(lane);
    if (!ready.ok()) return ready;
    if (all.ok()) all = *all && *ready;
  }
  return all;
}

Queue DeviceHost::queue_of(const RecordedSequence& sequence, Lane lane, const Waits& waits) const {
  const Queue own(lane), detour(lane, true);
  const auto stands = [&](Lane one) { return lanes_.waits_for_peers(one, {}); };
  const auto& lanes = sequence.lanes();
  if (lane == Lane::collective) return own;
  if (!lanes_.waits_for_peers(own, waits) && std::none_of(lanes.begin(), lanes.end(), stands))
    return own;
  const bool may =
      lanes_.has_detour(lane) && !lanes_.waits_for_peers(detour, waits) &&
      std::all_of(lanes.begin(), lanes.end(), [&](Lane one) { return lanes_.has_detour(one); });
  return may ? detour : own;
}

Result<void> DeviceHost::fits_communicator(const RecordedSequence& sequence) const {
  for (const auto& step : sequence.steps()) {
    if (auto fits = fits_communicator(*step.command); !fits) return fits;
  }
  return {};
}

std::vector<Link> DeviceHost::new_links(const RecordedSequence& sequence) {
  std::vector<Link> all;
  for (const auto& step : sequence.steps()) {
    if (step.lane != Lane::collective) continue;
    const Call call(step.lane, addresses_, step.command->parts(),
                    step.command->header().communicator);
    for (const auto& link :
         engine_->collectives().new_links(step.command->info(), step.command->op(), call)) {
      if (std::find(all.begin(), all.end(), link) == all.end()) all.push_back(link);
    }
  }
  return all;
}

bool DeviceHost::has_room(const RecordedSequence& sequence, Queue queue, std::uint64_t most) const {
  const auto& lanes = sequence.lanes();
  return std::all_of(lanes.begin(), lanes.end(), [&](Lane lane) {
    const Queue one(lane, queue.detour);
    return lanes_.issued(one) - lanes_.completed(one) + sequence.steps_on(lane) < most;
  });
}

bool DeviceHost::takes_graph(SequenceTable::Known& known, Queue queue) {
  if (known.form != Form::graph || queue.detour) return false;
  if (engine_->is_current(*known.graph)) {
    if (known.graph_patches == known.patches) return true;
    // CUDA changes nodes within conditional ones only in part, and lets no graph be captured while
    // a thread waits for the device: such a run is a list.
    if (known.sequence->branches() || helpers_.may_wait_for_device()) return false;
    auto changed = make_graph(known.sequence, queue);
    if (changed.ok()) {
      const auto updated = engine_->update_graph(*known.graph, std::move(*changed));
      if (updated.ok() && *updated) {
        known.graph_patches = known.patches;
        return true;
      }
    }
  }
  sequences_.drop_graph(known);
  return false;
}

void DeviceHost::destroy_void_graphs() {
  if (auto graphs = sequences_.take_void_graphs(); !graphs.empty()) {
    Waits queued;
    for (std::size_t i = 0; i < kQueueCount; ++i) queued.raise(i, lanes_.issued(Queue::at(i)));
    for (auto& graph : graphs) void_graphs_.emplace_back(std::move(graph), queued);
  }
  std::erase_if(void_graphs_, [&](const auto& entry) {
    return !entry.second.any_of([&](std::size_t queue, Sequence place) {
      return place > lanes_.completed(Queue::at(queue));
    });
  });
}

void DeviceHost::add_run(const RecordedSequence& sequence, Queue queue, const Waits& waits,
                         Sequence place) {
  batches_.add(command_, addresses_, queue, waits);
  if (sequence.judged().empty()) return;
  for (const auto step : sequence.judged())
    batches_.judge(command_.header().ticket, *sequence.steps()[step].command, step + 1, addresses_,
                   queue);
  std::erase_if(to_be_judged_, [this](const auto& one) { return cells_are_read(one.first); });
  to_be_judged_[sequence_call(command_).number] = {queue, place};
}

void DeviceHost::wait_for_lanes(const RecordedSequence& sequence, Queue queue, Waits& waits) const {
  for (const auto lane : sequence.lanes()) {
    const Queue one(lane, queue.detour);
    if (one != queue) waits.raise(one.index(), lanes_.issued(one));
  }
}

Result<void> DeviceHost::note_places(const RecordedSequence& sequence, Queue queue,
                                     Sequence place) {
  // They are answered behind it: what comes to stand behind them is not to be answered with it.
  if (auto closed = batches_.close(queue); !closed) return closed;
  // One of them may wait for other ranks wherever the run itself does.
  Waits with;
  with.raise(queue.index(), place);
  for (const auto lane : sequence.lanes()) {
    const Queue one(lane, queue.detour);
    if (one == queue) continue;
    // Each of them takes room on the stream.
    for (auto left = sequence.steps_on(lane); left != 0; --left) (void)lanes_.queued({}, one, with);
    batches_.add_place(one, with);
  }
  return {};
}

Result<void> DeviceHost::follow_graph(SequenceTable::Known& known, Queue queue, Sequence place) {
  ++known.launches;
  Waits behind;
  behind.raise(queue.index(), place);
  for (const auto lane : known.sequence->lanes()) {
    const Queue one(lane, queue.detour);
    if (one == queue) continue;
    if (auto waits = batches_.order(one, behind); !waits) return waits;
    (void)lanes_.queued({}, one, behind);
    batches_.add_place(one, behind);
  }
  return {};
}

DeviceHost::Step DeviceHost::begin_play(SetAside::Entry& entry, const SequenceTable::Known& known,
                                        Queue queue, const Waits& waits) {
  const auto ticket = command_.header().ticket;
  set_aside_.begin(entry);
  note_issued(command_.header());
  if (auto ordered = batches_.order(queue, waits); !ordered)
    return not_queued(ticket, Source::set_aside, ordered);
  plays_.emplace(entry.number, Play{Playing(known.sequence, *engine_, queue), waits, {}});
  return play_on(entry);
}

DeviceHost::Step DeviceHost::play_on(SetAside::Entry& entry) {
  auto& play = plays_.at(entry.number);
  auto& playing = play.playing;
  auto outcome = play.outcome;
  while (outcome.ok() && !playing.done()) {
    const auto& step = playing.next();
    if (step.by != 0) {
      const auto passed = pass_branch(playing);
      if (passed.ok() && !*passed) return Step::blocked;
      if (!passed.ok()) outcome = passed.error();
      continue;
    }
    const auto ready = lane_ready(step.lane);
    if (ready.ok() && !*ready) return Step::blocked;
    outcome = ready.ok() ? playing.order_next() : ready.error();
    if (!outcome.ok()) break;
    if (const auto mapped = all_mapped(*step.command); !mapped.ok()) return corrupt(mapped.error());
    const auto& info = step.command->info();
    const Call call(playing.next_queue(), addresses_, step.command->parts(),
                    step.command->header().communicator);
    if (engine_->blocks(info, step.command->op(), call)) {
      // What waits for other ranks would keep the library from its other commands. The run's own
      // collectives are under way on all ranks, and need its next steps.
      if (lanes_.stands_behind_peers(playing.origin(), play.waits)) return Step::blocked;
      begin_step(entry, play);
      return Step::blocked;
    }
    note_overwritten(step.command->operands());
    outcome = run_step(step, call);
    if (outcome.ok()) outcome = playing.passed();
  }
  if (outcome.code() == Errc::would_block) return Step::blocked;
  return end_play(entry, outcome);
}

Result<bool> DeviceHost::pass_branch(Playing& playing) {
  const auto& step = playing.next();
  bool jumps = true;
  if (step.flag != nullptr) {
    const auto ended = playing.ended();
    if (!ended.ok()) return ended;
    if (!*ended) {
      play_waits_ = true;
      return false;
    }
    std::int32_t flag = 0;
    const auto* const at = addresses_.find(*step.flag);
    if (at != nullptr) std::memcpy(&flag, at, sizeof flag);
    jumps = flag == 0;
  }
  if (auto went = playing.go_on(jumps); !went) return went.error();
  return true;
}

bool DeviceHost::play_can_go_on() {
  if (!play_waits_ || mode_ != Mode::active) return false;
  return std::any_of(plays_.begin(), plays_.end(), [](auto& one) {
    auto& playing = one.second.playing;
    if (playing.done() || playing.next().flag == nullptr) return false;
    const auto ended = playing.ended();
    return !ended.ok() || *ended;
  });
}

bool DeviceHost::waits_for_peers(const RecordedSequence& sequence, Queue queue,
                                 const Waits& waits) const {
  const auto& lanes = sequence.lanes();
  return lanes_.waits_for_peers(queue, waits) ||
         std::any_of(lanes.begin(), lanes.end(), [&](Lane lane) {
           return lanes_.waits_for_peers({lane, queue.detour}, {});
         });
}

Result<void> DeviceHost::run_step(const RecordedSequence::Step& step, const Call& call) {
  if (std::exchange(actors_[step.lane].fails_next, false))
    return Error{Errc::library, 0, std::string(step.command->name()) + ": fails, as was ordered"};
  const TracedCommand traced(tracing_.get(), command_.header().ticket, step.command->name());
  return engine_->run(step.command->info(), step.command->op(), call);
}

void DeviceHost::begin_step(SetAside::Entry& entry, Play& play) {
  const auto lane = play.playing.next().lane;
  const auto* const step = &play.playing.next();
  note_overwritten(step->command->operands());
  const auto addresses = std::make_shared<const AddressMap>(addresses_);
  const bool started =
      helpers_.start([this, number = entry.number, step, addresses,
                      queue = play.playing.next_queue(), ticket = command_.header().ticket]() {
        const TracedCommand traced(tracing_.get(), ticket, step->command->name());
        const auto outcome = engine_->run(step->command->info(), step->command->op(),
                                          Call(queue, *addresses, step->command->parts()));
        return Helpers::Finish([this, number, outcome, lane = queue.lane,
                                plans = engine_->take_new_plans(queue.lane)] {
          tell_plans(lane, plans);
          work_over(lane);
          set_aside_due_ = true;
          if (mode_ == Mode::lost) return;
          set_aside_.release(number);
          auto& its_play = plays_.at(number);
          if (outcome.code() == Errc::would_block) return;
          its_play.outcome = outcome.ok() ? its_play.playing.passed() : outcome;
        });
      });
  if (!started) return;  // it is offered again
  entry.held = true;
  actors_[lane].working = true;
  ++working_;
}

DeviceHost::Step DeviceHost::end_play(SetAside::Entry& entry, Result<void> outcome) {
  const auto node = plays_.extract(entry.number);
  auto& [playing, waits, ignored] = node.mapped();
  const auto ticket = command_.header().ticket;
  if (ends_all(outcome.code())) {
    lose(outcome.error());
    return Step::ended;
  }
  const auto failed_lane = playing.done() ? Lane::memory : playing.next().lane;
  if (!outcome.ok()) outcome = at_step(outcome.error(), playing.next_index() + 1);
  if (!outcome.ok() && outcome.code() != Errc::library && outcome.code() != Errc::peer_lost &&
      playing.untouched())
    return answered(ticket, Source::set_aside, outcome);
  if (auto joined = playing.join(); !joined.ok()) {
    lose(joined.error());  // nobody knows when it ends
    return Step::ended;
  }
  const auto queue = playing.origin();
  const auto place = lanes_.queued(command_.operands(), queue, waits);
  add_run(playing.sequence(), queue, waits, place);
  if (auto noted = note_places(playing.sequence(), queue, place); !noted.ok()) {
    lose(noted.error());
    return Step::ended;
  }
  if (outcome.code() == Errc::peer_lost) {
    break_communicator(outcome.error());
    return Step::ended;
  }
  if (outcome.ok()) {
    record_graph(playing);
  } else {
    if (outcome.code() == Errc::library) library_failed(failed_lane, outcome.error());
    replies_.send(ticket, 1, outcome, true);
  }
  return Step::queued;
}

void DeviceHost::abandon_plays() {
  for (auto& [number, play] : plays_) {
    if (!play.playing.join().ok()) continue;  // what is lost shows at the batches' marks
    const auto queue = play.playing.origin();
    const auto place = lanes_.queued({}, queue, play.waits);
    batches_.add_place(queue, play.waits);
    // What is lost shows at the batches' marks, here too.
    (void)note_places(play.playing.sequence(), queue, place);
  }
  plays_.clear();
  play_waits_ = false;
}

Result<std::unique_ptr<Graph>> DeviceHost::make_graph(
    const std::shared_ptr<const RecordedSequence>& sequence, Queue queue) {
  if (auto begun = engine_->begin_graph(queue); !begun) return begun.error();
  Result<void> outcome;
  {
    // The marks go before the recording ends.
    const auto sides = lanes_.sides_of();
    Playing playing(sides && sequence->uses(*sides) ? sequence->spread(*sides) : sequence, *engine_,
                    queue);
    GraphBranches branches(*engine_, addresses_);
    while (outcome.ok()) {
      const auto more = branches.next_command(playing);
      if (!more.ok()) outcome = more.error();
      if (!more.ok() || !*more) break;
      const auto& command = *playing.next().command;
      const Call call(playing.next_queue(), addresses_, command.parts(),
                      command.header().communicator);
      outcome = all_mapped(command);
      if (outcome.ok()) outcome = playing.order_next();
      if (outcome.ok() && engine_->blocks(command.info(), command.op(), call))
        outcome = Error{Errc::unsupported, 0, std::string(command.name()) + " may block"};
      if (outcome.ok()) outcome = engine_->run(command.info(), command.op(), call);
      if (outcome.ok()) outcome = playing.passed();
    }
    const auto joined = playing.join();
    if (outcome.ok()) outcome = joined;
  }
  auto graph = engine_->end_graph(queue);
  if (!outcome.ok()) return outcome.error();
  return graph;
}

/// Whatever its libraries prepare is there by now.
void DeviceHost::record_graph(const Playing& playing) {
  const auto queue = playing.origin();
  auto* const known = sequences_.find(sequence_call(command_).number);
  if (known == nullptr || known->form != Form::list || queue.detour) return;
  if (!known->note_played(playing.queued())) return;  // a branch has yet to go that way
  const auto ready = lanes_ready(*known->sequence, queue.lane);
  if (!ready.ok() || !*ready) return;
  if (helpers_.may_wait_for_device()) return;  // a later run's commands become the graph
  if (known->graphs++ == kGraphs) {
    known->form = Form::only_list;
    return;
  }
  auto made = make_graph(known->sequence, queue);
  if (!made.ok()) {
    if (ends_all(made.code())) return lose(made.error());
    log::debug("host", "a sequence of {} commands is no graph: {}", known->sequence->steps().size(),
               made.error().message);
    known->form = Form::only_list;
    return;
  }
  const std::shared_ptr<Graph> graph = std::move(*made);
  const auto finish = [this, graph, number = known->number] {
    return Helpers::Finish([this, graph, number, finished = engine_->finish_graph(*graph)] {
      auto* const its = sequences_.find(number);
      if (its == nullptr || its->in_making != graph) return;  // it is void by now
      its->in_making = nullptr;
      its->form = finished.ok() ? Form::graph : Form::only_list;
      if (finished.ok()) its->graph = graph;
    });
  };
  const bool started = helpers_.start(finish, Helpers::WaitsFor::stream);
  if (!started) return;
  known->form = Form::making;
  known->in_making = graph;
  known->graph_patches = known->patches;
}

}  // namespace troupe::host
