#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

/// The source of a rank.
std::vector<std::byte> source_of(const Case& one, int rank);

/// The scalar of a rank for Reduction::mulsum.
constexpr int scalar_of(int rank) noexcept {
  return 1 + rank % 2;
}

/// A small whole number as a type has it, in the lowest bytes.
std::uint64_t bits_of(int value, DType dtype);

/// How many elements of a rank's destination are not what they must be: NaN counts as wrong. What
/// the operation does not write at that rank is not looked at, and gives 0.
std::int64_t count_wrong(const Case& one, int rank, std::span<const std::byte> destination);

}  // namespace troupe::perf
