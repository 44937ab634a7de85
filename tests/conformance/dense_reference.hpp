#pragma once

#include "bad_arguments.hpp"
#include "common/core/narrow.hpp"
#include "common/core/narrow_float.hpp"
#include "reference/dense.hpp"

/// The reference of operations on vectors and matrices, and its values on the device.
namespace troupe::test::reference {

using Numbers = NumberTypes;

/// Whether results of T are those of the reference, sums of about `terms` products.
template <FieldElement T>
::testing::AssertionResult agree(const std::vector<T>& actual, const std::vector<Wide>& expected,
                                 Data data, double terms) {
  if (actual.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  const double tolerance =
      data == Data::integers
          ? 0
          : 16 * (terms + 2) * static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(widen(actual[i]) - expected[i]) <= tolerance) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << actual[i] << ", not "
                                         << expected[i] << " within " << tolerance;
  }
  return ::testing::AssertionSuccess();
}

/// A matrix in memory in either order, with `leading` elements from column to column or row to row.
inline std::vector<Wide> spread_in(blas::Order order, const Dense& a, std::int64_t leading) {
  return spread(order == blas::Order::column ? a : op(a, Transpose::yes), leading);
}

template <FieldElement T>
GpuRef<T> put_numbers(const std::vector<Wide>& values) {
  return put(to_numbers<T>(values));
}
/// A vector on the device.
template <FieldElement T>
VectorRef<GpuRef<T>> put_vector(const std::vector<Wide>& values, std::int64_t increment) {
  return {put_numbers<T>(spread(values, increment)), std::ssize(values), increment};
}
template <FieldElement T>
MatrixRef<GpuRef<T>> put_matrix(const Dense& a, std::int64_t leading) {
  return {put_numbers<T>(spread(a, leading)), a.rows, a.columns, leading};
}

/// A matrix from the device.
template <class T>
Dense fetched(const MatrixRef<GpuRef<T>>& matrix) {
  const auto memory = device().download(matrix.buffer);
  Dense a{matrix.rows, matrix.columns};
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      a(i, j) = widen(memory[static_cast<std::size_t>(j * matrix.leading + i)]);
  }
  return a;
}
template <class T>
concept OfEightBits = std::is_same_v<T, Float8E4M3> || std::is_same_v<T, Float8E5M2>;

/// Numbers of any type from and to those of the reference.
template <class T>
T from_wide(const Wide& x) {
  if constexpr (FieldElement<T>) {
    return to_number<T>(x);
  } else if constexpr (NarrowElement<T>) {
    return from_float<T>(static_cast<float>(x.real()));
  } else if constexpr (OfEightBits<T>) {
    return troupe::narrow<T>(static_cast<float>(x.real()));
  } else {
    return static_cast<T>(x.real());
  }
}
template <class T>
Wide to_wide(const T& x) {
  if constexpr (FieldElement<T>) {
    return widen(x);
  } else if constexpr (NarrowElement<T>) {
    return to_float(x);
  } else if constexpr (OfEightBits<T>) {
    return troupe::widen(x);
  } else {
    return static_cast<double>(x);
  }
}
template <class T>
GpuRef<T> put_any(const std::vector<Wide>& values) {
  std::vector<T> result;
  for (const auto& value : values) result.push_back(from_wide<T>(value));
  return put(result);
}
template <class T>
std::vector<Wide> got(const GpuRef<T>& ref) {
  std::vector<Wide> result;
  for (const auto& value : device().download(ref)) result.push_back(to_wide(value));
  return result;
}

/// x solves a triangular system: |b - T x| <= 16 k eps (|T| |x| + |b|) in each equation of k terms
/// (N. J. Higham, Accuracy and Stability of Numerical Algorithms, section 8.1).
template <class T>
void expect_solves(const Dense& whole, const std::vector<Wide>& x, const std::vector<Wide>& b) {
  for (std::int64_t i = 0; i < whole.rows; ++i) {
    Wide residual = b[static_cast<std::size_t>(i)];
    double scale = std::abs(residual), terms = 1;
    for (std::int64_t j = 0; j < whole.rows; ++j) {
      const auto product = whole(i, j) * x[static_cast<std::size_t>(j)];
      residual -= product;
      scale += std::abs(product);
      if (whole(i, j) != Wide(0)) ++terms;
    }
    const auto eps = static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
    ASSERT_LE(std::abs(residual), 16 * terms * eps * scale) << "equation " << i;
  }
}

}  // namespace troupe::test::reference
