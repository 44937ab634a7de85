#include <troupe/lib/primitives.hpp>

#include "common/wire/checker.hpp"

/// The checks of what goes by elements, and of copies.
namespace troupe::primitives {

using wire::Checker;
using wire::checker;

namespace {

Checker& takes(Checker& checks, Unary op, DType dtype) {
  return checks.require(op <= Unary::bit_not, "unknown operator")
      .require((op != Unary::square_root && op != Unary::reciprocal) || !kIntegers.has(dtype),
               "integers have no square roots and reciprocals")
      .require(op != Unary::bit_not || kIntegers.has(dtype),
               "the bits of floating-point numbers are not inverted");
}

}  // namespace

Result<void> Transform::check() const {
  auto checks = checker(*this);
  return takes(checks, op, dtype).holds("x", x, n).holds("y", y, n).result();
}

Result<void> TransformPairs::check() const {
  return checker(*this)
      .require(op <= Binary::bit_xor, "unknown operator")
      .require(op < Binary::bit_and || kIntegers.has(dtype),
               "the bits of floating-point numbers are not combined")
      .holds("x", x, n)
      .holds("y", y, n)
      .holds("z", z, n)
      .result();
}

Result<void> Convert::check() const {
  if (!kOrdered.has(y_dtype)) {
    return Error{
        Errc::unsupported, 0,
        std::string(kName) + ": results are f16, bf16, f32, f64 or integers of 32 or 64 bits"};
  }
  return checker(*this).holds("x", x, n).holds("y", y, n, size_of(y_dtype)).result();
}

Result<void> TransformReduce::check() const {
  auto checks = checker(*this);
  return takes(checks, op, dtype)
      .require(reduction <= ReduceOp::bit_xor, "unknown reduction")
      .require(reduction < ReduceOp::bit_and || kIntegers.has(dtype),
               "the bits of floating-point numbers are not reduced")
      .holds("x", x, n)
      .holds("result", result, std::int64_t{1})
      .result();
}

Result<void> CopyBatched::check() const {
  return checker(*this)
      .require(batch >= 0 && batch <= kMost, "the batch is negative or above 2048")
      .result();
}

Result<void> CopyBatched::check_parts(const Parts& parts) const {
  auto checks = checker(*this);
  checks.require(std::ssize(parts.tail) == 2 * batch,
                 std::to_string(parts.tail.size()) + " ranges, not " + std::to_string(2 * batch));
  const auto count = static_cast<std::size_t>(batch);
  for (std::size_t i = 0; checks.ok() && i < count; ++i) {
    const auto &from = parts.tail[i], &to = parts.tail[count + i];
    checks.require(from.tag == 0 && to.tag == 1, "a range is out of order")
        .require(from.access == Access::read && to.access == Access::write,
                 "a range with the wrong access")
        .require(from.range.present() && to.range.present(), "a range is missing")
        .require(from.range.bytes == to.range.bytes,
                 "source " + std::to_string(i) + " has " + std::to_string(from.range.bytes) +
                     " bytes, its destination " + std::to_string(to.range.bytes));
  }
  return checks.result();
}

}  // namespace troupe::primitives
