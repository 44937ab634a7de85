#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/wire/record.hpp"

/// Kinds of commands. Two commands are of one kind if they do the same to operands that only lie
/// elsewhere: then one plan and one set of kernels serves both. What a device host has run, its
/// successor prepares by kind.
namespace troupe::wire {

/// Where the operands of a kind's record lie, one behind another from offset 0; and where its
/// result cell lies, at an offset below 256.
inline constexpr std::uint32_t kKindRegion = kForeignRegion | 1;
inline constexpr std::uint32_t kKindPinnedRegion = kPinnedRegion | kApartRegion | 1;

/// Alike for commands of one kind, different for others but by chance: a hash of the operation
/// without its operands, factors and kPlaces, of what stands in its tail and inline, and of how its
/// operands are aligned and whether they are the same.
std::uint64_t kind_key(const Command& command) noexcept;

/// The record of a command of that kind, whose operands lie in kKindRegion, its cell apart.
/// Alignments up to 256 bytes are kept, as is which operands are the same range.
std::vector<std::byte> kind_record(const Command& command);

/// The bytes of kKindRegion that the operands of such a record take.
std::uint64_t kind_bytes(const Command& kind) noexcept;

}  // namespace troupe::wire
