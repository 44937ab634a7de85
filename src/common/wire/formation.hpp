#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/error.hpp>

/// The groups of a world, as ranks and device hosts tell one another when communicators are formed.
namespace troupe::wire {

/// A group's number is the same on all of its members, and no other group of any of them has it; 0
/// is the world's.
inline constexpr std::uint32_t kWorld = 0;

enum class GroupState : std::uint32_t {
  forming,   ///< it has yet to be formed for the first time, or not all members know of that
  held,      ///< the program has it
  dropped,   ///< the program has let it go; others may not have
  returning  ///< the program has it, but the world went on without this rank, which comes back:
             ///< what the others have let go meanwhile is gone
};

/// A group that a rank is in.
struct FormingGroup {
  std::uint32_t number = 0;
  GroupState state{};
  std::vector<std::int32_t> members{};  ///< ranks of the world that is formed, in the group's order

  [[nodiscard]] bool sound() const noexcept { return number != kWorld; }
  friend bool operator==(const FormingGroup&, const FormingGroup&) = default;
};

/// What a rank contributes to one communicator.
struct Share {
  std::uint32_t number = kWorld;
  GroupState state{};
  std::vector<std::byte> bytes{};

  friend bool operator==(const Share&, const Share&) = default;
};

/// What a rank contributes in all: its share of the world's communicator, and of each of its
/// groups'.
using Contribution = std::vector<Share>;
std::vector<std::byte> encode_contribution(const Contribution& contribution);
/// Errors: internal.
Result<Contribution> decode_contribution(std::span<const std::byte> bytes);

/// The share of a number; nullptr: there is none.
const Share* share_of(const Contribution& contribution, std::uint32_t number);

/// Which of a rank's groups are to be formed, by number: those that all members know and somebody
/// still wants, who is not only returning where others have let it go. `contributions`: of the
/// world's ranks.
std::vector<FormingGroup> groups_to_form(const std::vector<FormingGroup>& groups,
                                         const std::vector<Contribution>& contributions);

}  // namespace troupe::wire
