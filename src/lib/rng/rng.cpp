#include <troupe/lib/rng.hpp>

#include "common/wire/checker.hpp"

namespace troupe::rng {

using wire::checker;
using wire::Checker;

namespace {

template <class Op>
Checker random(const Op& op) {
  auto checks = checker(op);
  checks.require(op.subsequence < (std::uint64_t{1} << 24), "subsequence must be below 2^24")
      .require(op.offset < kSubsequenceStride, "offset must be below 2^40")
      .holds("destination", op.destination, op.n);
  return checks;
}

}  // namespace

Result<void> Uniform::check() const {
  return random(*this).result();
}

Result<void> Normal::check() const {
  return random(*this)
      .require(n % 2 == 0 && offset % 2 == 0, "length and offset must be even")
      .result();
}

}  // namespace troupe::rng
