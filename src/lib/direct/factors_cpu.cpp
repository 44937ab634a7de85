#include "lib/direct/factors_cpu.hpp"

#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include <Eigen/SparseCholesky>
#include <Eigen/SparseLU>

namespace troupe::host::direct_factors {
namespace {

using Index = std::int64_t;
template <class T>
using SparseMatrix = Eigen::SparseMatrix<T, Eigen::ColMajor, Index>;

/// How much larger than the elements of A those of |L| |D| |L^H| may be: the error of the solution
/// grows with them (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition,
/// 10.2 and 11.1).
constexpr double kMostGrowth = 16;

template <class T>
T conjugated(const T& x) {
  if constexpr (ComplexElement<T>) return std::conj(x);
  return x;
}

}  // namespace

template <class T>
struct Factorisation<T>::Solvers {
  SparseMatrix<T> matrix;  ///< all of A
  Eigen::SimplicialLLT<SparseMatrix<T>, Eigen::Lower, Eigen::AMDOrdering<Index>> llt;
  Eigen::SimplicialLDLT<SparseMatrix<T>, Eigen::Lower, Eigen::AMDOrdering<Index>> ldlt;
  Eigen::SparseLU<SparseMatrix<T>, Eigen::COLAMDOrdering<Index>> lu;
  bool lu_analysed = false;
};

template <class T>
Factorisation<T>::Factorisation(direct::Kind kind)
    : kind_(kind), solvers_(std::make_unique<Solvers>()) {
  if (!ComplexElement<T> && kind == direct::Kind::symmetric) kind_ = direct::Kind::hermitian;
}
template <class T>
Factorisation<T>::~Factorisation() = default;

/// Element (i, j) of a half stands for (j, i), too. Rows ascend within each column of the result,
/// because those of A are taken in order.
template <class T>
template <class I>
void Factorisation<T>::set_matrix(const Csr<T, I>& a, direct::Half half) {
  const bool mirrors = half != direct::Half::both;
  const auto each = [&](auto&& visit) {
    for (Index row = 0; row < a.n; ++row) {
      for (Index k = a.row_begin[row]; k < a.row_begin[row + 1]; ++k) {
        const Index column = a.column[k];
        if (!direct::counts(half, row, column)) continue;
        visit(row, column, a.value[k]);
        if (mirrors && row != column)
          visit(column, row,
                kind_ == direct::Kind::symmetric ? a.value[k] : conjugated(a.value[k]));
      }
    }
  };
  auto& matrix = solvers_->matrix;
  matrix.resize(a.n, a.n);
  Index* const begin = matrix.outerIndexPtr();
  std::fill_n(begin, a.n + 1, Index{0});
  each([&](Index, Index column, const T&) { ++begin[column + 1]; });
  for (Index j = 0; j < a.n; ++j) begin[j + 1] += begin[j];
  matrix.resizeNonZeros(begin[a.n]);
  std::vector<Index> next(begin, begin + a.n);
  each([&](Index row, Index column, const T& value) {
    const auto at = next[static_cast<std::size_t>(column)]++;
    matrix.innerIndexPtr()[at] = row;
    matrix.valuePtr()[at] = value;
  });
}

template <class T>
template <class I>
void Factorisation<T>::analyse(const Csr<T, I>& a, direct::Half half) {
  set_matrix(a, half);
  solvers_->lu_analysed = false;
  switch (kind_) {
    case direct::Kind::positive_definite: return solvers_->llt.analyzePattern(solvers_->matrix);
    case direct::Kind::hermitian: return solvers_->ldlt.analyzePattern(solvers_->matrix);
    default: return analyse_for_lu();
  }
}

template <class T>
void Factorisation<T>::analyse_for_lu() {
  if (!solvers_->lu_analysed) solvers_->lu.analyzePattern(solvers_->matrix);
  solvers_->lu_analysed = true;
}

template <class T>
template <class I>
direct::Factors Factorisation<T>::factor(const Csr<T, I>& a, direct::Half half) {
  set_matrix(a, half);
  auto& [matrix, llt, ldlt, lu, lu_analysed] = *solvers_;
  takes_lu_ = false;
  if (kind_ == direct::Kind::positive_definite) {
    llt.factorize(matrix);
    if (llt.info() != Eigen::Success) return {direct::no_factors};
    return {direct::ready, llt.matrixL().nestedExpression().nonZeros(), a.n, 0};
  }
  if (kind_ == direct::Kind::hermitian) {
    ldlt.factorize(matrix);
    if (ldlt.info() == Eigen::Success && is_stable()) {
      const Eigen::Array<RealOf<T>, Eigen::Dynamic, 1> d = ldlt.vectorD().real();
      return {direct::ready, ldlt.matrixL().nestedExpression().nonZeros() + a.n, (d > 0).count(),
              (d < 0).count()};
    }
  }
  takes_lu_ = true;
  analyse_for_lu();
  lu.factorize(matrix);
  if (lu.info() != Eigen::Success) return {direct::no_factors};
  return {direct::ready, lu.nnzL() + lu.nnzU()};
}

template <class T>
bool Factorisation<T>::is_stable() const {
  const auto& ldlt = solvers_->ldlt;
  const auto& lower = ldlt.matrixL().nestedExpression();  // without the diagonal, which is all ones
  const Eigen::Array<double, Eigen::Dynamic, 1> d =
      ldlt.vectorD().cwiseAbs().template cast<double>();
  auto sums = d;  // the diagonal of |L| |D| |L^H|, whose largest element is there
  for (Index k = 0; k < lower.outerSize(); ++k) {
    for (typename SparseMatrix<T>::InnerIterator element(lower, k); element; ++element)
      sums[element.index()] += static_cast<double>(Eigen::numext::abs2(element.value())) * d[k];
  }
  const auto& matrix = solvers_->matrix;
  const auto largest = static_cast<double>(
      Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>(matrix.valuePtr(), matrix.nonZeros())
          .abs()
          .maxCoeff());
  return sums.maxCoeff() <= kMostGrowth * largest;
}

template <class T>
void Factorisation<T>::solve(const RightSides<T>& sides, blas::Transpose transpose,
                             std::uint32_t refinement) const {
  using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
  const auto& [matrix, llt, ldlt, lu, lu_analysed] = *solvers_;
  const auto solved = [&, &llt = llt, &ldlt = ldlt, &lu = lu](const Vector& b) -> Vector {
    if (kind_ == direct::Kind::positive_definite) return llt.solve(b);
    if (!takes_lu_) return ldlt.solve(b);
    auto& solver = const_cast<std::remove_cvref_t<decltype(lu)>&>(lu);  // it changes nothing
    if (transpose == blas::Transpose::yes) return solver.transpose().solve(b);
    if (transpose == blas::Transpose::conjugate) return solver.adjoint().solve(b);
    return lu.solve(b);
  };
  const auto multiplied = [&, &matrix = matrix](const Vector& x) -> Vector {
    if (transpose == blas::Transpose::yes) return matrix.transpose() * x;
    if (transpose == blas::Transpose::conjugate) return matrix.adjoint() * x;
    return matrix * x;
  };
  for (Index j = 0; j < sides.columns; ++j) {
    const Vector b = Eigen::Map<const Vector>(sides.b + j * sides.ldb, matrix.rows());
    Vector x = solved(b);
    for (std::uint32_t step = 0; step < refinement; ++step) {
      const Vector missing = b - multiplied(x);
      x += solved(missing);
    }
    Eigen::Map<Vector>(sides.x + j * sides.ldx, matrix.rows()) = x;
  }
}

#define TROUPE_DIRECT_FACTORS(T)                                                                \
  template class Factorisation<T>;                                                              \
  template void Factorisation<T>::analyse(const Csr<T, std::int32_t>&, direct::Half);           \
  template void Factorisation<T>::analyse(const Csr<T, std::int64_t>&, direct::Half);           \
  template direct::Factors Factorisation<T>::factor(const Csr<T, std::int32_t>&, direct::Half); \
  template direct::Factors Factorisation<T>::factor(const Csr<T, std::int64_t>&, direct::Half);
TROUPE_DIRECT_FACTORS(float)
TROUPE_DIRECT_FACTORS(double)
TROUPE_DIRECT_FACTORS(std::complex<float>)
TROUPE_DIRECT_FACTORS(std::complex<double>)

}  // namespace troupe::host::direct_factors
