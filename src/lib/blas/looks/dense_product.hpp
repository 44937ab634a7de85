#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/lib/blas.hpp>

#include "device_host/engine/product_checks.hpp"
#include "lib/blas/looks/dense_sums.hpp"

/// The products of dense matrices that can be looked at, and what is to be known of them, on both
/// engines.
namespace troupe::host {

/// D = of_result (alpha scale_a scale_b op(A) op(B) + beta C + bias), for each of a batch.
struct DenseProduct {
  std::string_view name;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  sums::Strided a, b;  ///< op(A) and op(B)
  sums::Strided c, d;  ///< C without data: it is not read
  sums::Strided bias;  ///< m x 1, the same for all
  Scalar alpha, beta;
  DType scalar{};                         ///< of both
  std::array<const float*, 3> factors{};  ///< scale_a, scale_b, of_result; nullptr: 1
  sums::Rounding rounding;
  double flop_bits = 32;  ///< what the products are formed in, for the estimate of their time

  [[nodiscard]] bool reads_c() const noexcept { return c.data != nullptr; }
  [[nodiscard]] bool in_place() const noexcept { return c.data == d.data; }
};

inline std::optional<sums::Stored> stored_as(DType dtype) {
  using enum sums::Stored;
  switch (dtype) {
    case DType::f16: return f16;
    case DType::bf16: return bf16;
    case DType::f32: return f32;
    case DType::f64: return f64;
    case DType::f8e4m3: return f8e4m3;
    case DType::f8e5m2: return f8e5m2;
    case DType::i8: return i8;
    case DType::i32: return i32;
    case DType::c64: return c64;
    case DType::c128: return c128;
    default: return std::nullopt;
  }
}
inline std::size_t bytes_of(sums::Stored stored) noexcept {
  constexpr std::size_t kBytes[] = {2, 2, 4, 8, 1, 1, 1, 4, 8, 16};
  return kBytes[static_cast<std::size_t>(stored)];
}
/// From the first element to behind the last one.
inline std::uint64_t bytes_of(const sums::Strided& of, std::int64_t batch) noexcept {
  if (of.rows == 0 || of.columns == 0 || batch == 0) return 0;
  const auto last =
      (batch - 1) * of.stride + (of.rows - 1) * of.row_step + (of.columns - 1) * of.column_step;
  return static_cast<std::uint64_t>(last + 1) * bytes_of(of.stored);
}

namespace detail {

/// op(X) of a matrix with `rows` and `columns` after the transposition.
inline sums::Strided matrices(const void* data, DType dtype, std::int64_t rows,
                              std::int64_t columns, std::int64_t leading, bool by_columns = true,
                              blas::Transpose transpose = blas::Transpose::no,
                              std::int64_t stride = 0) {
  sums::Strided of{data,
                   stored_as(dtype).value_or(sums::Stored{}),
                   transpose == blas::Transpose::conjugate,
                   rows,
                   columns,
                   1,
                   leading,
                   stride};
  if (by_columns != (transpose == blas::Transpose::no)) std::swap(of.row_step, of.column_step);
  return of;
}

inline double unit_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    case DType::f64:
    case DType::c128: return 0x1p-53;
    default: return 0x1p-24;
  }
}
/// The spacing of the smallest numbers, which may also be flushed to zero in sums.
inline double smallest_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16: return 0x1p-24;
    case DType::f64:
    case DType::c128: return 0x1p-1022;
    default: return 0x1p-126;
  }
}

