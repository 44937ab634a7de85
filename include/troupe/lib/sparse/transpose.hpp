#pragma once

#include <troupe/lib/sparse/form.hpp>

namespace troupe::sparse {

/// The transpose of a matrix of rows x columns, both in CSR form; so it is the same matrix by
/// columns (CSC). `t_row_begin` (columns + 1), `t_column` and `t_value` (nonzeros) are written. The
/// columns within a row of the result ascend; those of the matrix may stand in any order.
/// `index_dtype`: i32 or i64.
///
/// cuda engine: a stable sort by column, because cusparseCsr2cscEx2 has no 64-bit indices and waits
/// for the device.
struct Transposition {
  static constexpr std::string_view kName = "sparse.transpose";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  Operand row_begin, column, value, t_row_begin, t_column, t_value;

  static constexpr std::array kOperands{read("row_begin", &Transposition::row_begin),
                                        read("column", &Transposition::column),
                                        read("value", &Transposition::value),
                                        write("t_row_begin", &Transposition::t_row_begin),
                                        write("t_column", &Transposition::t_column),
                                        write("t_value", &Transposition::t_value)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    const auto elements = static_cast<std::uint64_t>(nonzeros);
    if (&operand == &t_value) return elements * size_of(dtype);
    if (&operand == &t_column) return elements * size_of(index_dtype);
    return (static_cast<std::uint64_t>(columns) + 1) * size_of(index_dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// The transpose of a sparse matrix.
template <class Refs>
class SparseTranspose : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// `transposed` = A^T: see sparse::Transposition.
  template <FieldElement T, IndexElement I>
  Future<void> transpose(const BasicCsrMatrix<Ref<T>, Ref<I>>& a,
                         const BasicCsrMatrix<Ref<T>, Ref<I>>& transposed) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Transposition{dtype_of<T>, dtype_of<I>, a.rows, a.columns, a.value.length(),
                              a.row_begin.operand(), a.column.operand(), a.value.operand(),
                              transposed.row_begin.operand(), transposed.column.operand(),
                              transposed.value.operand()},
        {{"the result, in rows,", transposed.rows, a.columns},
         {"the result, in columns,", transposed.columns, a.rows},
         {"a.row_begin", a.row_begin.length(), a.rows + 1},
         {"a.column", a.column.length(), a.value.length()},
         {"the result's row_begin", transposed.row_begin.length(), a.columns + 1},
         {"the result's column", transposed.column.length(), a.value.length()},
         {"the result's value", transposed.value.length(), a.value.length()}});
  }
};

}  // namespace troupe
