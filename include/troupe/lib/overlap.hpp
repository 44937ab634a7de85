#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <troupe/lib/operation.hpp>

/// Which operands of an operation may share memory. What is written lies apart from every other
/// operand, unless the operation declares that it works in place:
///
///     static constexpr auto kInPlace = std::array{InPlace{"x", "z"}, InPlace{"y", "z"}};
///
/// A range counts as it is given, whatever part of it the operation touches.
namespace troupe {

/// Two operands of an operation that may share memory although one of them is written.
struct InPlace {
  enum class How : std::uint8_t {
    same,  ///< they are the same range
    part   ///< one is one of the equal parts of the other, which holds a part for each rank
  };
  std::string_view one, other;
  How how = How::same;
};

namespace detail {

inline bool overlap(const Operand& a, const Operand& b) noexcept {
  if (a.region != b.region || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes)
    return false;
  // Tokens count from the start of their buffer.
  const bool named = (a.region & (kPinnedRegion | kForeignRegion | kTokenRegion)) == kTokenRegion;
  return !named || a.buffer == b.buffer;
}

/// Whether the operands of an operation may lie as they do. `uses`: those that are present, without
/// the tail's; `tail_name`: what the operation calls those. Errors: invalid.
Result<void> check_overlap(std::string_view operation, std::span<const InPlace> rules,
                           std::span<const OperandUse> uses, std::string_view tail_name,
                           std::span<const TailOperand> tail);

}  // namespace detail
}  // namespace troupe
