#pragma once

#include <troupe/lib/sparse/dense.hpp>

/// Products of sparse matrices whose elements are narrower than what they are computed in.
namespace troupe::sparse {

/// Whether there are products of matrices and vectors of `in` that are of `out`: of i8 they are of
/// i32 or f32, of f16 and bf16 of the same type or f32.
constexpr bool combines(DType in, DType out) noexcept {
  switch (in) {
    case DType::i8: return out == DType::i32 || out == DType::f32;
    case DType::f16:
    case DType::bf16: return out == in || out == DType::f32;
    default: return false;
  }
}
/// What such products are added up in, and what alpha and beta are: i32, modulo 2^32, where the
/// result is of i32, else f32. A result is rounded once.
constexpr DType sum_type(DType out) noexcept {
  return out == DType::i32 ? out : DType::f32;
}
inline constexpr DTypes kNarrow = DTypes::of({DType::i8, DType::f16, DType::bf16});

/// y = alpha op(A) x + beta y, as Spmv: A and x are of `dtype`, y of `y_dtype`, alpha and beta of
/// sum_type(y_dtype). See combines() for the types; with others it is unsupported.
///
/// cuda engine: as for Spmv.
struct SpmvEx {
  static constexpr std::string_view kName = "sparse.spmv_ex";
  static constexpr DTypes kDTypes = kNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType y_dtype;
  blas::Transpose transpose{};
  std::uint32_t reserved = 0;
  Form a;
  Scalar alpha, beta;
  Operand outer, inner, value, x, y;

  static constexpr std::array kOperands{
      read("alpha", &SpmvEx::alpha), read("beta", &SpmvEx::beta),   read("outer", &SpmvEx::outer),
      read("inner", &SpmvEx::inner), read("value", &SpmvEx::value), read("x", &SpmvEx::x),
      update("y", &SpmvEx::y)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::int64_t length_of_x() const noexcept {
    return transpose == blas::Transpose::no ? a.columns : a.rows;
  }
  [[nodiscard]] std::int64_t length_of_y() const noexcept {
    return transpose == blas::Transpose::no ? a.rows : a.columns;
  }
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(sum_type(y_dtype)) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(length_of_y()) * size_of(y_dtype);
  }
};

/// C = alpha op(A) B + beta C, as Spmm: A and B are of `dtype`, C of `c_dtype`, alpha and beta of
/// sum_type(c_dtype). See combines() for the types; with others it is unsupported.
///
/// cuda engine: as for Spmm.
struct SpmmEx {
  static constexpr std::string_view kName = "sparse.spmm_ex";
  static constexpr DTypes kDTypes = kNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  OpDType c_dtype;
  blas::Transpose transpose_a{};
  blas::Order order_b{}, order_c{};
  std::uint8_t reserved[2] = {};
  Form a;
  std::int64_t n = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand outer, inner, value, b, c;

  static constexpr std::array kOperands{
      read("alpha", &SpmmEx::alpha), read("beta", &SpmmEx::beta),   read("outer", &SpmmEx::outer),
      read("inner", &SpmmEx::inner), read("value", &SpmmEx::value), read("b", &SpmmEx::b),
      update("c", &SpmmEx::c)};
  Result<void> check() const;
  [[nodiscard]] std::vector<IndexRule> index_rules() const;
  [[nodiscard]] std::int64_t rows_of_c() const noexcept {
    return transpose_a == blas::Transpose::no ? a.rows : a.columns;
  }
  [[nodiscard]] std::int64_t rows_of_b() const noexcept {
    return transpose_a == blas::Transpose::no ? a.columns : a.rows;
  }
  /// With beta = 0 given by value, what stood in C is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(sum_type(c_dtype)) ? Access::write : declared;
  }
  /// All of C if there are no gaps in it.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole = ldc == (order_c == blas::Order::column ? rows_of_c() : n);
    return whole ? static_cast<std::uint64_t>(rows_of_c() * n) * size_of(c_dtype) : 0;
  }
};

}  // namespace troupe::sparse

