#pragma once

#include <troupe/lib/sparse_examine.hpp>

/// Sparse matrices, zero-based.
namespace troupe::sparse {

/// destination[i] = source[index[i]], i < count; indices i32 or i64. Nobody looks whether they are
/// below source_length: with others the device may be lost.
struct Gather {
  static constexpr std::string_view kName = "sparse.gather";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, source_length = 0;
  Operand index, source, destination;

  static constexpr std::array kOperands{read("index", &Gather::index),
                                        read("source", &Gather::source),
                                        write("destination", &Gather::destination)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(count) * size_of(dtype);
  }
};

/// C = A B, all three in CSR form: A has rows x inner, B inner x columns elements. Indices have
/// `index_dtype` i32 or i64. The columns within a row of A and B may stand in any order.
///
/// `nonzeros` tells how many elements C has. An element is there wherever a product contributes to
/// it, also if the sum is 0. c_row_begin (rows + 1) is written in any case; c_column and the values
/// of C are written if they have room for that many, `capacity`. Otherwise they stay as they are,
/// and the command fails unless on_failure is `report`. Without a tail, that is without values, the
/// operation only counts: it writes c_row_begin and `nonzeros`. On a GPU that costs about as much
/// as the product.
///
/// The columns within a row of C ascend. The same inputs give the same bits in every run.
///
/// Errors, beside those of check(): invalid (C needs more room than capacity; C has more elements
/// than i32 indices can count). The cpu engine answers invalid as well where A or B is not a CSR
/// matrix: row_begin does not ascend from 0 to the number of nonzeros, or a column is outside the
/// matrix. The cuda engine does not look: there the device may be lost.
///
/// cpu engine: F. G. Gustavson, Two Fast Algorithms for Sparse Matrices, ACM TOMS 4 (1978), with
/// one accumulator of `columns` elements. cuda engine: cusparseSpGEMM, CUSPARSE_SPGEMM_ALG1; its
/// workspace grows with the number of products.
struct Spgemm {
  static constexpr std::string_view kName = "sparse.spgemm";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = {.repeatable = true, .blocking = true};
  /// The values of A, B and C, in any order; the tag is the Matrix. Or nothing, to count.
  static constexpr std::string_view kTail = "value";
  enum Matrix : std::uint32_t { a, b, c };

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t rows = 0, inner = 0, columns = 0;
  std::int64_t nonzeros_a = 0, nonzeros_b = 0, capacity = 0;
  Operand a_row_begin, a_column, b_row_begin, b_column, c_row_begin, c_column;
  Operand nonzeros;  ///< std::int64_t; negative: A or B is not a CSR matrix

  static constexpr std::array kOperands{
      read("a_row_begin", &Spgemm::a_row_begin),  read("a_column", &Spgemm::a_column),
      read("b_row_begin", &Spgemm::b_row_begin),  read("b_column", &Spgemm::b_column),
      write("c_row_begin", &Spgemm::c_row_begin), write("c_column", &Spgemm::c_column),
      write("nonzeros", &Spgemm::nonzeros)};
  static constexpr auto kCell = &Spgemm::nonzeros;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &nonzeros) return sizeof(std::int64_t);
    if (&operand != &c_row_begin) return 0;
    return (static_cast<std::uint64_t>(rows) + 1) * size_of(index_dtype);
  }
};

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

constexpr TailOperand values_of(Spgemm::Matrix matrix, const Operand& range) noexcept {
  return {range, matrix, matrix == Spgemm::c ? Access::write : Access::read};
}
/// The values of one of the matrices; absent if the tail does not have them.
Operand find_values(std::span<const TailOperand> tail, Spgemm::Matrix matrix) noexcept;

