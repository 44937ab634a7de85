#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

namespace troupe::drill {

inline constexpr std::int64_t kStreamLength = 1024;  ///< what all ranks reduce again and again
inline constexpr std::int64_t kCommitEvery = 8;      ///< steps; those of faults are no multiple
inline constexpr auto kSettleLimit = std::chrono::seconds(60);  ///< for the standbys to come up

/// What is measured as one series: faults of this kind, alone or with a second one.
struct Attack {
  memory::FaultKind kind = memory::FaultKind::kill;
  std::string phase{};  ///< of the recovery, in which another rank suffers the same; empty: none
  std::optional<RankDeath> death{};     ///< it is the rank's process that suffers, and this
  std::optional<SilentFault> silent{};  ///< nothing fails, but a bit changes

  [[nodiscard]] std::string name() const {
    if (silent) return std::string(to_string(*silent));
    return death ? to_string(*death) : std::string(to_string(kind));
  }
};

struct Options {
  std::vector<Attack> attacks;
  std::vector<int> victims;                        ///< ranks that suffer the first fault, together
  std::optional<int> second;                       ///< the rank that suffers the one in a phase
  std::int64_t repetitions = 5;                    ///< of each attack
  std::optional<std::chrono::nanoseconds> settle;  ///< nothing: until the standbys are ready
  std::uint64_t kept_bytes = 0;
  bool in_run = false;
  bool ranks_die = false;  ///< the attacks are on the processes of ranks, all of them
  bool silent = false;     ///< the attacks change bits, all of them
  bool shrinks = false;    ///< the world goes on without those that are struck, until they are back
  std::vector<int> world_sizes;  ///< to be simulated
  std::string json;
};

std::vector<OptionSpec> option_specs();

/// What can be said without a world. Errors: invalid.
Result<void> check_options(const Config& config);
/// The options as they apply to a world of `ranks` ranks with that engine. Errors: invalid.
Result<Options> parse_options(const Config& config, int ranks, const std::string& engine);

}  // namespace troupe::drill
