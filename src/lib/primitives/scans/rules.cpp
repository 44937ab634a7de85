#include <troupe/lib/primitives/scans.hpp>

#include "common/wire/checker.hpp"

namespace troupe::primitives {

using wire::checker;

Result<void> Scan::check() const {
  return checker(*this)
      .require(scanning <= Scanning::exclusive, "unknown scanning")
      .require(reduction <= ReduceOp::bit_xor, "unknown reduction")
      .require(reduction < ReduceOp::bit_and || kIntegers.has(dtype),
               "the bits of floating-point numbers are not combined")
      .holds("x", x, n)
      .holds("y", y, n)
      .scalar("initial", initial)
      .result();
}

Result<void> ScanByKey::check() const {
  auto checks = checker(*this);
  if (checks.ok() && !kNumbers.has(value_dtype))
    return Error{Errc::unsupported, 0,
                 std::string(kName) + ": values are neither integers of 32 or 64 bits nor reals"};
  checks.require(scanning <= Scanning::exclusive, "unknown scanning")
      .require(reduction <= ReduceOp::bit_xor, "unknown reduction")
      .require(reduction < ReduceOp::bit_and || kIntegers.has(value_dtype),
               "the bits of floating-point numbers are not combined");
  if (!checks.ok()) return checks.result();
  const auto size = size_of(value_dtype);
  checks.holds("keys", keys, n).holds("values", values, n, size).holds("results", results, n, size);
  if (initial.device.present()) checks.holds("initial", initial.device, 1, size);
  return checks.result();
}

}  // namespace troupe::primitives
