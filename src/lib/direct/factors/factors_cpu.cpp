#include "lib/direct/factors/factors_cpu.hpp"

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

template <class C>
struct Factorisation<C>::Solvers {
  SparseMatrix<C> matrix;  ///< all of A
  Eigen::SimplicialLDLT<SparseMatrix<C>, Eigen::Lower, Eigen::AMDOrdering<Index>> ldlt;
  Eigen::SparseLU<SparseMatrix<C>, Eigen::COLAMDOrdering<Index>> lu;
  bool lu_analysed = false;
};

template <class C>
Factorisation<C>::Factorisation(direct::Kind kind)
    : kind_(kind), solvers_(std::make_unique<Solvers>()) {
  if (!ComplexElement<C> && kind == direct::Kind::symmetric) kind_ = direct::Kind::hermitian;
}
template <class C>
Factorisation<C>::~Factorisation() = default;

/// Rows ascend within each column of the result, because those of A are taken in order.
template <class C>
template <class T, class I>
void Factorisation<C>::set_matrix(const Csr<T, I>& a, direct::Half half) {
  const auto each = [&](auto&& visit) {
    direct::each_element(a.n, a.row_begin, a.column, half, visit);
  };
  auto& matrix = solvers_->matrix;
  matrix.resize(a.n, a.n);
  Index* const begin = matrix.outerIndexPtr();
  std::fill_n(begin, a.n + 1, Index{0});
  each([&](Index, Index column, Index, bool) { ++begin[column + 1]; });
  for (Index j = 0; j < a.n; ++j) begin[j + 1] += begin[j];
  matrix.resizeNonZeros(begin[a.n]);
  std::vector<Index> next(begin, begin + a.n);
  each([&](Index row, Index column, Index k, bool mirrored) {
    const auto at = next[static_cast<std::size_t>(column)]++;
    const C value(a.value[k]);
    matrix.innerIndexPtr()[at] = row;
    matrix.valuePtr()[at] =
        mirrored && kind_ != direct::Kind::symmetric ? conjugated(value) : value;
  });
}

template <class C>
template <class T, class I>
void Factorisation<C>::analyse(const Csr<T, I>& a, direct::Half half) {
  set_matrix(a, half);
  analyse_pattern();
}

template <class C>
void Factorisation<C>::analyse_pattern() {
  solvers_->lu_analysed = false;
  if (kind_ == direct::Kind::positive_definite || kind_ == direct::Kind::hermitian)
    solvers_->ldlt.analyzePattern(solvers_->matrix);
  else
    analyse_for_lu();
}

template <class C>
void Factorisation<C>::analyse_for_lu() {
  if (!solvers_->lu_analysed) solvers_->lu.analyzePattern(solvers_->matrix);
  solvers_->lu_analysed = true;
}

template <class C>
template <class T, class I>
direct::Factors Factorisation<C>::factor(const Csr<T, I>& a, direct::Half half) {
  set_matrix(a, half);
  return factor_values();
}

template <class C>
direct::Factors Factorisation<C>::factor_values() {
  auto& [matrix, ldlt, lu, lu_analysed] = *solvers_;
  takes_lu_ = false;
  if (kind_ == direct::Kind::positive_definite || kind_ == direct::Kind::hermitian) {
    ldlt.factorize(matrix);
    const bool made = ldlt.info() == Eigen::Success;
    const Eigen::ArrayXd d = made ? ldlt.vectorD().real().array() : Eigen::ArrayXd();
    const auto positive = (d > 0).count(), negative = (d < 0).count();
    if (kind_ == direct::Kind::positive_definite && !(made && negative == 0))
      return {direct::no_factors};
    if (kind_ == direct::Kind::positive_definite || (made && is_stable()))
      return {direct::ready, ldlt.matrixL().nestedExpression().nonZeros() + matrix.rows(), positive,
              negative};
  }
  takes_lu_ = true;
  analyse_for_lu();
  lu.factorize(matrix);
  if (lu.info() != Eigen::Success) return {direct::no_factors};
  return {direct::ready, lu.nnzL() + lu.nnzU()};
}