namespace troupe {

namespace detail {
/// What products of `out` are added up in.
template <class Out>
using SumOf = std::conditional_t<std::is_same_v<Out, std::int32_t>, std::int32_t, float>;
}  // namespace detail

/// Products of sparse matrices whose elements are narrow. Errors: invalid, those of any command.
template <class Refs>
class SparseNarrowProducts : public detail::Calls {
 public:
  using Calls::Calls;
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element Out>
  using SumArgument = ScalarOf<Ref<detail::SumOf<Out>>>;

  /// y = A x: see sparse::SpmvEx. `a`: a matrix as spmv() takes it.
  template <Element In, Element Out, sparse::MatrixOf<Refs, In> Matrix>
  requires(sparse::combines(dtype_of<In>, dtype_of<Out>)) Future<void> spmv_ex(const Matrix& a,
                                                                               const Ref<In>& x,
                                                                               const Ref<Out>& y)
  const {
    return spmv_ex<In, Out>(blas::Transpose::no, detail::SumOf<Out>(1), a, x, detail::SumOf<Out>(0),
                            y);
  }
  /// y = alpha op(A) x + beta y
  template <Element In, Element Out, sparse::MatrixOf<Refs, In> Matrix>
  requires(sparse::combines(dtype_of<In>, dtype_of<Out>)) Future<void> spmv_ex(
      blas::Transpose transpose, SumArgument<Out> alpha, const Matrix& a, const Ref<In>& x,
      SumArgument<Out> beta, const Ref<Out>& y)
  const {
    sparse::SpmvEx op;
    op.dtype = dtype_of<In>, op.y_dtype = dtype_of<Out>, op.transpose = transpose;
    describe(op, a, alpha, beta);
    op.x = x.operand(), op.y = y.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {outer,
                                 inner,
                                 value,
                                 {"x", x.length(), op.length_of_x()},
                                 {"y", y.length(), op.length_of_y()}});
  }

  /// C = op(A) B: see sparse::SpmmEx. `a`: a matrix as spmm() takes it. blas::row_major() gives
  /// row-major matrices.
  template <Element In, Element Out, sparse::MatrixOf<Refs, In> Matrix>
  requires(sparse::combines(dtype_of<In>, dtype_of<Out>)) Future<void> spmm_ex(
      const Matrix& a, const MatrixRef<Ref<In>>& b, const MatrixRef<Ref<Out>>& c,
      const SpmmOptions& options = {})
  const { return spmm_ex<In, Out>(detail::SumOf<Out>(1), a, b, detail::SumOf<Out>(0), c, options); }
  /// C = alpha op(A) B + beta C
  template <Element In, Element Out, sparse::MatrixOf<Refs, In> Matrix>
  requires(sparse::combines(dtype_of<In>, dtype_of<Out>)) Future<void> spmm_ex(
      SumArgument<Out> alpha, const Matrix& a, const MatrixRef<Ref<In>>& b, SumArgument<Out> beta,
      const MatrixRef<Ref<Out>>& c, const SpmmOptions& options = {})
  const {
    sparse::SpmmEx op;
    op.dtype = dtype_of<In>, op.c_dtype = dtype_of<Out>, op.transpose_a = options.transpose_a;
    op.order_b = options.order_b, op.order_c = options.order_c;
    describe(op, a, alpha, beta);
    op.n = c.columns, op.ldb = b.leading, op.ldc = c.leading;
    op.b = b.buffer.operand(), op.c = c.buffer.operand();
    const auto [outer, inner, value] = sparse::lengths_of(op.a, a);
    return detail::submit_exact(*submitter_, op,
                                {outer,
                                 inner,
                                 value,
                                 {"b, in rows,", b.rows, op.rows_of_b()},
                                 {"b, in columns,", b.columns, c.columns},
                                 {"c, in rows,", c.rows, op.rows_of_c()}});
  }

 private:
  template <class Op, class Matrix, class Argument>
  static void describe(Op& op, const Matrix& a, const Argument& alpha, const Argument& beta) {
    op.a = sparse::form_of(a);
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.outer = sparse::outer_of(a).operand(), op.inner = sparse::inner_of(a).operand();
    op.value = a.value.operand();
  }
};

}  // namespace troupe
