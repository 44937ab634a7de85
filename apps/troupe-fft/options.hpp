#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/ordered_fault.hpp>

namespace troupe::fft3 {

/// Along the axes 0, 1 and 2; the last one varies fastest in memory.
using Triple = std::array<std::int64_t, 3>;

/// How the array in space is divided among the ranks.
enum class Shape { automatic, slabs, pencils };

struct Options {
  Triple points{};        ///< of the whole array
  bool real = false;      ///< r2c, in place of c2c
  bool single = false;    ///< float, in place of double
  std::int64_t runs = 0;  ///< a transform and its inverse each
  std::int64_t commit_every = 0;
  Shape shape = Shape::automatic;
  std::optional<Triple> ingrid;  ///< ranks along each axis, in space
  int pieces = 0;                ///< in which slabs are exchanged; 0: as many as suits
  std::string json;
  std::vector<OrderedFault> faults;

  [[nodiscard]] double elements() const;
  /// Of one transform, as is usual: 5 N log2 N, and half as many of a real array.
  [[nodiscard]] double flops() const;
};

std::vector<OptionSpec> option_specs();
/// Errors: invalid, one line that names the option.
Result<Options> parse_options(const Config& config);

/// How so many ranks divide the array in space: rows, columns, 1. Errors: invalid.
Result<Triple> grid_of(const Options& options, int ranks);

}  // namespace troupe::fft3
