#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "device_host/core.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/memory/mappings.hpp"
#include "device_host/sequences/sequences.hpp"

namespace troupe::host {

/// Makes graphs of sequences that have been played as lists: a list does whatever its commands do,
/// a graph is quicker. The reactor's thread only.
class Graphs {
 public:
  Graphs(Core& core, Libraries& libraries, Mappings& mappings, SequenceTable& table)
      : core_(&core), libraries_(&libraries), mappings_(&mappings), table_(&table) {}

  /// Whether the graph of the sequence can be launched on the queue; makes it do what the run
  /// wants.
  bool can_launch(SequenceTable::Known& known, Queue queue);
  /// Records a graph of the sequence with this number, which has just been played.
  void record(std::uint64_t number, const Playing& playing);
  /// Destroys the graphs that are void once what was queued before that has ended: CUDA keeps
  /// whoever destroys a running graph waiting, and one with a collective may run until its
  /// communicator is given up.
  void destroy_void();

 private:
  Result<std::unique_ptr<Graph>> make(const std::shared_ptr<const RecordedSequence>& sequence,
                                      Queue queue);

  Core* core_;
  Libraries* libraries_;
  Mappings* mappings_;
  SequenceTable* table_;
  /// With what was queued when they became void.
  std::vector<std::pair<std::shared_ptr<Graph>, Waits>> void_;
};

}  // namespace troupe::host
