#pragma once

#include <troupe/lib/sparse_blocked_ell.hpp>

/// Systems of linear equations whose matrices are sparse and triangular, as incomplete factors are.
///
/// Of the matrix one triangle counts; elements of the other one are not looked at, nor those on the
/// diagonal where that counts as all ones. So a triangle of any square matrix can be solved with.
/// Nothing tells of a matrix that is singular: what takes the place of the solution is of no use.
///
/// The same inputs give the same bits in every run. The cuda engine analyses a matrix where it
/// meets it for the first time, which takes long and waits for the device; it keeps the analysis of
/// the matrices used last, each with about as much device memory as its matrix takes, until the
/// structure of the matrix is written. Of a transposed one it makes the transpose for that, in as
/// much memory again: cuSPARSE's own results with it differ from run to run. Where only values were
/// written, it brings these up to date. A call that needs neither may be part of a graph.
namespace troupe::sparse {

/// How a triangular matrix is stored: by rows, by columns, or as a list of places. See CsrMatrix,
/// CscMatrix and CooMatrix.
enum class Storage : std::uint32_t { csr, csc, coo };

/// What is prepared for a matrix depends on its elements: zeros are no example of it.
inline constexpr Traits kSolves{
    .repeatable = true, .remote = true, .capturable = true, .not_prepared = true};

/// x = the solution of op(T) x = alpha b, T being triangular and n x n. `outer` has the begin of
/// each row or column (n + 1), or by coordinates the row of each element (nonzeros); `inner` has
/// the column of each element, or its row if it is stored by columns. They have `index_dtype` i32
/// or i64. Within a row (by columns: within a column) indices ascend. x may be b.
///
/// cuda engine: cusparseSpSV.
struct Spsv {
  static constexpr std::string_view kName = "sparse.spsv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kSolves;

  OpDType dtype;
  OpDType index_dtype;
  Storage storage{};
  blas::Uplo uplo{};  ///< which triangle of T counts, not of op(T)
  blas::Diagonal diagonal{};
  blas::Transpose transpose{};
  std::int64_t n = 0, nonzeros = 0;
  Scalar alpha;
  Operand outer, inner, value, b, x;

  static constexpr std::array kOperands{read("alpha", &Spsv::alpha), read("outer", &Spsv::outer),
                                        read("inner", &Spsv::inner), read("value", &Spsv::value),
                                        read("b", &Spsv::b),         write("x", &Spsv::x)};
  static constexpr auto kInPlace = std::array{InPlace{"b", "x"}};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// X = the solution of op(T) X = alpha B, for `columns` right sides at once. B and X are column- or
/// row-major, each for itself. X may be B, with the same layout. Otherwise as Spsv.
///
/// cuda engine: cusparseSpSM.
struct Spsm {
  static constexpr std::string_view kName = "sparse.spsm";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kSolves;

  OpDType dtype;
  OpDType index_dtype;
  Storage storage{};
  blas::Uplo uplo{};
  blas::Diagonal diagonal{};
  blas::Transpose transpose{};
  blas::Order order_b{}, order_x{};
  std::uint8_t reserved[6] = {};
  std::int64_t n = 0, nonzeros = 0, columns = 0, ldb = 0, ldx = 0;
  Scalar alpha;
  Operand outer, inner, value, b, x;

  static constexpr std::array kOperands{read("alpha", &Spsm::alpha), read("outer", &Spsm::outer),
                                        read("inner", &Spsm::inner), read("value", &Spsm::value),
                                        read("b", &Spsm::b),         write("x", &Spsm::x)};
  static constexpr auto kInPlace = std::array{InPlace{"b", "x"}};  ///< with equal layouts
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  /// All of X if there are no gaps in it.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole = ldx == (order_x == blas::Order::column ? n : columns);
    return whole ? static_cast<std::uint64_t>(n * columns) * size_of(dtype) : 0;
  }
};

}  // namespace troupe::sparse

namespace troupe {

/// What SparseTriangular::spsv() and spsm() make of a matrix.
struct TriangularOptions {
  blas::Uplo uplo = blas::Uplo::lower;
  blas::Diagonal diagonal = blas::Diagonal::stored;
  blas::Transpose transpose = blas::Transpose::no;
  blas::Order order_b = blas::Order::column, order_x = blas::Order::column;  ///< for spsm()
};

/// Systems of linear equations with triangular matrices: by rows (CsrMatrix), by columns
/// (CscMatrix) or by coordinates (CooMatrix). Errors: invalid, those of any command.
template <class Refs>
class SparseTriangular : public SparseBlockedEll<Refs> {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using SparseBlockedEll<Refs>::SparseBlockedEll;

