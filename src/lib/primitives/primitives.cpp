#include <troupe/lib/primitives.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

using wire::checker;

namespace {

/// The error of an operation that has found more than there is room for. `cell`: how many it found.
template <class Op>
Result<void> overflow(const Op& op, const std::byte* cell) {
  std::int64_t found = 0;
  std::memcpy(&found, cell, sizeof found);
  if (found <= op.capacity || op.on_failure == OnFailure::report) return {};
  return Error{Errc::invalid, 0,
               std::string(Op::kName) + ": overflow: " + std::to_string(found) +
                   " elements, room for " + std::to_string(op.capacity)};
}

}  // namespace

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

Result<void> SelectNonzero::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("indices", indices, capacity, sizeof(std::int64_t))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> SelectFlagged::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("flags", flags, n, sizeof(std::uint8_t))
      .holds("selected", selected, capacity)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> PartitionFlagged::check() const {
  return checker(*this)
      .holds("x", x, n)
      .holds("flags", flags, n, sizeof(std::uint8_t))
      .holds("y", y, n)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> Unique::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("selected", selected, capacity)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> ReduceByKey::check() const {
  auto checks = checker(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(reduction <= Reduction::bit_xor, "unknown reduction");
  if (!checks.ok()) return checks.result();
  if (!kIntegers.has(value_dtype))
    return Error{Errc::unsupported, 0,
                 std::string(kName) + ": values are integers of 32 or 64 bits"};
  return checks.holds("keys", keys, n)
      .holds("values", values, n, size_of(value_dtype))
      .holds("unique_keys", unique_keys, capacity)
      .holds("results", results, capacity, size_of(value_dtype))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> RunLengthEncode::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("values", values, capacity)
      .holds("lengths", lengths, capacity, sizeof(std::int64_t))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> SelectNonzero::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> SelectFlagged::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> Unique::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> ReduceByKey::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> RunLengthEncode::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}

}  // namespace troupe::primitives
