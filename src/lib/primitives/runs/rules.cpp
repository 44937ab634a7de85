#include <troupe/lib/primitives/runs.hpp>

#include "common/wire/checker.hpp"
#include "lib/primitives/common/overflow.hpp"

namespace troupe::primitives {

using wire::checker;

Result<void> ReduceByKey::check() const {
  auto checks = checker(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(reduction <= ReduceOp::bit_xor, "unknown reduction");
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

Result<void> NonTrivialRuns::check() const {
  return checker(*this)
      .require(on_failure <= OnFailure::report, "unknown on_failure")
      .holds("x", x, n)
      .holds("offsets", offsets, capacity, sizeof(std::int64_t))
      .holds("lengths", lengths, capacity, sizeof(std::int64_t))
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> UniqueByKey::check() const {
  auto checks = checker(*this);
  checks.require(on_failure <= OnFailure::report, "unknown on_failure")
      .require(value_bytes == 4 || value_bytes == 8, "values have neither 4 nor 8 bytes");
  if (!checks.ok()) return checks.result();
  return checks.holds("keys", keys, n)
      .holds("values", values, n, value_bytes)
      .holds("unique_keys", unique_keys, capacity)
      .holds("first_values", first_values, capacity, value_bytes)
      .holds("count", count, 1, sizeof(std::int64_t))
      .result();
}

Result<void> ReduceByKey::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> RunLengthEncode::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> NonTrivialRuns::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}
Result<void> UniqueByKey::verdict(const std::byte* cell) const {
  return overflow(*this, cell);
}

}  // namespace troupe::primitives
