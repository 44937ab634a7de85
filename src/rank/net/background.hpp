#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rank/net/host_group.hpp"

namespace troupe::rank_process {

/// Exchanges between the ranks of a group beside the program, on a communicator of its own: for one
/// thread of each rank, which all make the same calls in the same order. Whoever waits sleeps:
/// these threads must not take the cores from the program.
class BackgroundExchange {
 public:
  explicit BackgroundExchange(const HostGroup& group) : group_(&group) {}

  /// As HostGroup::all_gather.
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all);
  /// Sends `outgoing` to rank `to` and returns what rank `from` sends here. `incoming` is taken for
  /// room that may be used again.
  std::vector<std::byte> shift(std::span<const std::byte> outgoing, int to, int from,
                               std::vector<std::byte> incoming);

 private:
  const HostGroup* group_;
};

}  // namespace troupe::rank_process
