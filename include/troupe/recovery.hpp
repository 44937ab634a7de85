#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// How one fault was overcome; times in milliseconds, wall clock. The times of its parts are those
/// of recovery.def, which says what is in each: detect_ms, quiesce_ms, replace_ms, form_ms,
/// verify_ms, restore_ms.
struct Recovery {
  int rank = 0;      ///< whose device host was lost
  std::string kind;  ///< "kill", "segv", "hang", "exit", "illegal-address", …;
                     ///< "failed": the GPU is gone, and the world goes on without it;
                     ///< "withdrawn": the same of one that said it was failing;
                     ///< "left": none was lost, the rank left World::run by an error;
                     ///< "error": none was lost, a step failed as if by a fault
  /// The step that the program there was in when it heard of the loss: a program runs ahead of its
  /// device, by as many steps as it submits without waiting. -1: it was in none, or in its first
  /// commit.
  std::int64_t iteration = -1;
  std::uint32_t epoch = 0;  ///< the epoch that began afterwards
#define TROUPE_RECOVERY_TIME(name, meaning) double name##_ms = 0;
#include <troupe/recovery.def>
  /// The part of replace_ms from the detection until the process of the lost device host had ended;
  /// 0: nobody had to wait for that.
  double end_ms = 0;
  double total_ms = 0;             ///< from the fault to the new epoch
  std::uint32_t lost_buffers = 0;  ///< whose contents went, over all ranks
  std::int64_t repeated_iterations = 0;
};

/// One of the times of a Recovery: its name, as in the reports, and the member that has it.
struct RecoveryTime {
  std::string_view name;
  double Recovery::*ms;
};
/// In order.
inline constexpr RecoveryTime kRecoveryTimes[] = {
#define TROUPE_RECOVERY_TIME(name, meaning) {#name, &Recovery::name##_ms},
#include <troupe/recovery.def>
};

/// The names of a recovery's phases, in order.
inline constexpr std::string_view kRecoveryPhases[] = {
#define TROUPE_RECOVERY_PHASE(name, time) #name,
#include <troupe/recovery.def>
};

/// How the process of a rank ends, for tests and drills.
enum class RankDeath : std::uint8_t {
  rank,  ///< it is killed
  node,  ///< the keeper that has started it is killed with it, as if the node were lost
  stop   ///< it is stopped (SIGSTOP), and does not answer any more
};
inline constexpr RankDeath kRankDeaths[] = {RankDeath::rank, RankDeath::node, RankDeath::stop};
constexpr const char* to_string(RankDeath death) noexcept {
  constexpr const char* kNames[] = {"rank", "node", "stop"};
  return kNames[static_cast<int>(death)];
}

}  // namespace troupe
