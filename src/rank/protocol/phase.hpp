#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <troupe/recovery.hpp>

namespace troupe::rank_process {

/// The phases of a re-formation, in order. Forming the world for the first time is a re-formation
/// that starts at `replace`.
enum class Phase : std::uint32_t {
  active,
#define TROUPE_RECOVERY_PHASE(name, time) name,
#include <troupe/recovery.def>
};
inline constexpr std::size_t kPhaseCount = 1 + std::size(kRecoveryPhases);
std::string_view to_string(Phase phase) noexcept;
/// What the time in this phase is reported as; nullptr of `active`.
double Recovery::*time_of(Phase phase) noexcept;

/// The two steps by which the standbys form a communicator while the world works.
enum class Preparation : std::uint32_t { contribute, connect };

}  // namespace troupe::rank_process
