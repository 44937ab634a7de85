#include "lib/sparse/common/checks.hpp"

/// Rows of elements, and elements in order.
namespace troupe::sparse {
namespace {

/// What the conversions of rows have in common.
template <class Op>
Result<void> rows_of_elements(const Op& op) {
  auto checks = checker(op);
  checks.require(op.rows >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(op.rows < Checker::kMaxCount, "too many rows");
  if (!checks.ok()) return checks.result();
  return within_indices(checks, op.dtype, {op.rows, op.nonzeros})
      .holds("row_begin", op.row_begin, op.rows + 1)
      .holds("row", op.row, op.nonzeros)
      .result();
}

/// What the sorts have in common.
template <class Op>
Checker sorting(const Op& op) {
  auto checks = checker(op);
  checks.require(is_index(op.index_dtype), "indices must be i32 or i64")
      .require(op.rows >= 0 && op.columns >= 0 && op.nonzeros >= 0, "a negative extent")
      .require(std::max(op.rows, op.columns) < Checker::kMaxCount, "the matrix is too large");
  if (!checks.ok()) return checks;
  checks.require(bits_of_places(op.rows, op.columns) <= kPlaceBits,
                 "the matrix has too many places");
  const auto index_size = size_of(op.index_dtype);
  within_indices(checks, op.index_dtype, {op.rows, op.columns, op.nonzeros})
      .require(op.value.present() == op.sorted_value.present(),
               "the values are given or the sorted ones, but not both")
      .holds("column", op.column, op.nonzeros, index_size)
      .holds("sorted_column", op.sorted_column, op.nonzeros, index_size);
  if (op.value.present()) {
    checks.holds("value", op.value, op.nonzeros)
        .holds("sorted_value", op.sorted_value, op.nonzeros);
  }
  if (op.permutation.present())
    checks.holds("permutation", op.permutation, op.nonzeros, index_size);
  return checks;
}

}  // namespace

Result<void> Csr2Coo::check() const {
  return rows_of_elements(*this);
}

Result<void> Coo2Csr::check() const {
  return rows_of_elements(*this);
}

Result<void> CooSort::check() const {
  auto checks = sorting(*this);
  checks.require(by <= SortBy::column, "unknown order");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return checks.holds("row", row, nonzeros, index_size)
      .holds("sorted_row", sorted_row, nonzeros, index_size)
      .result();
}

Result<void> CsrSort::check() const {
  auto checks = sorting(*this);
  if (!checks.ok()) return checks.result();
  return checks.holds("row_begin", row_begin, rows + 1, size_of(index_dtype)).result();
}

}  // namespace troupe::sparse
