#include <troupe/lib/primitives/reductions.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

using wire::checker;

Result<void> Reduce::check() const {
  return checker(*this)
      .require(reduction <= ReduceOp::bit_xor, "unknown reduction")
      .require(reduction < ReduceOp::bit_and || kIntegers.has(dtype),
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
      .require(reduction <= ReduceOp::max, "segments have sums, minima and maxima only")
      .require(segments >= 0 && segments < wire::Checker::kMaxCount,
               "the number of segments is negative or too large")
      .holds("x", x, n)
      .holds("offsets", offsets, segments + 1, sizeof(std::int64_t))
      .holds("result", result, segments)
      .result();
}

}  // namespace troupe::primitives
