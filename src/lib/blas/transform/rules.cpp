#include "lib/blas/common/checks.hpp"

namespace troupe::blas {

Result<void> Transform::check() const {
  auto checks = checker(*this);
  const auto scale = transform_type(dtype);
  scalar(checks, "alpha", alpha, scale);
  scalar(checks, "beta", beta, scale);
  checks.require(known(transpose_a) && known(transpose_b), "unknown transposition")
      .require(known(order_a) && known(order_b) && known(order_c), "unknown order")
      .require(batch >= 0 && batch <= kMaxBatch, "the batch is negative or above 2^31");
  if (!checks.ok()) return checks.result();
  const auto input = [&](Transpose transpose, std::int64_t leading, Order order) {
    const bool plain = transpose == Transpose::no;
    return Layout{plain ? m : n, plain ? n : m, leading, order};
  };
  check_batch(checks, "a", a, input(transpose_a, lda, order_a), stride_a, batch, dtype);
  if (!beta.is_zero(scale) || b.present())
    check_batch(checks, "b", b, input(transpose_b, ldb, order_b), stride_b, batch, dtype);
  check_result_batch(checks, "c", c, {m, n, ldc, order_c}, stride_c, batch, dtype);
  return checks.result();
}

}  // namespace troupe::blas