template <class C>
bool Factorisation<C>::is_stable() const {
  const auto& ldlt = solvers_->ldlt;
  const auto& lower = ldlt.matrixL().nestedExpression();  // without the diagonal, which is all ones
  const Eigen::ArrayXd d = ldlt.vectorD().cwiseAbs();
  auto sums = d;  // the diagonal of |L| |D| |L^H|, whose largest element is there
  for (Index k = 0; k < lower.outerSize(); ++k) {
    for (typename SparseMatrix<C>::InnerIterator element(lower, k); element; ++element)
      sums[element.index()] += Eigen::numext::abs2(element.value()) * d[k];
  }
  const auto& matrix = solvers_->matrix;
  double largest = 0;
  for (Index k = 0; k < matrix.nonZeros(); ++k)
    largest = std::max(largest, std::abs(matrix.valuePtr()[k]));
  return sums.maxCoeff() <= kMostGrowth * largest;
}

template <class C>
void Factorisation<C>::solve_column(C* x, blas::Transpose transpose,
                                    std::uint32_t refinement) const {
  using Vector = Eigen::Matrix<C, Eigen::Dynamic, 1>;
  const auto& [matrix, ldlt, lu, lu_analysed] = *solvers_;
  const auto solved = [&, &ldlt = ldlt, &lu = lu](const Vector& b) -> Vector {
    if (!takes_lu_) return ldlt.solve(b);
    if (transpose == blas::Transpose::no) return lu.solve(b);
    auto& solver = const_cast<std::remove_cvref_t<decltype(lu)>&>(lu);  // it changes nothing
    return solver.transpose().solve(b);
  };
  const auto multiplied = [&, &matrix = matrix](const Vector& vector) -> Vector {
    if (transpose == blas::Transpose::no) return matrix * vector;
    return matrix.transpose() * vector;
  };
  // A^H X = B is A^T times the conjugate of X being that of B.
  Vector b = Eigen::Map<const Vector>(x, matrix.rows());
  if (transpose == blas::Transpose::conjugate) b = b.conjugate().eval();
  Vector solution = solved(b);
  for (std::uint32_t step = 0; step < refinement; ++step) {
    const Vector missing = b - multiplied(solution);
    solution += solved(missing);
  }
  const bool conjugates = transpose == blas::Transpose::conjugate;
  std::transform(solution.data(), solution.data() + solution.size(), x,
                 [&](const C& value) { return conjugates ? conjugated(value) : value; });
}

template <class C>
template <class T>
void Factorisation<C>::solve(const RightSides<T>& sides, blas::Transpose transpose,
                             std::uint32_t refinement) const {
  // Elsewhere check() lets only pass what is A itself.
  if (kind_ != direct::Kind::general) transpose = blas::Transpose::no;
  const auto n = solvers_->matrix.rows();
  std::vector<C> column(static_cast<std::size_t>(n));
  for (Index j = 0; j < sides.columns; ++j) {
    std::copy_n(sides.b + j * sides.ldb, n, column.begin());
    solve_column(column.data(), transpose, refinement);
    std::transform(column.begin(), column.end(), sides.x + j * sides.ldx,
                   [](const C& x) { return static_cast<T>(x); });
  }
}

#define TROUPE_DIRECT_FACTORS(C, T)                                                             \
  template void Factorisation<C>::analyse(const Csr<T, std::int32_t>&, direct::Half);           \
  template void Factorisation<C>::analyse(const Csr<T, std::int64_t>&, direct::Half);           \
  template direct::Factors Factorisation<C>::factor(const Csr<T, std::int32_t>&, direct::Half); \
  template direct::Factors Factorisation<C>::factor(const Csr<T, std::int64_t>&, direct::Half); \
  template void Factorisation<C>::solve(const RightSides<T>&, blas::Transpose, std::uint32_t) const;
template class Factorisation<double>;
template class Factorisation<std::complex<double>>;
TROUPE_DIRECT_FACTORS(double, float)
TROUPE_DIRECT_FACTORS(double, double)
TROUPE_DIRECT_FACTORS(std::complex<double>, std::complex<float>)
TROUPE_DIRECT_FACTORS(std::complex<double>, std::complex<double>)

}  // namespace troupe::host::direct_factors
