#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Sums of sparse matrices, and products whose structure is known.
namespace troupe::sparse {

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

constexpr TailOperand values_of(Spgemm::Matrix matrix, const Operand& range) noexcept {
  return {range, matrix, matrix == Spgemm::c ? Access::write : Access::read};
}
/// The values of one of the matrices; absent if the tail does not have them.
Operand find_values(std::span<const TailOperand> tail, Spgemm::Matrix matrix) noexcept;

/// C = alpha A + beta B, all three rows x columns in CSR form. Indices have `index_dtype` i32 or
/// i64. The columns within a row of A and B ascend, and so do those of C.
///
/// `nonzeros` tells how many elements C has. An element is there wherever A or B has one, also if
/// the sum is 0. c_row_begin (rows + 1) is written in any case; the columns and values of C are
/// written if they have room for that many, `capacity`. Otherwise they stay as they are, and the
/// command fails unless on_failure is `report`. Without a tail, that is without values, the
/// operation only counts: it writes c_row_begin and `nonzeros`, and reads no scalar.
///
/// The same inputs give the same bits in every run.
///
/// Errors, beside those of check(): invalid (C needs more room than capacity; C has more elements
/// than i32 indices can count). The cpu engine answers invalid as well where A or B is not such a
/// matrix: row_begin does not ascend from 0 to the number of nonzeros, a column is outside of the
/// matrix, or columns do not ascend. The cuda engine does not look: there C is of no use then, or
/// the device may be lost.
///
/// cuda engine: own kernels, because cusparseXcsrgeam2 has no 64-bit indices and waits for the
/// device.
struct Geam {
  static constexpr std::string_view kName = "sparse.geam";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true};
  /// The values of A, B and C and the columns of C, in any order; the tag is the Part. Or nothing,
  /// to count.
  static constexpr std::string_view kTail = "value";
  enum Part : std::uint32_t { a, b, c, c_column };

  OpDType dtype;
  OpDType index_dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t rows = 0, columns = 0, nonzeros_a = 0, nonzeros_b = 0, capacity = 0;
  Scalar alpha, beta;
  Operand a_row_begin, a_column, b_row_begin, b_column, c_row_begin;
  Operand nonzeros;  ///< std::int64_t; negative: A or B is not a CSR matrix with sorted rows

  static constexpr std::array kOperands{read("alpha", &Geam::alpha),
                                        read("beta", &Geam::beta),
                                        read("a_row_begin", &Geam::a_row_begin),
                                        read("a_column", &Geam::a_column),
                                        read("b_row_begin", &Geam::b_row_begin),
                                        read("b_column", &Geam::b_column),
                                        write("c_row_begin", &Geam::c_row_begin),
                                        write("nonzeros", &Geam::nonzeros)};
  static constexpr auto kCell = &Geam::nonzeros;
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &nonzeros) return sizeof(std::int64_t);
    return (static_cast<std::uint64_t>(rows) + 1) * size_of(index_dtype);
  }
};

/// The values of C = A B where C has elements, all three in CSR form: A has rows x inner, B inner x
/// columns elements. The structure of C is known, from Spgemm with matrices of the same structure
/// for example; products that C has no element for are left out. Indices have `index_dtype` i32 or
/// i64. The columns within a row of C ascend, and B has no place twice. Much faster than Spgemm,
/// and it waits for nothing.
///
/// The same inputs give the same bits in every run. The cpu engine makes all values of C NaN where
/// A, B or C is not a CSR matrix: row_begin does not ascend from 0 to the number of nonzeros, or a
/// column is outside of the matrix. The cuda engine does not look: there the device may be lost.
///
/// cuda engine: an own kernel, because cusparseSpGEMMreuse has no 64-bit indices.
struct SpgemmReuse {
  static constexpr std::string_view kName = "sparse.spgemm_reuse";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  /// The values of A, B and C, in any order; the tag is the Matrix.
  static constexpr std::string_view kTail = "value";
  enum Matrix : std::uint32_t { a, b, c };

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t rows = 0, inner = 0, columns = 0;
  std::int64_t nonzeros_a = 0, nonzeros_b = 0, nonzeros_c = 0;
  Operand a_row_begin, a_column, b_row_begin, b_column, c_row_begin, c_column;

  static constexpr std::array kOperands{
      read("a_row_begin", &SpgemmReuse::a_row_begin), read("a_column", &SpgemmReuse::a_column),
      read("b_row_begin", &SpgemmReuse::b_row_begin), read("b_column", &SpgemmReuse::b_column),
      read("c_row_begin", &SpgemmReuse::c_row_begin), read("c_column", &SpgemmReuse::c_column)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t tail_written(const TailOperand& part) const noexcept {
    return part.tag == c ? static_cast<std::uint64_t>(nonzeros_c) * size_of(dtype) : 0;
  }
};

constexpr TailOperand part_of(Geam::Part part, const Operand& range) noexcept {
  return {range, part, part >= Geam::c ? Access::write : Access::read};
}
constexpr TailOperand values_of(SpgemmReuse::Matrix matrix, const Operand& range) noexcept {
  return {range, matrix, matrix == SpgemmReuse::c ? Access::write : Access::read};
}
/// The operand of that tag; absent if the tail does not have it.
Operand find_tagged(std::span<const TailOperand> tail, std::uint32_t tag) noexcept;

/// Refuses arguments of other lengths than a call needs. Errors: invalid.
Result<void> check_lengths(std::string_view operation,
                           std::initializer_list<troupe::detail::Length> lengths);

}  // namespace troupe::sparse

