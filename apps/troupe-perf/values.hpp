#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "operations.hpp"

/// What ranks put into their buffers, and what must be in them afterwards.
///
/// Operations that only move elements move bits that are a hash of rank and place. Those that
/// reduce get small whole numbers, such that sums, products and extremes are exact in every type,
/// whatever the order and however many ranks: of a sum at most three terms are not zero. Averages
/// of floating-point numbers alone may be rounded.
///
/// Contents are periodic in the place, with a prime period, so that checking costs little more than
/// a comparison of memory.
namespace troupe::perf {

/// Elements after which contents repeat.
inline constexpr std::int64_t kPeriod = 4099;

/// A call among ranks, and the run of it that is checked: other runs have other contents.
struct Case {
  Call call;
  int size = 1;
  std::uint64_t repetition = 0;
};

/// At most so many elements are written or read at a time.
inline constexpr std::int64_t kPiece = 1 << 22;

/// So many elements of a rank's source, from `first` on.
std::vector<std::byte> source_of(const Case& one, int rank, std::int64_t first,
                                 std::int64_t elements);

/// The scalar of a rank for Reduction::mulsum.
constexpr int scalar_of(int rank) noexcept {
  return 1 + rank % 2;
}

/// A small whole number as a type has it, in the lowest bytes.
std::uint64_t bits_of(int value, DType dtype);

/// Gives so many elements of a destination, from `first` on.
using ReadPiece = std::function<std::vector<std::byte>(std::int64_t first, std::int64_t elements)>;

/// How many elements of a rank's destination are not what they must be: NaN counts as wrong. What
/// the operation does not write at that rank is not looked at, and gives 0.
std::int64_t count_wrong(const Case& one, int rank, const ReadPiece& read);

}  // namespace troupe::perf