/// `compute`: nothing for products whose errors have no such bound.
inline std::optional<sums::Rounding> rounding_of(DType a, DType d, blas::Compute compute,
                                                 bool few_bits) {
  using blas::Compute;
  sums::Rounding rounding;
  switch (compute) {
    case Compute::f32: rounding.sum = 0x1p-24; break;
    case Compute::f64: rounding.sum = 0x1p-53; break;
    case Compute::i32: rounding.exact = true; break;
    case Compute::tf32: rounding.sum = 0x1p-24, rounding.input = 0x1p-11; break;
    case Compute::f32_by_bf16: rounding.sum = 0x1p-24, rounding.input = 0x1p-8; break;
    // Sums of 16 bits say too little, factors may be too small for f16, and emulation is not
    // specified.
    default: return std::nullopt;
  }
  // Tensor cores align the products of f8 to some 14 bits before they add them up.
  if (blas::is_f8(a)) rounding.input = 0x1p-12, rounding.sum = few_bits ? 0x1p-13 : 0x1p-24;
  // A product of complex numbers is four products, added up in twos.
  if (a == DType::c64 || a == DType::c128) rounding.sum *= 4, rounding.input *= 2;
  rounding.output = unit_of(d);
  rounding.tiny_sum = smallest_of(compute == Compute::f64 ? DType::f64 : DType::f32);
  rounding.tiny_output = smallest_of(d);
  rounding.by_lengths = d == DType::f64 || d == DType::c128;
  return rounding;
}

inline double bits_of(DType a, blas::Compute compute) noexcept {
  switch (compute) {
    case blas::Compute::tf32: return 19;
    case blas::Compute::f32_by_bf16: return 16;
    default: break;
  }
  const bool complex = a == DType::c64 || a == DType::c128;
  return static_cast<double>(8 * size_of(a)) / (complex ? 2 : 1);
}

/// The product of an operation that is like Gemm.
template <class Op>
std::optional<DenseProduct> like_gemm(const Op& op, const Call& call, DType c, DType scalar,
                                      blas::Compute compute) {
  const auto rounding = rounding_of(op.dtype, c, compute, false);
  if (!rounding || op.m == 0 || op.n == 0) return std::nullopt;
  DenseProduct product;
  product.name = Op::kName;
  product.m = op.m, product.n = op.n, product.k = op.k;
  product.a = matrices(call.at(op.a), op.dtype, op.m, op.k, op.lda, true, op.transpose_a);
  product.b = matrices(call.at(op.b), op.dtype, op.k, op.n, op.ldb, true, op.transpose_b);
  product.d = matrices(call.at(op.c), c, op.m, op.n, op.ldc);
  if (!op.beta.is_zero(scalar)) product.c = product.d;
  product.alpha = op.alpha, product.beta = op.beta, product.scalar = scalar;
  product.rounding = *rounding;
  product.flop_bits = bits_of(op.dtype, compute);
  return product;
}

}  // namespace detail

/// Nothing: the product cannot be looked at, or is empty.
inline std::optional<DenseProduct> product_of(const blas::Gemm& op, const Call& call) {
  return detail::like_gemm(op, call, op.dtype, scalar_type(op.dtype),
                           blas::usual_compute(op.dtype));
}
inline std::optional<DenseProduct> product_of(const blas::GemmEx& op, const Call& call) {
  return detail::like_gemm(op, call, op.c_dtype, blas::scale_type(op.dtype, op.compute),
                           op.compute);
}
inline std::optional<DenseProduct> product_of(const blas::GemmBatched& op, const Call& call) {
  if (!call.tail().empty() || op.batch == 0) return std::nullopt;  // of lists none is
  auto product =
      detail::like_gemm(op, call, op.dtype, scalar_type(op.dtype), blas::usual_compute(op.dtype));
  if (!product) return product;
  product->batch = op.batch;
  product->a.stride = op.stride_a, product->b.stride = op.stride_b;
  product->c.stride = product->d.stride = op.stride_c;
  return product;
}
/// Looked at are epilogues that leave X as it is or add a bias, and f8 with one scale for a matrix.
/// Results of 8 bits have too little to say.
inline std::optional<DenseProduct> product_of(const blas::Matmul& op, const Call& call) {
  using blas::Epilogue;
  const bool linear = op.epilogue == Epilogue::none || op.epilogue == Epilogue::bias ||
                      op.epilogue == Epilogue::bgrad_a || op.epilogue == Epilogue::bgrad_b;
  const auto rounding =
      detail::rounding_of(op.dtype, op.d_dtype, op.compute, op.fast_accumulation != 0);
  if (!linear || !rounding || size_of(op.d_dtype) == 1 || op.m == 0 || op.n == 0 || op.batch == 0 ||
      op.scale_mode_a != blas::ScaleMode::scalar || op.scale_mode_b != blas::ScaleMode::scalar)
    return std::nullopt;
  const auto by_columns = [](blas::Order order) { return order == blas::Order::column; };
  DenseProduct product;
  product.name = blas::Matmul::kName;
  product.m = op.m, product.n = op.n, product.k = op.k, product.batch = op.batch;
  product.a = detail::matrices(call.at(op.a), op.dtype, op.m, op.k, op.lda, by_columns(op.order_a),
                               op.transpose_a, op.stride_a);
  product.b = detail::matrices(call.at(op.b), op.b_dtype, op.k, op.n, op.ldb,
                               by_columns(op.order_b), op.transpose_b, op.stride_b);
  product.d = detail::matrices(call.at(op.d), op.d_dtype, op.m, op.n, op.ldd,
                               by_columns(op.order_d), {}, op.stride_d);
  product.scalar = op.scale();
  if (op.c.present() && !op.beta.is_zero(product.scalar))
    product.c = detail::matrices(call.at(op.c), op.c_dtype, op.m, op.n, op.ldc,
                                 by_columns(op.order_c), {}, op.stride_c);
  if (op.epilogue == Epilogue::bias)
    product.bias = detail::matrices(
        call.at(op.bias), blas::bias_type(op.dtype, op.c_dtype, op.d_dtype), op.m, 1, op.m);
  product.alpha = op.alpha, product.beta = op.beta;
  for (const auto& part : call.tail()) {
    if (part.tag <= blas::Matmul::scale_d)
      product.factors.at(part.tag) = call.at<const float>(part.range);
  }
  product.rounding = *rounding;
  product.flop_bits = detail::bits_of(op.dtype, op.compute);
  return product;
}
template <class Op>
concept ProductThatIsLookedAt = requires(const Op& op, const Call& call) {
  product_of(op, call);
};

