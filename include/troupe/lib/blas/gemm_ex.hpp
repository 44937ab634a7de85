#pragma once

#include <troupe/lib/blas/types.hpp>

/// Products of matrices that say what they are computed in.
namespace troupe::blas {

/// What products are formed and added up in. The first four mean what they say, whatever the
/// environment; the others are faster and less precise, or slower and as precise, on GPUs that have
/// them. The cpu engine is at least as precise as any of them.
enum class Compute : std::uint32_t {
  f16,
  f32,
  f64,
  i32,
  tf32,               ///< inputs of f32 rounded to 10 bits
  f32_by_f16,         ///< inputs of f32 rounded to f16
  f32_by_bf16,        ///< to bf16
  f32_by_bf16x9,      ///< split into three of bf16: f32 emulated
  f64_by_fixed_point  ///< f64 emulated by integers
};

/// Whether there are products of matrices of `a` into one of `c` that are computed in that.
constexpr bool combines(DType a, DType c, Compute compute) noexcept {
  const bool fast = compute >= Compute::tf32 && compute <= Compute::f32_by_bf16x9;
  switch (a) {
    case DType::f16:
      return (c == DType::f16 && compute == Compute::f16) ||
             ((c == DType::f16 || c == DType::f32) && compute == Compute::f32);
    case DType::bf16: return (c == DType::bf16 || c == DType::f32) && compute == Compute::f32;
    case DType::i8:
      return (c == DType::f32 && compute == Compute::f32) ||
             (c == DType::i32 && compute == Compute::i32);
    case DType::f32:
    case DType::c64: return c == a && (compute == Compute::f32 || fast);
    case DType::f64:
      return c == a && (compute == Compute::f64 || compute == Compute::f64_by_fixed_point);
    case DType::c128: return c == a && compute == Compute::f64;
    default: return false;
  }
}
/// What alpha and beta are.
constexpr DType scale_type(DType a, Compute compute) noexcept {
  switch (compute) {
    case Compute::f16: return DType::f16;
    case Compute::i32: return DType::i32;
    default: return a == DType::f64 || a == DType::c64 || a == DType::c128 ? a : DType::f32;
  }
}

/// C = alpha op(A) op(B) + beta C, as Gemm; alpha and beta are of scale_type(dtype, compute).
/// Products of i8 into i32 take leading dimensions of A and B, and addresses, that are multiples of
/// four, and no fractions; cuBLAS answers unsupported for some whose extents are none.
struct GemmEx {
  static constexpr std::string_view kName = "blas.gemm_ex";
  static constexpr DTypes kDTypes = DTypes::of(
      {DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128, DType::i8});
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;    ///< of A and B
  OpDType c_dtype;  ///< of C
  Compute compute{};
  Transpose transpose_a{}, transpose_b{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr std::array kOperands{read("alpha", &GemmEx::alpha), read("beta", &GemmEx::beta),
                                        read("a", &GemmEx::a), read("b", &GemmEx::b),
                                        update("c", &GemmEx::c)};
  Result<void> check() const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(scale_type(dtype, compute)) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(c_dtype) : 0;
  }
};

}  // namespace troupe::blas

namespace troupe {

namespace detail {
template <class A, blas::Compute compute>
using ScaleOf =
    std::conditional_t<compute == blas::Compute::f16, Half,
                       std::conditional_t<compute == blas::Compute::i32, std::int32_t,
                                          std::conditional_t<FieldElement<A>, A, float>>>;
}  // namespace detail

/// The products of BasicBlas that say what they are computed in.
template <class Refs>
class BlasProducts : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using Matrix = MatrixRef<Ref<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// C = alpha op(A) op(B) + beta C; see blas::GemmEx. `gemm_ex<blas::Compute::tf32>(…)`
  template <blas::Compute compute, Element A, Element C>
  requires(blas::combines(dtype_of<A>, dtype_of<C>, compute)) Future<void> gemm_ex(
      blas::Transpose transpose_a, blas::Transpose transpose_b,
      ScalarArgument<detail::ScaleOf<A, compute>> alpha, const Matrix<A>& a, const Matrix<A>& b,
      ScalarArgument<detail::ScaleOf<A, compute>> beta, const Matrix<C>& c)
  const {
    const bool plain_a = transpose_a == blas::Transpose::no,
               plain_b = transpose_b == blas::Transpose::no;
    blas::GemmEx op;
    op.dtype = dtype_of<A>, op.c_dtype = dtype_of<C>, op.compute = compute;
    op.transpose_a = transpose_a, op.transpose_b = transpose_b;
    op.m = c.rows, op.n = c.columns, op.k = plain_a ? a.columns : a.rows;
    op.lda = a.leading, op.ldb = b.leading, op.ldc = c.leading;
    op.alpha = alpha.wire(), op.beta = beta.wire();
    op.a = a.buffer.operand(), op.b = b.buffer.operand(), op.c = c.buffer.operand();
    return detail::submit_exact(*submitter_, op,
                                {{"a column of op(a)", plain_a ? a.rows : a.columns, op.m},
                                 {"a column of op(b)", plain_b ? b.rows : b.columns, op.k},
                                 {"a row of op(b)", plain_b ? b.columns : b.rows, op.n}});
  }
};

}  // namespace troupe