/// All of them; whoever includes this header knows them.
using Operations =
    List<Spmv, Gather, Spgemm, Transposition, Spmm, Sddmm, Gtsv, GtsvStrided, GtsvInterleaved,
         GpsvInterleaved, Scatter, Axpby, Rot, Spvv, Csr2Coo, Coo2Csr, CooSort, CsrSort, Spsv, Spsm,
         Geam, SpgemmReuse, SparseToDense, BlockedEllToDense, DenseToSparse, Csr2Bsr, Bsr2Csr,
         Csr2Sell, Csr2BlockedEll, Examine, SpmvEx, SpmmEx>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::sparse

namespace troupe {

/// Sparse linear algebra of one device; from `device.sparse()`. What is written overlaps no
/// argument.
template <class Refs>
class BasicSparse : public SparseExamine<Refs> {
 public:
  using SparseExamine<Refs>::SparseExamine;
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;

  /// C = A B, in the buffers of `c`: see sparse::Spgemm. The future's value is the number of
  /// nonzeros of C, which take the first so many elements of c.column and c.value. A caller who
  /// does not know it guesses, passes `report`, and comes again with more room where the value is
  /// above the length of c.value. c.column and c.value may be null references, to count first.
  ///
  /// Only on this rank's own device. Errors: invalid (see there).
  template <RealElement T, IndexElement I>
  Future<std::int64_t> spgemm(
      const BasicCsrMatrix<Ref<T>, Ref<I>>& a, const BasicCsrMatrix<Ref<T>, Ref<I>>& b,
      const BasicCsrMatrix<Ref<T>, Ref<I>>& c,
      OnFailure on_failure = OnFailure::error) const requires std::same_as<Refs, LocalRefs> {
    using sparse::Spgemm;
    const auto fits =
        sparse::check_lengths(Spgemm::kName, {{"B, in rows,", b.rows, a.columns},
                                              {"C, in rows,", c.rows, a.rows},
                                              {"C, in columns,", c.columns, b.columns},
                                              {"a.row_begin", a.row_begin.length(), a.rows + 1},
                                              {"a.column", a.column.length(), a.value.length()},
                                              {"b.row_begin", b.row_begin.length(), b.rows + 1},
                                              {"b.column", b.column.length(), b.value.length()},
                                              {"c.row_begin", c.row_begin.length(), c.rows + 1},
                                              {"c.column", c.column.length(), c.value.length()}});
    if (!fits.ok()) return submitter_->refuse(fits.error()).then([] { return std::int64_t{}; });
    const std::array values{sparse::values_of(Spgemm::a, a.value.operand()),
                            sparse::values_of(Spgemm::b, b.value.operand()),
                            sparse::values_of(Spgemm::c, c.value.operand())};
    const bool counts = !c.value;
    return detail::submit_for_value<std::int64_t>(*submitter_,
                                                  Spgemm{dtype_of<T>,
                                                         dtype_of<I>,
                                                         sparse::when_counting(counts, on_failure),
                                                         0,
                                                         a.rows,
                                                         a.columns,
                                                         b.columns,
                                                         a.value.length(),
                                                         b.value.length(),
                                                         c.value.length(),
                                                         a.row_begin.operand(),
                                                         a.column.operand(),
                                                         b.row_begin.operand(),
                                                         b.column.operand(),
                                                         c.row_begin.operand(),
                                                         c.column.operand(),
                                                         {}},
                                                  std::span(values).first(counts ? 0 : 3));
  }
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
  /// destination[i] = source[index[i]]
  template <FieldElement T, IndexElement I>
  Future<void> gather(const Ref<T>& source, const Ref<I>& index, const Ref<T>& destination) const {
    return detail::submit_exact(
        *submitter_,
        sparse::Gather{dtype_of<T>, dtype_of<I>, index.length(), source.length(), index.operand(),
                       source.operand(), destination.operand()},
        {{"destination", destination.length(), index.length()}});
  }

 private:
  using SparseExamine<Refs>::submitter_;
};

using Sparse = BasicSparse<LocalRefs>;

namespace sparse {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicSparse<RefsOf<D>> on(D&& device) {
  return BasicSparse<RefsOf<D>>(device.submitter());
}
}  // namespace sparse

}  // namespace troupe
