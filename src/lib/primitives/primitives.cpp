#include <troupe/lib/primitives.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

using wire::checker;

Result<void> Sort::check() const {
  auto checks = checker(*this);
  checks.require(order <= Order::descending, "unknown order")
      .require(value_bytes == 0 || value_bytes == 4 || value_bytes == 8,
               "values have neither 4 nor 8 bytes")
      .holds("keys", keys, n)
      .holds("sorted_keys", sorted_keys, n);
  if (!checks.ok()) return checks.result();
  if (value_bytes == 0)
    return checks
        .require(!values.present() && !sorted_values.present(),
                 "there are values, but value_bytes is 0")
        .result();
  return checks.holds("values", values, n, value_bytes)
      .holds("sorted_values", sorted_values, n, value_bytes)
      .result();
}

Result<void> Reduce::check() const {
  return checker(*this)
      .require(reduction <= Reduction::bit_xor, "unknown reduction")
      .require(reduction < Reduction::bit_and || kIntegers.has(dtype),
               "the bits of floating-point numbers are not reduced")
      .holds("x", x, n)
      .holds("result", result, std::int64_t{1})
      .result();
}

Result<void> ArgReduce::check() const {
  return checker(*this)
      .require(extreme <= Extreme::max, "unknown extreme")
      .holds("x", x, n)
      .holds("value", value, std::int64_t{1})
      .holds("index", index, 1, sizeof(std::int64_t))
      .result();
}

Result<void> SegmentedReduce::check() const {
  return checker(*this)
      .require(reduction <= Reduction::max, "segments have sums, minima and maxima only")
      .require(segments >= 0 && segments < wire::Checker::kMaxCount,
               "the number of segments is negative or too large")
      .holds("x", x, n)
      .holds("offsets", offsets, segments + 1, sizeof(std::int64_t))
      .holds("result", result, segments)
      .result();
}

Result<void> Scan::check() const {
  return checker(*this)
      .require(scanning <= Scanning::exclusive, "unknown scanning")
      .holds("x", x, n)
      .holds("y", y, n)
      .result();
}

Result<void> SelectNonzero::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("indices", indices, capacity, sizeof(std::int64_t))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> SelectNonzero::verdict(const std::byte* cell) const {
  std::int64_t found = 0;
  std::memcpy(&found, cell, sizeof found);
  if (found <= capacity || on_failure == OnFailure::report) return {};
  return Error{Errc::invalid, 0,
               std::string(kName) + ": overflow: " + std::to_string(found) +
                   " elements, room for " + std::to_string(capacity)};
}

}  // namespace troupe::primitives
