#include "device_host/sequences/graphs.hpp"

#include <string>

#include "common/core/log.hpp"
#include "device_host/sequences/graph_branches.hpp"

namespace troupe::host {
namespace {

using Form = SequenceTable::Form;

/// How many graphs are made of a sequence whose graphs do not last.
constexpr int kGraphs = 4;

}  // namespace

bool Graphs::can_launch(SequenceTable::Known& known, Queue queue) {
  if (known.form != Form::graph || queue.detour) return false;
  if (core_->engine->graphs().is_current(*known.graph)) {
    if (known.graph_patches == known.patches) return true;
    // CUDA changes nodes within conditional ones only in part, and lets no graph be captured while
    // a thread waits for the device: such a run is a list.
    if (known.sequence->branches() || core_->helpers.may_wait_for_device()) return false;
    auto changed = make(known.sequence, queue);
    if (changed.ok()) {
      const auto updated = core_->engine->graphs().update(*known.graph, std::move(*changed));
      if (updated.ok() && *updated) {
        known.graph_patches = known.patches;
        return true;
      }
    }
  }
  table_->drop_graph(known);
  return false;
}

void Graphs::destroy_void() {
  const auto& lanes = core_->lanes;
  if (auto graphs = table_->take_void_graphs(); !graphs.empty()) {
    Waits queued;
    for (std::size_t i = 0; i < kQueueCount; ++i) queued.raise(i, lanes.issued(Queue::at(i)));
    for (auto& graph : graphs) void_.emplace_back(std::move(graph), queued);
  }
  std::erase_if(void_, [&](const auto& entry) {
    return !entry.second.any_of([&](std::size_t queue, Sequence place) {
      return place > lanes.completed(Queue::at(queue));
    });
  });
}

Result<std::unique_ptr<Graph>> Graphs::make(const std::shared_ptr<const RecordedSequence>& sequence,
                                            Queue queue) {
  auto& engine = *core_->engine;
  if (auto begun = engine.graphs().begin(queue); !begun) return begun.error();
  Result<void> outcome;
  {
    // The marks go before the recording ends.
    const auto sides = core_->lanes.sides_of();
    Playing playing(sides && sequence->uses(*sides) ? sequence->spread(*sides) : sequence, engine,
                    queue);
    GraphBranches branches(engine, mappings_->addresses());
    while (outcome.ok()) {
      const auto more = branches.next_command(playing);
      if (!more.ok()) outcome = more.error();
      if (!more.ok() || !*more) break;
      const auto& command = *playing.next().command;
      const Call call(playing.next_queue(), mappings_->addresses(), command.parts(),
                      command.header().communicator);
      outcome = mappings_->reaches_all(command);
      if (outcome.ok()) outcome = playing.order_next();
      if (outcome.ok() && engine.blocks(command.info(), command.op(), call))
        outcome = Error{Errc::unsupported, 0, std::string(command.name()) + " may block"};
      if (outcome.ok()) outcome = engine.run(command.info(), command.op(), call);
      if (outcome.ok()) outcome = playing.passed();
    }
    const auto joined = playing.join();
    if (outcome.ok()) outcome = joined;
  }
  auto graph = engine.graphs().end(queue);
  if (!outcome.ok()) return outcome.error();
  return graph;
}

/// Whatever its libraries prepare is there by now.
void Graphs::record(std::uint64_t number, const Playing& playing) {
  const auto queue = playing.origin();
  auto* const known = table_->find(number);
  if (known == nullptr || known->form != Form::list || queue.detour) return;
  if (!known->note_played(playing.queued())) return;  // a branch has yet to go that way
  const auto ready = libraries_->all_ready(queue.lane, known->sequence->lanes());
  if (!ready.ok() || !*ready) return;
  if (core_->helpers.may_wait_for_device()) return;  // a later run's commands become the graph
  if (known->graphs++ == kGraphs) {
    known->form = Form::only_list;
    return;
  }
  auto made = make(known->sequence, queue);
  if (!made.ok()) {
    if (core_->life.lose_if_dead(made.error())) return;
    log::debug("host", "a sequence of {} commands is no graph: {}", known->sequence->steps().size(),
               made.error().message);
    known->form = Form::only_list;
    return;
  }
  const std::shared_ptr<Graph> graph = std::move(*made);
  const auto finish = [this, graph, number] {
    return Helpers::Finish(
        [this, graph, number, finished = core_->engine->graphs().finish(*graph)] {
          auto* const its = table_->find(number);
          if (its == nullptr || its->in_making != graph) return;  // it is void by now
          its->in_making = nullptr;
          its->form = finished.ok() ? Form::graph : Form::only_list;
          if (finished.ok()) its->graph = graph;
        });
  };
  if (!core_->helpers.start(finish, Helpers::WaitsFor::stream)) return;
  known->form = Form::making;
  known->in_making = graph;
  known->graph_patches = known->patches;
}

}  // namespace troupe::host
