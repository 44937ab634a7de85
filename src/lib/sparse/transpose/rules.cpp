#include "lib/sparse/common/checks.hpp"

namespace troupe::sparse {

Result<void> Transposition::check() const {
  auto checks = checker(*this);
  checks.require(is_index(index_dtype), "indices must be i32 or i64")
      .require(rows >= 0 && columns >= 0 && nonzeros >= 0, "a negative extent")
      .require(std::max(rows, columns) < Checker::kMaxCount, "the matrix is too large");
  if (!checks.ok()) return checks.result();
  const auto index_size = size_of(index_dtype);
  return within_indices(checks, index_dtype, {rows, columns, nonzeros})
      .holds("row_begin", row_begin, rows + 1, index_size)
      .holds("column", column, nonzeros, index_size)
      .holds("value", value, nonzeros)
      .holds("t_row_begin", t_row_begin, columns + 1, index_size)
      .holds("t_column", t_column, nonzeros, index_size)
      .holds("t_value", t_value, nonzeros)
      .result();
}

}  // namespace troupe::sparse
