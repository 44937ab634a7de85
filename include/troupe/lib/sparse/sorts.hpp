#pragma once

#include <troupe/lib/sparse/form.hpp>

/// The rows of a matrix's elements in both forms, and elements in order, by cuSPARSE's names.
/// Indices are i32 or i64.
namespace troupe::sparse {

/// The row of each element of a CSR matrix, which gives its coordinate form; of a CSC matrix the
/// column of each. `row_begin` has rows + 1 entries, `row` one for each element.
struct Csr2Coo {
  static constexpr std::string_view kName = "sparse.csr2coo";
  static constexpr DTypes kDTypes = DTypes::of({DType::i32, DType::i64});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;  ///< of the indices
  std::int64_t rows = 0, nonzeros = 0;
  Operand row_begin, row;

  static constexpr std::array kOperands{read("row_begin", &Csr2Coo::row_begin),
                                        write("row", &Csr2Coo::row)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(nonzeros) * size_of(dtype);
  }
};

/// The other way: where each row begins among elements whose rows ascend.
struct Coo2Csr {
  static constexpr std::string_view kName = "sparse.coo2csr";
  static constexpr DTypes kDTypes = DTypes::of({DType::i32, DType::i64});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;  ///< of the indices
  std::int64_t rows = 0, nonzeros = 0;
  Operand row, row_begin;

  static constexpr std::array kOperands{read("row", &Coo2Csr::row),
                                        write("row_begin", &Coo2Csr::row_begin)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return (static_cast<std::uint64_t>(rows) + 1) * size_of(dtype);
  }
};

/// By what elements are sorted first. Those that agree in it are sorted by the other index.
enum class SortBy : std::uint32_t { row, column };

/// The elements of a matrix in coordinate form, which may stand in any order, sorted. Elements at
/// the same place stay in their order. Element i of the result is number permutation[i] of what was
/// given. The permutation may be absent; so may the values, both of them at once.
///
/// cuda engine: cub::DeviceRadixSort.
struct CooSort {
  static constexpr std::string_view kName = "sparse.coosort";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;        ///< of the values
  OpDType index_dtype;  ///< of everything else
  SortBy by{};
  std::uint32_t reserved = 0;
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  Operand row, column, value, sorted_row, sorted_column, sorted_value, permutation;

  static constexpr std::array kOperands{read("row", &CooSort::row),
                                        read("column", &CooSort::column),
                                        read("value", &CooSort::value),
                                        write("sorted_row", &CooSort::sorted_row),
                                        write("sorted_column", &CooSort::sorted_column),
                                        write("sorted_value", &CooSort::sorted_value),
                                        write("permutation", &CooSort::permutation)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(nonzeros) *
           size_of(&operand == &sorted_value ? dtype : index_dtype);
  }
};

/// The elements of a CSR matrix, or of a CSC one, whose rows may be in any order, each row sorted
/// by columns; row_begin is the result's too. Otherwise as CooSort.
struct CsrSort {
  static constexpr std::string_view kName = "sparse.csrsort";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;        ///< of the values
  OpDType index_dtype;  ///< of everything else
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  Operand row_begin, column, value, sorted_column, sorted_value, permutation;

  static constexpr std::array kOperands{read("row_begin", &CsrSort::row_begin),
                                        read("column", &CsrSort::column),
                                        read("value", &CsrSort::value),
                                        write("sorted_column", &CsrSort::sorted_column),
                                        write("sorted_value", &CsrSort::sorted_value),
                                        write("permutation", &CsrSort::permutation)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return static_cast<std::uint64_t>(nonzeros) *
           size_of(&operand == &sorted_value ? dtype : index_dtype);
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// Rows of elements, and elements in order: see <troupe/lib/sparse/sorts.hpp>. What is written
/// overlaps no argument. Errors: invalid, those of any command.
template <class Refs>
class SparseSorts : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  using Calls::Calls;

  /// row[i] = the row of element i, of a CSR matrix with row_begin.length() - 1 rows.
  template <IndexElement I>
  Future<void> csr2coo(const Ref<I>& row_begin, const Ref<I>& row) const {
    return detail::submit(*submitter_,
                          sparse::Csr2Coo{dtype_of<I>, row_begin.length() - 1, row.length(),
                                          row_begin.operand(), row.operand()});
  }
  /// row_begin = where each of row_begin.length() - 1 rows begins among elements in ascending rows.
  template <IndexElement I>
  Future<void> coo2csr(const Ref<I>& row, const Ref<I>& row_begin) const {
    return detail::submit(*submitter_,
                          sparse::Coo2Csr{dtype_of<I>, row_begin.length() - 1, row.length(),
                                          row.operand(), row_begin.operand()});
  }
  /// `sorted` = the elements of a in order; so a's rows need not ascend. See sparse::CooSort. The
  /// values of both may be null references, and so may the permutation.
  template <FieldElement T, IndexElement I>
  Future<void> coosort(const BasicCooMatrix<Ref<T>, Ref<I>>& a,
                       const BasicCooMatrix<Ref<T>, Ref<I>>& sorted,
                       sparse::SortBy by = sparse::SortBy::row,
                       const std::type_identity_t<Ref<I>>& permutation = {}) const {
    const auto count = a.row.length();
    return detail::submit_exact(
        *submitter_,
        sparse::CooSort{dtype_of<T>, dtype_of<I>, by, 0, a.rows, a.columns, count, a.row.operand(),
                        a.column.operand(), a.value.operand(), sorted.row.operand(),
                        sorted.column.operand(), sorted.value.operand(), permutation.operand()},
        {{"the result, in rows,", sorted.rows, a.rows},
         {"the result, in columns,", sorted.columns, a.columns},
         {"a.column", a.column.length(), count},
         {"a.value", a.value.length(), a.value.operand().present() ? count : 0},
         {"the result's row", sorted.row.length(), count},
         {"the result's column", sorted.column.length(), count},
         {"the result's value", sorted.value.length(), a.value.length()},
         {"the permutation", permutation.length(), permutation.operand().present() ? count : 0}});
  }
  /// `sorted` = a with ascending columns in each row: see sparse::CsrSort. Both have the same
  /// row_begin, which is read alone. The values of both may be null references, and so may the
  /// permutation.
  template <FieldElement T, IndexElement I>
  Future<void> csrsort(const BasicCsrMatrix<Ref<T>, Ref<I>>& a,
                       const BasicCsrMatrix<Ref<T>, Ref<I>>& sorted,
                       const std::type_identity_t<Ref<I>>& permutation = {}) const {
    const auto count = a.column.length();
    return detail::submit_exact(
        *submitter_,
        sparse::CsrSort{dtype_of<T>, dtype_of<I>, a.rows, a.columns, count, a.row_begin.operand(),
                        a.column.operand(), a.value.operand(), sorted.column.operand(),
                        sorted.value.operand(), permutation.operand()},
        {{"the result, in rows,", sorted.rows, a.rows},
         {"the result, in columns,", sorted.columns, a.columns},
         {"a.row_begin", a.row_begin.length(), a.rows + 1},
         {"a.value", a.value.length(), a.value.operand().present() ? count : 0},
         {"the result's column", sorted.column.length(), count},
         {"the result's value", sorted.value.length(), a.value.length()},
         {"the permutation", permutation.length(), permutation.operand().present() ? count : 0}});
  }
};

}  // namespace troupe
