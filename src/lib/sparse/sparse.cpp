#include <troupe/lib/sparse.hpp>

#include "common/wire/checker.hpp"

namespace troupe::sparse {

using wire::checker;
using wire::Checker;

namespace {

bool is_index(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64;
}

/// What both forms of a product have in common; `stored` entries are held, padding included.
template <class Op>
Checker product(const Op& op, std::int64_t stored) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.rows >= 0 && op.columns >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(stored >= op.nonzeros, "more nonzeros than entries");
  if (!checks.ok()) return checks;
  const auto index_size = size_of(op.index_dtype);
  if (index_size == 4) {
    checks.require(stored <= INT32_MAX && op.rows <= INT32_MAX && op.columns <= INT32_MAX,
                   "the matrix is too large for 32-bit indices");
  }
  return checks.scalar("alpha", op.alpha)
      .scalar("beta", op.beta)
      .require(op.rows < Checker::kMaxCount, "too many rows")
      .holds("column", op.column, stored, index_size)
      .holds("value", op.value, stored)
      .holds("x", op.x, op.columns)
      .holds("y", op.y, op.rows);
}

}  // namespace

Result<void> Spmv::check() const {
  auto checks = product(*this, nonzeros);
  if (!checks.ok()) return checks.result();
  return checks.holds("row_begin", row_begin, rows + 1, size_of(index_dtype)).result();
}

Result<void> SpmvSell::check() const {
  auto checks = product(*this, stored);
  checks.require(slice_rows >= 1, "a slice needs a row");
  if (!checks.ok()) return checks.result();
  const auto slices = rows / slice_rows + (rows % slice_rows != 0 ? 1 : 0);
  return checks.require(stored % slice_rows == 0, "the last slice is not padded to slice_rows rows")
      .require(slices > 0 || stored == 0, "there are entries, but no rows")
      .holds("slice_begin", slice_begin, slices + 1, size_of(index_dtype))
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