namespace troupe {

/// Algebra of sparse matrices whose results are sparse. Errors: invalid, those of any command.
template <class Refs>
class SparseAlgebra : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

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
  /// C = alpha A + beta B, in the buffers of `c`: see sparse::Geam. The future's value is the
  /// number of nonzeros of C; what becomes of too little room, and how to count first, is as for
  /// spgemm().
  ///
  /// Only on this rank's own device. Errors: invalid (see there).
  template <FieldElement T, IndexElement I>
  Future<std::int64_t> geam(
      ScalarArgument<T> alpha, const BasicCsrMatrix<Ref<T>, Ref<I>>& a, ScalarArgument<T> beta,
      const BasicCsrMatrix<Ref<T>, Ref<I>>& b, const BasicCsrMatrix<Ref<T>, Ref<I>>& c,
      OnFailure on_failure = OnFailure::error) const requires std::same_as<Refs, LocalRefs> {
    using sparse::Geam;
    const auto fits =
        sparse::check_lengths(Geam::kName, {{"B, in rows,", b.rows, a.rows},
                                            {"B, in columns,", b.columns, a.columns},
                                            {"C, in rows,", c.rows, a.rows},
                                            {"C, in columns,", c.columns, a.columns},
                                            {"a.row_begin", a.row_begin.length(), a.rows + 1},
                                            {"a.column", a.column.length(), a.value.length()},
                                            {"b.row_begin", b.row_begin.length(), b.rows + 1},
                                            {"b.column", b.column.length(), b.value.length()},
                                            {"c.row_begin", c.row_begin.length(), c.rows + 1},
                                            {"c.column", c.column.length(), c.value.length()}});
    if (!fits.ok()) return submitter_->refuse(fits.error()).then([] { return std::int64_t{}; });
    Geam op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>;
    op.on_failure = sparse::when_counting(!c.value, on_failure);
    op.rows = a.rows, op.columns = a.columns;
    op.nonzeros_a = a.value.length(), op.nonzeros_b = b.value.length();
    op.capacity = c.value.length();
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.a_row_begin = a.row_begin.operand(), op.a_column = a.column.operand();
    op.b_row_begin = b.row_begin.operand(), op.b_column = b.column.operand();
    op.c_row_begin = c.row_begin.operand();
    const std::array parts{sparse::part_of(Geam::a, a.value.operand()),
                           sparse::part_of(Geam::b, b.value.operand()),
                           sparse::part_of(Geam::c, c.value.operand()),
                           sparse::part_of(Geam::c_column, c.column.operand())};
    const bool counts = !c.value;
    return detail::submit_for_value<std::int64_t>(*submitter_, op,
                                                  std::span(parts).first(counts ? 0 : 4));
  }

  /// The values of `c` = those of A B where c has elements: see sparse::SpgemmReuse.
  template <FieldElement T, IndexElement I>
  Future<void> spgemm_reuse(const BasicCsrMatrix<Ref<T>, Ref<I>>& a,
                            const BasicCsrMatrix<Ref<T>, Ref<I>>& b,
                            const BasicCsrMatrix<Ref<T>, Ref<I>>& c) const {
    using sparse::SpgemmReuse;
    const auto fits = sparse::check_lengths(SpgemmReuse::kName,
                                            {{"B, in rows,", b.rows, a.columns},
                                             {"C, in rows,", c.rows, a.rows},
                                             {"C, in columns,", c.columns, b.columns},
                                             {"a.row_begin", a.row_begin.length(), a.rows + 1},
                                             {"a.column", a.column.length(), a.value.length()},
                                             {"b.row_begin", b.row_begin.length(), b.rows + 1},
                                             {"b.column", b.column.length(), b.value.length()},
                                             {"c.row_begin", c.row_begin.length(), c.rows + 1},
                                             {"c.column", c.column.length(), c.value.length()}});
    if (!fits.ok()) return submitter_->refuse(fits.error());
    SpgemmReuse op;
    op.dtype = dtype_of<T>, op.index_dtype = dtype_of<I>;
    op.rows = a.rows, op.inner = a.columns, op.columns = b.columns;
    op.nonzeros_a = a.value.length(), op.nonzeros_b = b.value.length();
    op.nonzeros_c = c.value.length();
    op.a_row_begin = a.row_begin.operand(), op.a_column = a.column.operand();
    op.b_row_begin = b.row_begin.operand(), op.b_column = b.column.operand();
    op.c_row_begin = c.row_begin.operand(), op.c_column = c.column.operand();
    const std::array values{sparse::values_of(SpgemmReuse::a, a.value.operand()),
                            sparse::values_of(SpgemmReuse::b, b.value.operand()),
                            sparse::values_of(SpgemmReuse::c, c.value.operand())};
    return detail::submit(*submitter_, op, values);
  }
};

}  // namespace troupe
