#include "lib/sparse/common/checks.hpp"

/// Operations on sparse vectors.
namespace troupe::sparse {
namespace {

/// What the operations have in common.
template <class Op>
Checker vectors(const Op& op) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.count >= 0 && op.length >= 0, "a negative length");
  if (checks.ok()) {
    checks.holds("index", op.index, op.count, size_of(op.index_dtype))
        .holds("x", op.x, op.count)
        .holds("y", op.y, op.length);
  }
  return checks;
}

}  // namespace

Result<void> Scatter::check() const {
  return vectors(*this).result();
}

Result<void> Axpby::check() const {
  return vectors(*this).scalar("alpha", alpha).scalar("beta", beta).result();
}

Result<void> Rot::check() const {
  auto checks = vectors(*this);
  if (checks.ok() && c.device.present()) checks.holds("c", c.device, 1, size_of(real_type(dtype)));
  return checks.scalar("s", s).result();
}

Result<void> Spvv::check() const {
  return vectors(*this)
      .require(conjugate <= blas::Conjugate::yes, "unknown conjugation")
      .holds("result", result, std::int64_t{1})
      .result();
}

Result<void> Gather::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64");
  if (!checks.ok()) return checks.result();
  return checks.holds("index", index, count, size_of(index_dtype))
      .holds("source", source, source_length)
      .holds("destination", destination, count)
      .result();
}

}  // namespace troupe::sparse
