#pragma once

#include <troupe/lib/matrix.hpp>
#include <troupe/lib/submit.hpp>

/// Dense linear algebra by LAPACK's names (https://www.netlib.org/lapack): factorisations and
/// eigenvalues. Column-major; leading dimensions in elements. f32, f64, c64 and c128.
namespace troupe::solver {

using blas::Uplo;

/// What eigenvalue problems compute.
enum class Vectors : std::uint32_t { no, yes };

inline constexpr DTypes kDTypes = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});

/// Cholesky: a = L L^H (lower) or U^H U (upper), of an n x n Hermitian positive definite matrix.
/// The factor replaces that half of a. info: 0, or the order of the leading minor that is not
/// positive definite; then the factor is not finished.
struct Potrf {
  static constexpr std::string_view kName = "solver.potrf";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0;
  Operand a, info;

  static constexpr auto kOperands = std::tuple{update("a", &Potrf::a), write("info", &Potrf::info)};
  static constexpr auto kCell = &Potrf::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t) : 0;
  }
};

/// Eigenvalues w of an n x n Hermitian matrix a, ascending, in the real type of dtype; with vectors
/// also the orthonormal eigenvectors, as the columns that replace a. Without, a is destroyed. info:
/// 0, or how many off-diagonal elements of the tridiagonal form have not converged.
struct Syevd {
  static constexpr std::string_view kName = "solver.syevd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = {.repeatable = true, .blocking = true};

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

inline const Library kLibrary{&info_of<Potrf>, &info_of<Syevd>};

}  // namespace troupe::solver

namespace troupe {

/// The shape of a square matrix, and what a numerical failure is.
struct FactorOptions {
  std::int64_t n = 0;
  std::int64_t lda = 0;  ///< 0: n
  solver::Uplo uplo = solver::Uplo::lower;
  OnFailure on_failure = OnFailure::error;
};

/// LAPACK on one device; from `solver::on(device)`. The values of the futures are LAPACK's info.
class Solver {
 public:
  explicit Solver(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// See solver::Potrf. Errors: numeric (not positive definite; native: the order of the minor).
  template <Number T>
  Future<std::int32_t> potrf(const GpuRef<T>& a, const FactorOptions& shape) {
    return detail::submit_for_value<std::int32_t>(
        *submitter_, solver::Potrf{dtype_of<T>,
                                   shape.uplo,
                                   shape.on_failure,
                                   shape.n,
                                   shape.lda == 0 ? shape.n : shape.lda,
                                   a.operand(),
                                   {}});
  }
  /// See solver::Syevd; w has n elements. Errors: numeric (not converged; native: info).
  template <Number T>
  Future<std::int32_t> syevd(const GpuRef<T>& a, const GpuRef<RealOf<T>>& w,
                             const FactorOptions& shape,
                             solver::Vectors vectors = solver::Vectors::yes) {
    return detail::submit_for_value<std::int32_t>(
        *submitter_, solver::Syevd{dtype_of<T>,
                                   vectors,
                                   shape.uplo,
                                   shape.on_failure,
                                   0,
                                   shape.n,
                                   shape.lda == 0 ? shape.n : shape.lda,
                                   a.operand(),
                                   w.operand(),
                                   {}});
  }

 private:
  detail::Submitter* submitter_;
};

namespace solver {
template <class D>
Solver on(D&& device) {
  return Solver(device.submitter());
}
}  // namespace solver

}  // namespace troupe
