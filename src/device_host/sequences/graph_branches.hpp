#pragma once

#include <cstddef>
#include <vector>

#include "device_host/sequences/sequences.hpp"

namespace troupe::host {

/// The branches of a sequence that is recorded as a graph: the engine makes parts of the graph of
/// them, which look at the flag where the program has it. The reactor's thread.
class GraphBranches {
 public:
  GraphBranches(Engine& engine, const AddressMap& addresses)
      : engine_(&engine), addresses_(&addresses) {}

  /// Goes on to the next step that is to be queued. False: there is none. Errors: unsupported if
  /// branches do not lie within one another as if_() and while_() record them; the engine's.
  Result<bool> next_command(Playing& playing);

 private:
  Result<void> enter(Playing& playing);
  Result<void> leave(Playing& playing);

  Engine* engine_;
  const AddressMap* addresses_;
  std::vector<std::size_t> ends_;  ///< of those that are open: the first step behind each
};

}  // namespace troupe::host
