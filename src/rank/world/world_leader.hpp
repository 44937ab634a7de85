#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rank/protocol/inquiry.hpp"
#include "rank/protocol/library_comparison.hpp"
#include "rank/protocol/slow_ranks.hpp"
#include "rank/protocol/split_order.hpp"
#include "rank/protocol/supervisor.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// The work of one rank for all: it leads re-formations (WorldSupervisor), asks who waits for
/// whom (Inquiry), puts host collectives in order (SplitOrder), compares libraries and looks for
/// slow ranks. The WorldActor's turns.
class WorldLeader {
 public:
  explicit WorldLeader(WorldParts& parts);

  void start();
  /// See WorldSupervisor::take_over().
  void take_over(const WorldSupervisor::Heritage& heritage);
  /// A message for the leader itself: gives it to the one here that it is for.
  void hear(const RankMessage& message);
  void tick();
  [[nodiscard]] std::uint32_t round() const noexcept { return supervisor_.round(); }
  /// Warns of what is left to be told of the ranks' libraries.
  void conclude() { warn(libraries_.conclude()); }

 private:
  void report_inquiry();
  void report(const std::optional<SplitOrder::Finding>& finding);
  void tell_of_standby_world();
  void look_for_slow_ranks(const from_rank::Committed& committed);
  static void warn(const std::vector<std::string>& lines);

  WorldParts& parts_;
  WorldSupervisor supervisor_;
  Inquiry inquiry_;
  LibraryComparison libraries_;
  SlowRanks slow_ranks_;
  SplitOrder splits_;
};

}  // namespace troupe::rank_process
