#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

/// Systems of linear equations within a narrow band.
namespace troupe::host::cpu {

/// Elements that are `step` apart.
template <class T>
struct Spread {
  T* element;
  std::int64_t step;
  T& operator[](std::int64_t i) const { return element[i * step]; }
};

/// LU of a matrix whose elements are within kBand of its diagonal, with partial pivoting (G. H.
/// Golub, C. F. Van Loan, Matrix Computations, 4th edition, section 4.3.3).
template <class T, std::int64_t kBand>
class BandSolver {
 public:
  static constexpr std::int64_t kDiagonals = 2 * kBand + 1;

  /// `diagonals`: element i of number d is in row i and column i + d - kBand.
  BandSolver(std::int64_t n, const std::array<Spread<const T>, kDiagonals>& diagonals)
      : n_(n), row_(static_cast<std::size_t>(n)), factor_(static_cast<std::size_t>(n)) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t d = 0; d < kDiagonals; ++d) {
        const auto column = i + d - kBand;
        if (column >= 0 && column < n) at(i, column) = diagonals[static_cast<std::size_t>(d)][i];
      }
    }
    for (std::int64_t k = 0; k < n && !singular_; ++k) eliminate(k);
  }

  /// x = the solution for the right side x, NaN if the matrix is singular.
  void solve(const Spread<T>& x) const {
    if (singular_) {
      for (std::int64_t i = 0; i < n_; ++i) x[i] = std::numeric_limits<Real>::quiet_NaN();
      return;
    }
    for (std::int64_t k = 0; k < n_; ++k) {
      const auto& step = factor_[static_cast<std::size_t>(k)];
      std::swap(x[k], x[step.pivot]);
      for (std::int64_t i = k + 1; i <= last(k, kBand); ++i)
        x[i] -= step.multiplier[static_cast<std::size_t>(i - k - 1)] * x[k];
    }
    for (std::int64_t k = n_ - 1; k >= 0; --k) {
      T rest = x[k];
      for (std::int64_t j = k + 1; j <= last(k, 2 * kBand); ++j) rest -= at(k, j) * x[j];
      x[k] = rest / at(k, k);
    }
  }

 private:
  using Real = decltype(std::abs(T{}));
  /// Columns i - kBand to i + 2 kBand of row i: an exchange of rows fills in those beyond the band.
  using Row = std::array<T, static_cast<std::size_t>(3 * kBand + 1)>;
  struct Step {
    std::int64_t pivot = 0;
    std::array<T, static_cast<std::size_t>(kBand)> multiplier{};
  };

  T& at(std::int64_t i, std::int64_t j) {
    return row_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j - i + kBand)];
  }
  const T& at(std::int64_t i, std::int64_t j) const {
    return row_[static_cast<std::size_t>(i)][static_cast<std::size_t>(j - i + kBand)];
  }
  [[nodiscard]] std::int64_t last(std::int64_t k, std::int64_t reach) const {
    return std::min(k + reach, n_ - 1);
  }
  void eliminate(std::int64_t k) {
    auto& step = factor_[static_cast<std::size_t>(k)];
    step.pivot = k;
    for (std::int64_t i = k + 1; i <= last(k, kBand); ++i) {
      if (std::abs(at(i, k)) > std::abs(at(step.pivot, k))) step.pivot = i;
    }
    singular_ = at(step.pivot, k) == T(0);
    if (singular_) return;
    for (std::int64_t j = k; j <= last(k, 2 * kBand) && step.pivot != k; ++j)
      std::swap(at(k, j), at(step.pivot, j));
    for (std::int64_t i = k + 1; i <= last(k, kBand); ++i) {
      const T multiplier = at(i, k) / at(k, k);
      step.multiplier[static_cast<std::size_t>(i - k - 1)] = multiplier;
      for (std::int64_t j = k + 1; j <= last(k, 2 * kBand); ++j) at(i, j) -= multiplier * at(k, j);
    }
  }

  std::int64_t n_;
  std::vector<Row> row_;
  std::vector<Step> factor_;
  bool singular_ = false;
};

}  // namespace troupe::host::cpu
