#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <type_traits>

namespace troupe {

struct RankTag;

/// An integer that cannot be mixed up with another kind of integer.
template <class Tag, class Rep>
struct StrongId {
  Rep value{};

  constexpr StrongId() = default;
  /// A rank is a number in every program of MPI: `send(data, 1)`.
  constexpr explicit(!std::is_same_v<Tag, struct RankTag>) StrongId(Rep v) : value(v) {}
  friend constexpr auto operator<=>(StrongId, StrongId) = default;
};

using Rank = StrongId<struct RankTag, std::int32_t>;             ///< position in the world, from 0
using DeviceOrdinal = StrongId<struct DeviceTag, std::int32_t>;  ///< a GPU of this node, from 0
using Generation =
    StrongId<struct GenerationTag, std::uint32_t>;         ///< version of a buffer's contents
using Epoch = StrongId<struct EpochTag, std::uint32_t>;    ///< incarnation of the world, from 1
using Ticket = StrongId<struct TicketTag, std::uint64_t>;  ///< position in a rank's program, from 1

}  // namespace troupe

/// Strong ids as keys of unordered containers.
template <class Tag, class Rep>
struct std::hash<troupe::StrongId<Tag, Rep>> {
  std::size_t operator()(troupe::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
