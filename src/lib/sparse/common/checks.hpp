#pragma once

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <span>
#include <string_view>

#include <troupe/lib/sparse.hpp>

#include "common/wire/checker.hpp"

/// What the checks of operations on sparse matrices have in common.
namespace troupe::sparse {

using wire::checker;
using wire::Checker;

inline bool is_index(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64;
}
/// Indices of 32 bits reach all of these.
inline Checker& within_indices(Checker& checks, DType index_dtype,
                               std::initializer_list<std::int64_t> extents) {
  return checks.require(index_dtype != DType::i32 || std::max(extents) <= INT32_MAX,
                        "the matrix is too large for 32-bit indices");
}
/// How many bits number the places of a matrix, row and column each for itself: sorts of elements
/// have kPlaceBits for that.
inline int bits_of_places(std::int64_t rows, std::int64_t columns) {
  const auto bits = [](std::int64_t extent) {
    return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(extent, 1) - 1));
  };
  return static_cast<int>(bits(rows) + bits(columns));
}
inline constexpr int kPlaceBits = 63;

/// A dense matrix in either order.
inline Checker& dense(Checker& checks, std::string_view name, const Operand& operand,
                      blas::Order order, std::int64_t rows, std::int64_t columns,
                      std::int64_t leading) {
  if (order == blas::Order::column) return checks.matrix(name, operand, rows, columns, leading);
  checks.require(leading >= std::max<std::int64_t>(1, columns),
                 "a leading dimension is smaller than the number of columns");
  return checks.ok() ? checks.matrix(name, operand, columns, rows, leading) : checks;
}

/// A matrix in one of these formats, with its buffers. Requires all that Form says of it; indices
/// themselves are in device memory, and nobody looks at them here.
Checker& sparse_matrix(Checker& checks, const Form& form, std::initializer_list<Format> taken,
                       const Operand& outer, const Operand& inner, const Operand& value);
/// A tail of operands of which each tag occurs once at most: the first tags are values, so many of
/// each as `counts` says. Those from `first_written` to `last` are written, the others read.
inline void check_tagged(Checker& checks, std::span<const TailOperand> tail,
                         std::span<const std::int64_t> counts, std::uint32_t first_written,
                         std::uint32_t last) {
  std::uint32_t given = 0;
  for (const auto& [range, tag, access, unused] : tail) {
    checks.require(tag <= last, "an operand of an unknown tag");
    if (!checks.ok()) return;
    checks.require((given >> tag & 1u) == 0, "an operand of the same tag as another")
        .require(access == (tag >= first_written ? Access::write : Access::read),
                 "what belongs to C is written, the rest read");
    if (tag < counts.size()) checks.holds("value", range, counts[tag]);
    given |= 1u << tag;
  }
}

/// What a result of a size that is known late was to fit in.
struct Room {
  DType index_dtype{};
  std::int64_t capacity = 0;
  OnFailure on_failure{};
};
/// The verdict on a result whose size is known late, and stands in the cell as std::int64_t.
/// `counted`: of what, "nonzeros". A negative size tells of wrong arguments: `no_matrix`.
Result<void> judge_size(std::string_view operation, const std::byte* cell, const Room& room,
                        std::string_view counted, std::string_view no_matrix = {});

}  // namespace troupe::sparse
