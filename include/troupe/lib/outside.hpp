#pragma once

#include <cstdint>

#include <troupe/lib/operation.hpp>

/// Operands for things outside of device and pinned memory that an operation reads or writes:
/// files, or anything else that the program's own code works on. An operation declares them in the
/// same list as its memory:
///
///     Operand file;  // = outside::thing(…)
///     static constexpr std::array kOperands{read("source", &Write::source),
///                                           write("file", &Write::file)};
///
/// All that orders commands by the memory they name orders them by these too: the queues of a
/// device host, commands that are set aside, recorded sequences and their graphs, and which
/// commands run again after a fault. Engines map none of them, and halves have no use for them.
namespace troupe::outside {

/// The region of such operands: no pinned segment has this number.
inline constexpr std::uint32_t kRegion = kPinnedRegion;
inline constexpr std::uint64_t kEnd = std::uint64_t{1} << 62;  ///< of its "bytes"

[[nodiscard]] constexpr bool is_outside(const Operand& operand) noexcept {
  return operand.region == kRegion;
}
/// One thing, by a hash of all that identifies it.
[[nodiscard]] constexpr Operand thing(std::uint64_t hash) noexcept {
  return {.region = kRegion, .offset = hash % kEnd, .bytes = 1};
}
/// For an operation of which nothing more is known: it overlaps every thing.
[[nodiscard]] constexpr Operand everything() noexcept {
  return {.region = kRegion, .bytes = kEnd};
}

}  // namespace troupe::outside
