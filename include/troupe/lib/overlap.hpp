#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

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

struct NamedRange {
  std::string_view name;
  const Operand* range = nullptr;
  bool written = false;
};

inline bool overlap(const Operand& a, const Operand& b) noexcept {
  if (a.region != b.region || a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes)
    return false;
  // Tokens count from the start of their buffer.
  const bool named = (a.region & (kPinnedRegion | kForeignRegion | kTokenRegion)) == kTokenRegion;
  return !named || a.buffer == b.buffer;
}

/// Whether two ranges that overlap may, as `rules` say; the error is the answer else.
Result<void> judge_overlap(std::string_view operation, const NamedRange& a, const NamedRange& b,
                           std::span<const InPlace> rules);
/// The ranges of a grouped operation: nothing that is received into overlaps any other of them.
Result<void> check_transfers(std::string_view operation, std::span<const PeerTransfer> tail);

template <class Op>
constexpr std::span<const InPlace> in_place_rules() {
  if constexpr (requires { Op::kInPlace; }) {
    return Op::kInPlace;
  } else {
    return {};
  }
}

/// Whether the operands of an operation may lie as they do. Errors: invalid.
template <Operation Op>
Result<void> check_overlap(const Op& op, std::span<const PeerTransfer> tail) {
  std::array<NamedRange, std::tuple_size_v<decltype(Op::kOperands)> + 1> ranges;
  std::size_t count = 0;
  for_each_operand(op, {}, [&](std::string_view name, const Operand& range, Access access) {
    ranges[count++] = {name, &range, access != Access::read};
  });
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      if (!ranges[i].written && !ranges[j].written) continue;
      if (!overlap(*ranges[i].range, *ranges[j].range)) continue;
      auto judged = judge_overlap(Op::kName, ranges[i], ranges[j], in_place_rules<Op>());
      if (!judged.ok()) return judged;
    }
  }
  if constexpr (HasTail<Op>) return check_transfers(Op::kName, tail);
  return {};
}

}  // namespace detail
}  // namespace troupe
