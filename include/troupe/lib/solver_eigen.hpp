#pragma once

#include <troupe/lib/solver_orthogonal.hpp>

/// Eigenvalues.
namespace troupe::solver {

/// What eigenvalue problems compute.
enum class Vectors : std::uint32_t { no, yes };

/// Eigenvalues w of an n x n Hermitian matrix a, ascending, in the real type of dtype; with vectors
/// also the orthonormal eigenvectors, as the columns that replace a. Without, a is destroyed. info:
/// 0, or how many off-diagonal elements of the tridiagonal form have not converged.
struct Syevd {
  static constexpr std::string_view kName = "solver.syevd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesLong;

  OpDType dtype;
  Vectors vectors{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, w, info;

  static constexpr auto kOperands =
      std::tuple{update("a", &Syevd::a), write("w", &Syevd::w), write("info", &Syevd::info)};
  static constexpr auto kCell = &Syevd::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// The eigenvalue problems of Solver.
class SolverEigen : public SolverOrthogonal {
 public:
  using SolverOrthogonal::SolverOrthogonal;

  /// w = the eigenvalues of a, n of them; a = the eigenvectors. See solver::Syevd.
  template <Number T>
  Info syevd(solver::Vectors vectors, blas::Uplo uplo, const Matrix<T>& a,
             const GpuRef<RealOf<T>>& w, OnFailure on_failure = OnFailure::error) {
    auto op = of_square<solver::Syevd>(a, on_failure);
    op.vectors = vectors, op.uplo = uplo, op.w = w.operand();
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }
};

}  // namespace troupe
