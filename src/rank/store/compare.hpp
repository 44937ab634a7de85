#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <troupe/saved_state.hpp>

namespace troupe::rank_process {

/// How two versions of an entry differ.
struct Difference {
  std::uint64_t first = 0;    ///< the first element that differs
  std::uint64_t count = 0;    ///< how many do
  std::string before, after;  ///< the values of the first
};

/// Compares two versions of an entry, element by element; nullopt: they are equal. Floating-point
/// numbers of 16 bits and more may differ by `tolerance` times the largest magnitude in the entry;
/// all else must be equal bit for bit, and with tolerance 0 everything.
std::optional<Difference> compare(const SavedEntry& entry, std::span<const std::byte> before,
                                  std::span<const std::byte> after, double tolerance);

}  // namespace troupe::rank_process
