#pragma once

#include <cstdint>
#include <memory>

#include <troupe/error.hpp>

#include "device_host/engine/queue.hpp"

namespace troupe::host {

/// A sequence of operations that an engine has prepared to be launched as one.
class Graph {
 public:
  virtual ~Graph() = default;
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

/// Sequences of operations that an engine launches as one. What was launched of a graph runs on
/// when it is let go of. The reactor's thread, unless a function says otherwise. By default there
/// are none.
class EngineGraphs {
 public:
  EngineGraphs() = default;
  EngineGraphs(const EngineGraphs&) = delete;
  EngineGraphs& operator=(const EngineGraphs&) = delete;
  virtual ~EngineGraphs() = default;

  /// From now on what is queued on `origin`, and on queues that have waited for a mark of it,
  /// becomes part of a graph instead. Until end() no other queue is used, and these by no other
  /// thread.
  virtual Result<void> begin(Queue) { return none(); }
  /// Ends that, in any case; `origin` has waited for what stands on the other queues. Errors:
  /// unsupported if something cannot be part of a graph.
  virtual Result<std::unique_ptr<Graph>> end(Queue) { return none(); }
  /// While a graph is recorded: what is queued from now on is carried out only if, or with `again`
  /// as long as, *flag (device memory) is not 0 when a launch gets there. `origin` has waited for
  /// what stands on the other queues, and no mark from before is waited for any more.
  virtual Result<void> begin_branch(Queue, const std::int32_t* /*flag*/, bool /*again*/) {
    return none();
  }
  /// Ends that, after the same.
  virtual Result<void> end_branch(Queue) { return none(); }
  /// Makes it ready to be launched. Helper thread; may block.
  virtual Result<void> finish(Graph&) { return none(); }
  /// From now on the graph, which is ready, does what `changed` does. False: they differ in more
  /// than the arguments of their operations, and nothing is changed.
  virtual Result<bool> update(Graph&, std::unique_ptr<Graph>) { return none(); }
  /// False: something that its libraries have prepared for it is gone.
  [[nodiscard]] virtual bool is_current(const Graph&) const { return true; }
  /// Queues all of it.
  virtual Result<void> launch(Graph&, Queue) { return none(); }

 private:
  static Error none() { return {Errc::unsupported, 0, "this engine makes no graphs"}; }
};

}  // namespace troupe::host
