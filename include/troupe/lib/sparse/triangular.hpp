#pragma once

#include <troupe/lib/sparse/form.hpp>

/// Systems of linear equations whose matrices are sparse and triangular, as incomplete factors are.
///
/// Of the matrix one triangle counts; elements of the other one are not looked at, nor those on the
/// diagonal where that counts as all ones. So a triangle of any square matrix can be solved with.
/// Nothing tells of a matrix that is singular: what takes the place of the solution is of no use.
///
/// The same inputs give the same bits in every run. The cuda engine analyses a matrix where it
/// meets it for the first time, which takes long and waits for the device; it keeps the analysis of
/// the matrices used last, each with about as much device memory as its matrix takes, until the
/// structure of the matrix is written. Of a transposed one it makes the transpose for that, and of
/// one in sliced ELL a CSR matrix, in as much memory again: cuSPARSE's own results with a
/// transposed matrix differ from run to run, and it makes no promise for sliced ELL. Where only
/// values were written, it brings these up to date. A call that needs neither may be part of a
/// graph.
namespace troupe::sparse {

/// What is prepared for a matrix depends on its elements: zeros are no example of it.
inline constexpr Traits kSolves{
    .repeatable = true, .remote = true, .capturable = true, .not_prepared = true};

/// x = the solution of op(T) x = alpha b, T being square, triangular and in csr, csc, coo or sell:
/// see Form for its buffers. Within a row (in csc: within a column) indices ascend. x may be b.
///
/// cuda engine: cusparseSpSV.
struct Spsv {
  static constexpr std::string_view kName = "sparse.spsv";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kSolves;

  OpDType dtype;
  blas::Uplo uplo{};  ///< which triangle of T counts, not of op(T)
  blas::Diagonal diagonal{};
  blas::Transpose transpose{};
  std::uint32_t reserved = 0;
  Form a;
  Scalar alpha;
  Operand outer, inner, value, b, x;

  static constexpr std::array kOperands{read("alpha", &Spsv::alpha), read("outer", &Spsv::outer),
                                        read("inner", &Spsv::inner), read("value", &Spsv::value),
                                        read("b", &Spsv::b),         write("x", &Spsv::x)};
  static constexpr auto kInPlace = std::array{InPlace{"b", "x"}};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(a.rows) * size_of(dtype);
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
  blas::Uplo uplo{};
  blas::Diagonal diagonal{};
  blas::Transpose transpose{};
  blas::Order order_b{}, order_x{};
  std::uint8_t reserved[2] = {};
  Form a;
  std::int64_t columns = 0, ldb = 0, ldx = 0;
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
    const bool whole = ldx == (order_x == blas::Order::column ? a.rows : columns);
    return whole ? static_cast<std::uint64_t>(a.rows * columns) * size_of(dtype) : 0;
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

/// Systems of linear equations with triangular matrices: a CsrMatrix, CscMatrix, CooMatrix,
/// SellMatrix or SparseRef. Errors: invalid, those of any command.
template <class Refs>
class SparseTriangular : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// x = the solution of op(a) x = alpha b: see sparse::Spsv. x may be b.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spsv(const Matrix& a, const Ref<T>& b, const Ref<T>& x,
                    const TriangularOptions& options = {}, ScalarArgument<T> alpha = T(1)) const {
    sparse::Spsv op;
    describe<T>(op, a, options);
    op.alpha = alpha.wire(), op.b = b.operand(), op.x = x.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {{"a, in columns,", op.a.columns, op.a.rows},
                                 outer,
                                 inner,
                                 value,
                                 {"b", b.length(), op.a.rows},
                                 {"x", x.length(), op.a.rows}});
  }

  /// x = the solution of op(a) x = alpha b, for each column of b: see sparse::Spsm. x may be b.
  /// blas::row_major() gives row-major matrices.
  template <FieldElement T, sparse::MatrixOf<Refs, T> Matrix>
  Future<void> spsm(const Matrix& a, const MatrixRef<Ref<T>>& b, const MatrixRef<Ref<T>>& x,
                    const TriangularOptions& options = {}, ScalarArgument<T> alpha = T(1)) const {
    sparse::Spsm op;
    describe<T>(op, a, options);
    op.order_b = options.order_b, op.order_x = options.order_x;
    op.columns = x.columns, op.ldb = b.leading, op.ldx = x.leading;
    op.alpha = alpha.wire(), op.b = b.buffer.operand(), op.x = x.buffer.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {{"a, in columns,", op.a.columns, op.a.rows},
                                 outer,
                                 inner,
                                 value,
                                 {"b, in rows,", b.rows, op.a.rows},
                                 {"b, in columns,", b.columns, x.columns},
                                 {"x, in rows,", x.rows, op.a.rows}});
  }

 private:
  template <class T, class Op, class Matrix>
  static void describe(Op& op, const Matrix& a, const TriangularOptions& options) {
    op.dtype = dtype_of<T>;
    op.uplo = options.uplo, op.diagonal = options.diagonal, op.transpose = options.transpose;
    op.a = sparse::form_of(a);
    op.outer = sparse::outer_of(a).operand(), op.inner = sparse::inner_of(a).operand();
    op.value = a.value.operand();
  }
};

}  // namespace troupe
