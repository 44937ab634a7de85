#include "lib/sparse/common/checks.hpp"

/// What operations demand of indices, as their documentation says it.
namespace troupe::sparse {
namespace {

using Rules = std::vector<IndexRule>;

/// Offsets of rows, and the places in them: `inner` may have none.
IndexRule rows_of(DType dtype, const IndexArray& outer, const IndexArray& inner,
                  std::uint32_t more = 0) {
  return {dtype, IndexRule::offsets | more, 1, outer, inner};
}
/// Places in any order.
IndexRule places_of(DType dtype, const IndexArray& inner, std::uint32_t demands = 0) {
  return {dtype, demands, 1, {}, inner};
}

/// Indices of a vector of which some elements are named.
template <class Op>
Rules few_elements(const Op& op) {
  return {places_of(op.index_dtype, {"index", op.index, op.count, op.length})};
}

/// A CSR matrix whose rows may be in any order. Where an operation only counts, it may have no
/// columns.
template <class Op>
Rules csr_of(const Op& op) {
  const bool has_columns = op.column.present();
  return {rows_of(op.index_dtype, {"row_begin", op.row_begin, op.rows + 1, op.nonzeros},
                  {"column", op.column, has_columns ? op.nonzeros : 0, op.columns})};
}

}  // namespace

Rules Spmv::index_rules() const {
  return {rule_of(a, outer, inner, false)};
}
Rules Spmm::index_rules() const {
  return {rule_of(a, outer, inner, false)};
}
Rules SpmvEx::index_rules() const {
  return {rule_of(a, outer, inner, false)};
}
Rules SpmmEx::index_rules() const {
  return {rule_of(a, outer, inner, false)};
}
Rules Sddmm::index_rules() const {
  return {rule_of(c, outer, inner, false)};
}

Rules Gather::index_rules() const {
  return {places_of(index_dtype, {"index", index, count, source_length})};
}
Rules Scatter::index_rules() const {
  return few_elements(*this);
}
Rules Axpby::index_rules() const {
  return few_elements(*this);
}
Rules Rot::index_rules() const {
  return few_elements(*this);
}
Rules Spvv::index_rules() const {
  return few_elements(*this);
}

Rules Spgemm::index_rules() const {
  return {rows_of(index_dtype, {"a_row_begin", a_row_begin, rows + 1, nonzeros_a},
                  {"a_column", a_column, nonzeros_a, inner}),
          rows_of(index_dtype, {"b_row_begin", b_row_begin, inner + 1, nonzeros_b},
                  {"b_column", b_column, nonzeros_b, columns})};
}
Rules SpgemmReuse::index_rules() const {
  return {rows_of(index_dtype, {"a_row_begin", a_row_begin, rows + 1, nonzeros_a},
                  {"a_column", a_column, nonzeros_a, inner}),
          rows_of(index_dtype, {"b_row_begin", b_row_begin, inner + 1, nonzeros_b},
                  {"b_column", b_column, nonzeros_b, columns}),
          rows_of(index_dtype, {"c_row_begin", c_row_begin, rows + 1, nonzeros_c},
                  {"c_column", c_column, nonzeros_c, columns}, IndexRule::sorted)};
}
Rules Geam::index_rules() const {
  return {rows_of(index_dtype, {"a_row_begin", a_row_begin, rows + 1, nonzeros_a},
                  {"a_column", a_column, nonzeros_a, columns}, IndexRule::sorted),
          rows_of(index_dtype, {"b_row_begin", b_row_begin, rows + 1, nonzeros_b},
                  {"b_column", b_column, nonzeros_b, columns}, IndexRule::sorted)};
}

Rules Csr2Coo::index_rules() const {
  return {rows_of(dtype, {"row_begin", row_begin, rows + 1, nonzeros}, {})};
}
Rules Coo2Csr::index_rules() const {
  return {{dtype, IndexRule::ordered, 1, {"row", row, nonzeros, rows}, {}}};
}
Rules CooSort::index_rules() const {
  return {{index_dtype, 0, 1, {"row", row, nonzeros, rows}, {"column", column, nonzeros, columns}}};
}
Rules CsrSort::index_rules() const {
  return csr_of(*this);
}
Rules Transposition::index_rules() const {
  return csr_of(*this);
}

Rules Spsv::index_rules() const {
  return {rule_of(a, outer, inner, true)};
}
Rules Spsm::index_rules() const {
  return {rule_of(a, outer, inner, true)};
}

/// Elements in coordinates may stand in any order here.
Rules SparseToDense::index_rules() const {
  const bool by_column = format == Format::csc;
  const IndexArray places{"index", index, nonzeros, by_column ? rows : columns};
  if (format == Format::coo)
    return {{index_dtype, 0, 1, {"offsets", offsets, nonzeros, rows}, places}};
  return {rows_of(index_dtype, {"offsets", offsets, (by_column ? columns : rows) + 1, nonzeros},
                  places)};
}
Rules BlockedEllToDense::index_rules() const {
  return {places_of(index_dtype, {"column", column, rows / block * width, columns / block},
                    IndexRule::padding)};
}
Rules Csr2Bsr::index_rules() const {
  return csr_of(*this);
}
Rules Bsr2Csr::index_rules() const {
  return {rows_of(index_dtype, {"block_row_begin", block_row_begin, block_rows + 1, blocks},
                  {"block_column", block_column, blocks, block_columns})};
}
Rules Csr2Sell::index_rules() const {
  return csr_of(*this);
}
Rules Csr2BlockedEll::index_rules() const {
  return csr_of(*this);
}

}  // namespace troupe::sparse
