#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::rank_process {

/// The phases of a re-formation, in order. Forming the world for the first time is a re-formation
/// that starts at `replace`.
enum class Phase : std::uint32_t { active, halt, quiesce, replace, form, verify, restore };
inline constexpr std::size_t kPhaseCount = 7;
std::string_view to_string(Phase phase) noexcept;

/// The two steps by which the standbys form a communicator while the world works.
enum class Preparation : std::uint32_t { contribute, connect };

}  // namespace troupe::rank_process
