#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <troupe/lib/direct.hpp>

#include "lib/direct/factors/structure.hpp"

/// Factors of sparse matrices, by Eigen.
namespace troupe::host::direct_factors {

/// A matrix in CSR form whose structure is sound.
template <class T, class I>
struct Csr {
  std::int64_t n = 0, nonzeros = 0;
  const I* row_begin = nullptr;
  const I* column = nullptr;
  const T* value = nullptr;
};

/// A column-major matrix with n rows, and the columns of another one that belong to it.
template <class T>
struct RightSides {
  const T* b = nullptr;
  T* x = nullptr;
  std::int64_t columns = 0, ldb = 0, ldx = 0;
};

/// The field whose numbers a factorisation of T's computes with.
template <class T>
using Computed = std::conditional_t<ComplexElement<T>, std::complex<double>, double>;

/// The factors of one matrix: L D L^H where it is positive definite, or where it is Hermitian and
/// that is stable as it stands; else L U with an exchange of rows. In double precision, whatever
/// the matrix is stored in: half as much of Eigen is compiled. The same matrix gives the same
/// factors, whatever was there before. What throws is std::bad_alloc.
template <class C>
class Factorisation {
 public:
  explicit Factorisation(direct::Kind kind);
  ~Factorisation();

  /// Another pattern; there are no factors any more. Sets the values, too.
  template <class T, class I>
  void analyse(const Csr<T, I>& a, direct::Half half);
  /// Factors of the values, for the pattern that has been analysed.
  template <class T, class I>
  direct::Factors factor(const Csr<T, I>& a, direct::Half half);
  /// After factor(), whose outcome was `ready`.
  template <class T>
  void solve(const RightSides<T>& sides, blas::Transpose transpose, std::uint32_t refinement) const;

 private:
  struct Solvers;

  template <class T, class I>
  void set_matrix(const Csr<T, I>& a, direct::Half half);
  void analyse_pattern();
  void analyse_for_lu();
  direct::Factors factor_values();
  [[nodiscard]] bool is_stable() const;
  /// In place.
  void solve_column(C* x, blas::Transpose transpose, std::uint32_t refinement) const;

  direct::Kind kind_;
  bool takes_lu_ = false;
  std::unique_ptr<Solvers> solvers_;
};

}  // namespace troupe::host::direct_factors
