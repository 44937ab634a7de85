#pragma once

#include <array>

#include <troupe/lib/blas/types.hpp>

/// Matrices in another order, transposed, scaled and added, by cuBLASLt
/// (https://docs.nvidia.com/cuda/cublas/#cublasltmatrixtransform).
namespace troupe::blas {

/// What alpha and beta of a transform are, and what it is computed in.
constexpr DType transform_type(DType dtype) noexcept {
  return dtype == DType::f64 || dtype == DType::c64 || dtype == DType::c128 ? dtype : DType::f32;
}

/// C = alpha op(A) + beta op(B), C being m x n, for `batch` matrices that lie strides apart.
/// Results are rounded to the nearest; those of f8 that are beyond the range saturate. So do
/// integers on the cpu engine; the cuda engine cuts off fractions and the upper bits of i8. i32 is
/// exact to 2^24. C overlaps neither A nor B. The cuda engine does not have f8, nor a conjugate of
/// complex numbers (Geam has it).
struct Transform {
  static constexpr std::string_view kName = "blas.transform";
  static constexpr DTypes kDTypes =
      DTypes::of({DType::f16, DType::bf16, DType::f32, DType::f64, DType::c64, DType::c128,
                  DType::i8, DType::i32, DType::f8e4m3, DType::f8e5m2});
  /// cuBLASLt 13.1 has f8 for some strides, and only without a scalar.
  static constexpr auto kLacking =
      std::array{Lacking{"cuda", DTypes::of({DType::f8e4m3, DType::f8e5m2})}};
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  Order order_a{}, order_b{}, order_c{};
  std::array<std::uint8_t, 5> reserved{};
  std::int64_t m = 0, n = 0, lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
  Scalar alpha, beta;  ///< of transform_type(dtype)
  Operand a, b, c;     ///< b may be absent if beta is 0 by value

  static constexpr std::array kOperands{read("alpha", &Transform::alpha),
                                        read("beta", &Transform::beta), read("a", &Transform::a),
                                        read("b", &Transform::b), write("c", &Transform::c)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    const bool whole =
        ldc == (order_c == Order::column ? m : n) && (batch <= 1 || stride_c == m * n);
    return whole ? static_cast<std::uint64_t>(m * n * batch) * size_of(dtype) : 0;
  }
};

/// How far it is from one matrix to the next if they stand one behind another.
template <class Ref>
std::int64_t stride_of(const MatrixRef<Ref>& matrix, Order order) {
  return matrix.leading * (order == Order::column ? matrix.columns : matrix.rows);
}

}  // namespace troupe::blas

namespace troupe {

/// What BlasTransform::transform() does beside adding.
struct TransformOptions {
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
  blas::Order order_a = blas::Order::column, order_b = blas::Order::column,
              order_c = blas::Order::column;
  /// So many matrices, strides apart. A stride of 0: the matrices stand one behind another.
  std::int64_t batch = 1, stride_a = 0, stride_b = 0, stride_c = 0;
};

namespace detail {
template <class T>
using TransformFactorOf = std::conditional_t<FieldElement<T>, T, float>;
}  // namespace detail

/// Changes of order; see blas::Transform. Errors: invalid, unsupported (cuBLASLt does not have it
/// on this GPU), those of any command.
template <class Refs>
class BlasTransform : public detail::Calls {
 public:
  template <Element T>
  using Matrix = MatrixRef<typename Refs::template To<T>>;
  template <Element T>
  using ScalarArgument = ScalarOf<typename Refs::template To<T>>;
  using Calls::Calls;

  /// C = op(A)
  template <Element T>
  Future<void> transform(const Matrix<T>& a, const Matrix<T>& c,
                         const TransformOptions& options = {}) const {
    using F = detail::TransformFactorOf<T>;
    return transform<T>(ScalarArgument<F>(F(1)), a, c, options);
  }
  /// C = alpha op(A)
  template <Element T>
  Future<void> transform(ScalarArgument<detail::TransformFactorOf<T>> alpha, const Matrix<T>& a,
                         const Matrix<T>& c, const TransformOptions& options = {}) const {
    using F = detail::TransformFactorOf<T>;
    auto op = of_one<T>(alpha, a, c, options);
    op.beta = ScalarArgument<F>(F(0)).wire();
    return submit(op, lengths_of("op(a)", a, op.transpose_a, c));
  }
  /// C = alpha op(A) + beta op(B)
  template <Element T>
  Future<void> transform(ScalarArgument<detail::TransformFactorOf<T>> alpha, const Matrix<T>& a,
                         ScalarArgument<detail::TransformFactorOf<T>> beta, const Matrix<T>& b,
                         const Matrix<T>& c, const TransformOptions& options = {}) const {
    auto op = of_one<T>(alpha, a, c, options);
    op.transpose_b = options.transpose_b, op.order_b = options.order_b;
    op.ldb = b.leading, op.beta = beta.wire(), op.b = b.buffer.operand();
    op.stride_b = options.stride_b != 0 ? options.stride_b : blas::stride_of(b, op.order_b);
    auto lengths = lengths_of("op(a)", a, op.transpose_a, c);
    for (const auto& length : lengths_of("op(b)", b, op.transpose_b, c)) lengths.push_back(length);
    return submit(op, lengths);
  }

 private:
  template <Element T>
  static blas::Transform of_one(const ScalarArgument<detail::TransformFactorOf<T>>& alpha,
                                const Matrix<T>& a, const Matrix<T>& c,
                                const TransformOptions& options) {
    blas::Transform op;
    op.dtype = dtype_of<T>, op.transpose_a = options.transpose_a;
    op.order_a = options.order_a, op.order_c = options.order_c;
    op.m = c.rows, op.n = c.columns, op.lda = a.leading, op.ldc = c.leading;
    op.batch = options.batch;
    op.stride_a = options.stride_a != 0 ? options.stride_a : blas::stride_of(a, op.order_a);
    op.stride_c = options.stride_c != 0 ? options.stride_c : blas::stride_of(c, op.order_c);
    op.alpha = alpha.wire(), op.a = a.buffer.operand(), op.c = c.buffer.operand();
    return op;
  }
  template <class M>
  static std::vector<detail::Length> lengths_of(std::string_view name, const M& matrix,
                                                blas::Transpose transpose, const M& c) {
    const bool plain = transpose == blas::Transpose::no;
    return {{name, plain ? matrix.rows : matrix.columns, c.rows},
            {name, plain ? matrix.columns : matrix.rows, c.columns}};
  }
  Future<void> submit(const blas::Transform& op, const std::vector<detail::Length>& lengths) const {
    return detail::submit_exact(*submitter_, info_of<blas::Transform>,
                                std::as_bytes(std::span(&op, 1)), lengths, {});
  }
};

}  // namespace troupe
