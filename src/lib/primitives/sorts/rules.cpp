#include <troupe/lib/primitives.hpp>

#include "common/wire/checker.hpp"

/// The checks of sorts and merges.
namespace troupe::primitives {

using wire::Checker;
using wire::checker;

namespace {

/// A range of values, and how many there must be.
struct Values {
  std::string_view name;
  const Operand& range;
  std::int64_t count;
};
/// That there are values of that size, or none if it is 0.
Checker& values_hold(Checker& checks, std::uint32_t value_bytes,
                     std::initializer_list<Values> all) {
  checks.require(value_bytes == 0 || value_bytes == 4 || value_bytes == 8,
                 "values have neither 4 nor 8 bytes");
  for (const auto& values : all) {
    if (!checks.ok()) break;
    if (value_bytes == 0) {
      checks.require(!values.range.present(), "there are values, but value_bytes is 0");
    } else {
      checks.holds(values.name, values.range, values.count, value_bytes);
    }
  }
  return checks;
}

}  // namespace

Result<void> Sort::check() const {
  auto checks = checker(*this);
  checks.require(order <= Order::descending, "unknown order");
  if (!checks.ok()) return checks.result();
  const auto bits = static_cast<std::uint32_t>(8 * size_of(dtype));
  if (begin_bit != 0 || end_bit != 0) {
    checks.require(kIntegers.has(dtype), "some bits count alone of integers only")
        .require(begin_bit < (end_bit == 0 ? bits : end_bit) && end_bit <= bits,
                 "there are no such bits of a key");
  }
  checks.holds("keys", keys, n).holds("sorted_keys", sorted_keys, n);
  return values_hold(checks, value_bytes,
                     {{"values", values, n}, {"sorted_values", sorted_values, n}})
      .result();
}

Result<void> SegmentedSort::check() const {
  auto checks = checker(*this);
  checks.require(order <= Order::descending, "unknown order")
      .require(segments >= 0 && segments < Checker::kMaxCount,
               "the number of segments is negative or too large")
      .holds("keys", keys, n)
      .holds("offsets", offsets, segments + 1, sizeof(std::int64_t))
      .holds("sorted_keys", sorted_keys, n);
  return values_hold(checks, value_bytes,
                     {{"values", values, n}, {"sorted_values", sorted_values, n}})
      .result();
}

Result<void> Merge::check() const {
  auto checks = checker(*this);
  checks.require(order <= Order::descending, "unknown order").holds("a", a, n_a).holds("b", b, n_b);
  if (!checks.ok()) return checks.result();
  const auto both = n_a + n_b;  // each fits into its buffer
  checks.holds("merged", merged, both);
  return values_hold(checks, value_bytes,
                     {{"values_a", values_a, n_a},
                      {"values_b", values_b, n_b},
                      {"merged_values", merged_values, both}})
      .result();
}

}  // namespace troupe::primitives