  /// x = the solution of op(a) x = alpha b: see sparse::Spsv. x may be b.
  template <template <class, class> class Matrix, FieldElement T, IndexElement I>
  Future<void> spsv(const Matrix<Ref<T>, Ref<I>>& a, const Ref<T>& b, const Ref<T>& x,
                    const TriangularOptions& options = {}, ScalarArgument<T> alpha = T(1)) {
    const auto stored = triangle(a);
    sparse::Spsv op;
    describe(op, stored, options, alpha);
    op.b = b.operand(), op.x = x.operand();
    return detail::submit_exact(*submitter_, op,
                                {{"a, in columns,", a.columns, a.rows},
                                 {stored.outer_name, stored.outer.length(), stored.outer_length},
                                 {stored.inner_name, stored.inner.length(), a.value.length()},
                                 {"b", b.length(), a.rows},
                                 {"x", x.length(), a.rows}});
  }

  /// x = the solution of op(a) x = alpha b, for each column of b: see sparse::Spsm. x may be b.
  /// blas::row_major() gives row-major matrices.
  template <template <class, class> class Matrix, FieldElement T, IndexElement I>
  Future<void> spsm(const Matrix<Ref<T>, Ref<I>>& a, const MatrixRef<Ref<T>>& b,
                    const MatrixRef<Ref<T>>& x, const TriangularOptions& options = {},
                    ScalarArgument<T> alpha = T(1)) {
    const auto stored = triangle(a);
    sparse::Spsm op;
    describe(op, stored, options, alpha);
    op.order_b = options.order_b, op.order_x = options.order_x;
    op.columns = x.columns, op.ldb = b.leading, op.ldx = x.leading;
    op.b = b.buffer.operand(), op.x = x.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {{"a, in columns,", a.columns, a.rows},
                                 {stored.outer_name, stored.outer.length(), stored.outer_length},
                                 {stored.inner_name, stored.inner.length(), a.value.length()},
                                 {"b, in rows,", b.rows, a.rows},
                                 {"b, in columns,", b.columns, x.columns},
                                 {"x, in rows,", x.rows, a.rows}});
  }

 protected:
  using SparseBlockedEll<Refs>::submitter_;

 private:
  template <class Values, class Indices>
  struct Stored {
    sparse::Storage storage;
    std::int64_t n;
    Indices outer, inner;
    Values value;
    std::int64_t outer_length;
    std::string_view outer_name, inner_name;
  };
  template <class Values, class Indices>
  static Stored<Values, Indices> triangle(const BasicCsrMatrix<Values, Indices>& a) {
    return {sparse::Storage::csr, a.rows,      a.row_begin, a.column, a.value,
            a.rows + 1,           "row_begin", "column"};
  }
  template <class Values, class Indices>
  static Stored<Values, Indices> triangle(const BasicCscMatrix<Values, Indices>& a) {
    return {sparse::Storage::csc, a.rows,         a.column_begin, a.row, a.value,
            a.rows + 1,           "column_begin", "row"};
  }
  template <class Values, class Indices>
  static Stored<Values, Indices> triangle(const BasicCooMatrix<Values, Indices>& a) {
    return {sparse::Storage::coo, a.rows, a.row,   a.column, a.value,
            a.value.length(),     "row",  "column"};
  }
  template <class Op, class Values, class Indices, class Alpha>
  static void describe(Op& op, const Stored<Values, Indices>& a, const TriangularOptions& options,
                       const Alpha& alpha) {
    op.dtype = dtype_of<typename Values::value_type>;
    op.index_dtype = dtype_of<typename Indices::value_type>;
    op.storage = a.storage;
    op.uplo = options.uplo, op.diagonal = options.diagonal, op.transpose = options.transpose;
    op.n = a.n, op.nonzeros = a.value.length();
    op.alpha = alpha.wire();
    op.outer = a.outer.operand(), op.inner = a.inner.operand(), op.value = a.value.operand();
  }
};

}  // namespace troupe
