#pragma once

#include <cstdint>

/// The control plane of a world of many ranks: the real protocol (WorldSupervisor, WorldFollower,
/// WorldRelay, their messages encoded and decoded) on a simulated network. What is not simulated is
/// how long the devices take: the work of each phase takes the same time on all ranks.
namespace troupe::simulation {

struct Parameters {
  int ranks = 1;
  int radix = 0;  ///< of the tree of ranks; 0: as the world has it
  // An MPI message of 100 bytes, as osu_latency has it on current machines: in shared memory
  // 0.5-1.5 us, over InfiniBand or Slingshot 1.5-4 us.
  double node_us = 1.5, network_us = 4.0;
  double bytes_per_us = 10'000;
  int ranks_per_node = 8;
  double handling_us = 0;  ///< of a message, by the rank that sends or receives it
  // The devices' work. bench/results/2026-11-20-h200-x2, device host killed: medians.
  double quiesce_ms = 66.7, promote_ms = 7.3, verify_ms = 0.8, restore_ms = 1.0;
};

struct Reformation {
  int depth = 0;  ///< of the tree
  std::uint64_t messages = 0, bytes = 0, most_at_one_rank = 0;
  double control_ms = 0;  ///< of the total, what is not the devices' work
  double total_ms = 0;    ///< from the report of the fault until the last rank is active again
};

/// A world forms, raises its standby world, and loses the device host of its last rank.
Reformation lose_one(const Parameters& parameters);

/// What a message costs a rank here and now: the run of a world of 512 ranks, over its messages,
/// each of which is handled twice. The simulation's own cost is in it: a bound from above.
double measure_handling_us(Parameters parameters);

}  // namespace troupe::simulation
