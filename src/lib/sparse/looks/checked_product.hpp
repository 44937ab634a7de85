#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include <troupe/lib/sparse.hpp>

#include "device_host/engine/product_checks.hpp"
#include "lib/sparse/looks/sums.hpp"

/// The products of sparse matrices that can be looked at, and what is to be known of them, on both
/// engines.
namespace troupe::host {

/// C = alpha op(A) B + beta C; element (i, j) of B and C lies at i * row_step + j * column_step.
struct CheckedProduct {
  struct Dense {
    Operand operand;
    std::int64_t rows = 0, row_step = 1, column_step = 1;
  };
  std::string_view name;
  sparse::Form form;
  blas::Transpose transpose{};
  Operand outer, inner, value;
  std::int64_t n = 0;  ///< columns of B and C
  Dense b, c;
  Scalar alpha, beta;
  DType dtype{};

  [[nodiscard]] bool reads_c() const noexcept { return !beta.is_zero(dtype); }
  /// From the first element of C to behind the last one.
  [[nodiscard]] std::uint64_t bytes_of_c() const noexcept {
    const auto last = (c.rows - 1) * c.row_step + (n - 1) * c.column_step;
    return static_cast<std::uint64_t>(last + 1) * size_of(dtype);
  }
  [[nodiscard]] sums::Rounding rounding() const noexcept {
    const bool wide = dtype == DType::f64 || dtype == DType::c128;
    const bool complex = dtype == DType::c64 || dtype == DType::c128;
    sums::Rounding rounding;
    rounding.sum = (wide ? 0x1p-53 : 0x1p-24) * (complex ? 4 : 1);
    rounding.tiny_sum = wide ? 0x1p-1022 : 0x1p-126;
    return rounding;
  }
};

/// Nothing: the product is empty.
inline std::optional<CheckedProduct> product_of(const sparse::Spmv& op) {
  if (op.length_of_y() == 0) return std::nullopt;
  return CheckedProduct{sparse::Spmv::kName,
                        op.a,
                        op.transpose,
                        op.outer,
                        op.inner,
                        op.value,
                        1,
                        {op.x, op.length_of_x(), 1, op.length_of_x()},
                        {op.y, op.length_of_y(), 1, op.length_of_y()},
                        op.alpha,
                        op.beta,
                        op.dtype};
}
inline std::optional<CheckedProduct> product_of(const sparse::Spmm& op) {
  if (op.rows_of_c() == 0 || op.n == 0) return std::nullopt;
  const auto dense = [](const Operand& operand, std::int64_t rows, blas::Order order,
                        std::int64_t leading) -> CheckedProduct::Dense {
    const bool by_columns = order == blas::Order::column;
    return {operand, rows, by_columns ? 1 : leading, by_columns ? leading : 1};
  };
  return CheckedProduct{sparse::Spmm::kName,
                        op.a,
                        op.transpose_a,
                        op.outer,
                        op.inner,
                        op.value,
                        op.n,
                        dense(op.b, op.rows_of_b(), op.order_b, op.ldb),
                        dense(op.c, op.rows_of_c(), op.order_c, op.ldc),
                        op.alpha,
                        op.beta,
                        op.dtype};
}

template <class Op>
concept ProductThatIsLookedAt = requires(const Op& op) {
  product_of(op);
};

/// Rough rates of an engine, in a nanosecond.
struct SparseRates {
  double bytes = 1;     ///< of products
  double products = 1;  ///< of elements, when they are computed again
  double start = 1000;  ///< of a product, in nanoseconds
  double check = 1000;  ///< of a look
};
inline CheckCost cost_of(const CheckedProduct& of, const SparseRates& rates) noexcept {
  const auto element = static_cast<double>(size_of(of.dtype));
  const auto stored = static_cast<double>(of.form.stored), n = static_cast<double>(of.n);
  const double dense = static_cast<double>(of.b.rows + of.c.rows) * n;
  const double indices = static_cast<double>(of.form.inner_length() + of.form.outer_length()) *
                         static_cast<double>(size_of(of.form.index_dtype));
  const double bytes = stored * element + indices + dense * element;
  // Elements of B are found in caches for the most part.
  const double products = bytes + stored * n * element / 4;
  return {
      products / rates.bytes + rates.start,
      stored * n / rates.products +
          (bytes + (of.reads_c() ? 2 * static_cast<double>(of.bytes_of_c()) : 0)) / rates.bytes +
          rates.check};
}

/// The finding of element `at` of C, counted row by row.
inline std::string describe(const CheckedProduct& product, std::int64_t at,
                            const sums::SparseJudgement& judged) {
  const auto number = [](sums::Number x) {
    return x.im == 0 ? fmt::format("{}", x.re) : fmt::format("{} {:+}i", x.re, x.im);
  };
  const auto place = product.n == 1
                         ? fmt::format("element {}", at)
                         : fmt::format("element ({}, {})", at / product.n, at % product.n);
  return fmt::format("{} is {} instead of {}, where rounding allows {:.3g}", place,
                     number(judged.actual), number(judged.expected), judged.bound);
}

}  // namespace troupe::host