/// Rough rates of an engine, in a nanosecond.
struct DenseRates {
  double flops = 1;     ///< of 32 bits; of fewer as many more, of 64 half
  double bytes = 1;     ///< that are read, written or copied
  double elements = 1;  ///< that are added up
  double start = 1000;  ///< of a product, in nanoseconds
  double check = 1000;  ///< of a look
};
inline CheckCost cost_of(const DenseProduct& of, const DenseRates& rates) noexcept {
  const auto batch = static_cast<double>(of.batch);
  const auto count = [&](std::int64_t a, std::int64_t b) {
    return batch * static_cast<double>(a) * static_cast<double>(b);
  };
  const auto size = [](const sums::Strided& of_one) {
    return static_cast<double>(bytes_of(of_one.stored));
  };
  const bool complex = of.a.stored == sums::Stored::c64 || of.a.stored == sums::Stored::c128;
  const double a = count(of.m, of.k), b = count(of.k, of.n), d = count(of.m, of.n);
  const double c = of.reads_c() ? d : 0;
  const double bytes = a * size(of.a) + b * size(of.b) + (c + d) * size(of.d);
  const double flops = 2 * d * static_cast<double>(of.k) * (complex ? 4 : 1);
  const double copied = of.in_place() ? 2 * d * size(of.d) : 0;
  return {std::max(flops * of.flop_bits / 32 / rates.flops, bytes / rates.bytes) + rates.start,
          (bytes + copied) / rates.bytes + (a + b + c + d) * (complex ? 2 : 1) / rates.elements +
              rates.check};
}

/// The finding of row `row` of all matrices of the batch, counted on.
inline std::string describe(const DenseProduct& product, std::int64_t row,
                            const sums::Judgement& judged) {
  const auto number = [](sums::Number x) {
    return x.im == 0 ? fmt::format("{}", x.re) : fmt::format("{} {:+}i", x.re, x.im);
  };
  const auto of =
      product.batch == 1 ? std::string() : fmt::format(" of product {}", row / product.m);
  return fmt::format(
      "row {} of {} x {} x {}{}: its signed sum is {} instead of {}, where rounding "
      "allows {:.3g}",
      row % product.m, product.m, product.n, product.k, of, number(judged.actual),
      number(judged.expected), judged.bound);
}

}  // namespace troupe::host
