#pragma once

#include <troupe/lib/solver/calls.hpp>

/// Eigenvalues. info is kNotFinite where a matrix has an element that is not finite.
namespace troupe::solver {

/// What eigenvalue problems compute.
enum class Vectors : std::uint32_t { no, yes };

/// Eigenvalues w of an n x n Hermitian matrix a, ascending, in the real type of dtype; with vectors
/// also the orthonormal eigenvectors, as the columns that replace a. Without, a is destroyed. info:
/// 0, or how many off-diagonal elements of the tridiagonal form have not converged.
struct Syevd {
  static constexpr std::string_view kName = "solver.syevd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, w, info;

  static constexpr std::array kOperands{update("a", &Syevd::a), write("w", &Syevd::w),
                                        write("info", &Syevd::info)};
  static constexpr auto kCell = &Syevd::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

/// What Jacobi's methods tell.
struct Sweeps {
  std::int32_t info = 0;  ///< 0, or positive if they have not converged
  std::int32_t sweeps = 0;
  double residual = 0;  ///< Frobenius norm of what is not on the diagonal
};

/// The same by Jacobi's method. `tolerance`: of the residual, by the norm of a; 0: that of
/// rounding. The cpu engine computes what Syevd does, and tells of no sweeps. n and lda are below
/// 2^31.
struct Syevj {
  static constexpr std::string_view kName = "solver.syevj";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::int32_t max_sweeps = 0;
  double tolerance = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, w, told;

  static constexpr std::array kOperands{update("a", &Syevj::a), write("w", &Syevj::w),
                                        write("told", &Syevj::told)};
  static constexpr auto kCell = &Syevj::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(Sweeps);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

/// Which eigenvalues are wanted: all, those in (from, to], or the first-th to the last-th, counted
/// from 1 in ascending order.
enum class Range : std::uint32_t { all, values, indices };

/// What Syevdx tells.
struct FoundEigenvalues {
  std::int32_t info = 0;  ///< as of Syevd
  std::uint32_t reserved = 0;
  std::int64_t count = 0;
};

/// Some of the eigenvalues of Syevd: w has room for n, and begins with those that are found, as
/// does a with their vectors.
struct Syevdx {
  static constexpr std::string_view kName = "solver.syevdx";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Range range{};
  Uplo uplo{};
  OnFailure on_failure{};
  double from = 0, to = 0;
  std::int64_t first = 0, last = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, w, told;

  static constexpr std::array kOperands{update("a", &Syevdx::a), write("w", &Syevdx::w),
                                        write("told", &Syevdx::told)};
  static constexpr auto kCell = &Syevdx::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(FoundEigenvalues) : 0;
  }
};

/// A x = w B x, A B x = w x or B A x = w x.
enum class Problem : std::uint32_t { ax_bx = 1, abx = 2, bax = 3 };

/// Eigenvalues w of a Hermitian matrix a and a Hermitian positive definite b, ascending; with
/// vectors also these, as the columns that replace a, with x^H B x = 1 (bax: x^H B^-1 x = 1). The
/// Cholesky factor replaces that half of b. info: 0; up to n as of Syevd; n + i: the leading minor
/// of order i of b is not positive definite. Extents are below 2^31.
struct Sygvd {
  static constexpr std::string_view kName = "solver.sygvd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Problem problem = Problem::ax_bx;
  Vectors vectors{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0, ldb = 0;
  Operand a, b, w, info;

  static constexpr std::array kOperands{update("a", &Sygvd::a), update("b", &Sygvd::b),
                                        write("w", &Sygvd::w), write("info", &Sygvd::info)};
  static constexpr auto kCell = &Sygvd::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

/// The same by Jacobi's method, see Syevj.
struct Sygvj {
  static constexpr std::string_view kName = "solver.sygvj";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Problem problem = Problem::ax_bx;
  Vectors vectors{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::int32_t max_sweeps = 0;
  std::uint32_t reserved = 0;
  double tolerance = 0;
  std::int64_t n = 0, lda = 0, ldb = 0;
  Operand a, b, w, told;

  static constexpr std::array kOperands{update("a", &Sygvj::a), update("b", &Sygvj::b),
                                        write("w", &Sygvj::w), write("told", &Sygvj::told)};
  static constexpr auto kCell = &Sygvj::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(Sweeps);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

/// Some of the eigenvalues of Sygvd, see Syevdx.
struct Sygvdx {
  static constexpr std::string_view kName = "solver.sygvdx";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Problem problem = Problem::ax_bx;
  Vectors vectors{};
  Range range{};
  Uplo uplo{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  double from = 0, to = 0;
  std::int64_t first = 0, last = 0;
  std::int64_t n = 0, lda = 0, ldb = 0;
  Operand a, b, w, told;

  static constexpr std::array kOperands{update("a", &Sygvdx::a), update("b", &Sygvdx::b),
                                        write("w", &Sygvdx::w), write("told", &Sygvdx::told)};
  static constexpr auto kCell = &Sygvdx::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(FoundEigenvalues) : 0;
  }
};

/// Eigenvalues w of any n x n matrix a, in no order, as complex numbers; vr: the right eigenvectors
/// as columns of length 1, absent if they are not wanted. Where a is real so is vr: of a conjugate
/// pair of eigenvalues the first column has the real part and the second one the imaginary part of
/// the vector of the first (https://www.netlib.org/lapack, geev). a is destroyed. info: 0, or the
/// last that has not converged; those behind it have.
struct Geev {
  static constexpr std::string_view kName = "solver.geev";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0, ldvr = 0;
  Operand a, w, vr, info;

  static constexpr std::array kOperands{update("a", &Geev::a), write("w", &Geev::w),
                                        write("vr", &Geev::vr), write("info", &Geev::info)};
  static constexpr auto kCell = &Geev::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &w ? static_cast<std::uint64_t>(n) * size_of(complex_type(dtype)) : 0;
  }
  /// The type of the eigenvalues.
  static constexpr DType complex_type(DType dtype) noexcept {
    return real_type(dtype) == DType::f32 ? DType::c64 : DType::c128;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// Which eigenvalues Solver::syevdx computes.
struct EigenRange {
  solver::Range range = solver::Range::all;
  double from = 0, to = 0;
  std::int64_t first = 0, last = 0;

  /// Those in (from, to].
  static EigenRange values(double from, double to) {
    return {solver::Range::values, from, to, 0, 0};
  }
  /// The first-th to the last-th, counted from 1.
  static EigenRange indices(std::int64_t first, std::int64_t last) {
    return {solver::Range::indices, 0, 0, first, last};
  }
};

/// When Jacobi's methods stop.
struct JacobiOptions {
  double tolerance = 0;  ///< 0: that of rounding
  std::int32_t max_sweeps = 100;
  OnFailure on_failure = OnFailure::error;
};

/// The eigenvalue problems of Solver. `w` has n elements.
class SolverEigen : public detail::SolverCalls {
 public:
  using SolverCalls::SolverCalls;

  /// w = the eigenvalues of a; a = the eigenvectors. See solver::Syevd.
  template <FieldElement T>
  Info syevd(solver::Vectors vectors, blas::Uplo uplo, const Matrix<T>& a,
             const GpuRef<RealOf<T>>& w, OnFailure on_failure = OnFailure::error) const {
    const auto op = of_hermitian<solver::Syevd>(vectors, uplo, a, w, on_failure);
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }
  /// The same by Jacobi's method. See solver::Syevj.
  template <FieldElement T>
  Future<solver::Sweeps> syevj(solver::Vectors vectors, blas::Uplo uplo, const Matrix<T>& a,
                               const GpuRef<RealOf<T>>& w,
                               const JacobiOptions& options = {}) const {
    auto op = of_hermitian<solver::Syevj>(vectors, uplo, a, w, options.on_failure);
    op.max_sweeps = options.max_sweeps, op.tolerance = options.tolerance;
    return detail::submit_exact_for_value<solver::Sweeps>(*submitter_, op, {square(a)});
  }
  /// w = some of the eigenvalues of a; a = their eigenvectors. See solver::Syevdx.
  template <FieldElement T>
  Future<solver::FoundEigenvalues> syevdx(solver::Vectors vectors, const EigenRange& range,
                                          blas::Uplo uplo, const Matrix<T>& a,
                                          const GpuRef<RealOf<T>>& w,
                                          OnFailure on_failure = OnFailure::error) const {
    auto op = of_hermitian<solver::Syevdx>(vectors, uplo, a, w, on_failure);
    set_range(op, range);
    return detail::submit_exact_for_value<solver::FoundEigenvalues>(*submitter_, op, {square(a)});
  }
  /// w = the eigenvalues of a and b; a = the eigenvectors. See solver::Sygvd.
  template <FieldElement T>
  Info sygvd(solver::Problem problem, solver::Vectors vectors, blas::Uplo uplo, const Matrix<T>& a,
             const Matrix<T>& b, const GpuRef<RealOf<T>>& w,
             OnFailure on_failure = OnFailure::error) const {
    const auto op = of_hermitian<solver::Sygvd>(vectors, uplo, a, w, on_failure);
    return solve_with_b<std::int32_t>(op, problem, a, b);
  }
  /// The same by Jacobi's method. See solver::Sygvj.
  template <FieldElement T>
  Future<solver::Sweeps> sygvj(solver::Problem problem, solver::Vectors vectors, blas::Uplo uplo,
                               const Matrix<T>& a, const Matrix<T>& b, const GpuRef<RealOf<T>>& w,
                               const JacobiOptions& options = {}) const {
    auto op = of_hermitian<solver::Sygvj>(vectors, uplo, a, w, options.on_failure);
    op.max_sweeps = options.max_sweeps, op.tolerance = options.tolerance;
    return solve_with_b<solver::Sweeps>(op, problem, a, b);
  }
  /// w = some of the eigenvalues of a and b; a = their eigenvectors. See solver::Sygvdx.
  template <FieldElement T>
  Future<solver::FoundEigenvalues> sygvdx(solver::Problem problem, solver::Vectors vectors,
                                          const EigenRange& range, blas::Uplo uplo,
                                          const Matrix<T>& a, const Matrix<T>& b,
                                          const GpuRef<RealOf<T>>& w,
                                          OnFailure on_failure = OnFailure::error) const {
    auto op = of_hermitian<solver::Sygvdx>(vectors, uplo, a, w, on_failure);
    set_range(op, range);
    return solve_with_b<solver::FoundEigenvalues>(op, problem, a, b);
  }
  /// w = the eigenvalues of a; vr = the right eigenvectors. See solver::Geev.
  template <FieldElement T>
  Info geev(const Matrix<T>& a, const GpuRef<std::complex<RealOf<T>>>& w, const Matrix<T>& vr,
            OnFailure on_failure = OnFailure::error) const {
    auto op = of_any<solver::Geev>(a, w, on_failure);
    op.ldvr = vr.leading, op.vr = vr.buffer.operand();
    return detail::submit_exact_for_value<std::int32_t>(
        *submitter_, op,
        {square(a), {"vr", vr.rows, a.rows}, {"a row of vr", vr.columns, a.columns}});
  }
  /// Without vectors.
  template <FieldElement T>
  Info geev(const Matrix<T>& a, const GpuRef<std::complex<RealOf<T>>>& w,
            OnFailure on_failure = OnFailure::error) const {
    const auto op = of_any<solver::Geev>(a, w, on_failure);
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }

 private:
  template <class Op>
  static void set_range(Op& op, const EigenRange& range) {
    op.range = range.range, op.from = range.from, op.to = range.to;
    op.first = range.first, op.last = range.last;
  }
  template <class Told, class Op, class M>
  Future<Told> solve_with_b(Op op, solver::Problem problem, const M& a, const M& b) const {
    op.problem = problem, op.ldb = b.leading, op.b = b.buffer.operand();
    return detail::submit_exact_for_value<Told>(
        *submitter_, op, {square(a), {"b", b.rows, a.rows}, {"a row of b", b.columns, a.columns}});
  }
  template <class Op, class M, class W>
  static Op of_any(const M& a, const W& w, OnFailure on_failure) {
    auto op = of_square<Op>(a, on_failure);
    op.w = w.operand();
    return op;
  }
  template <class Op, class M, class W>
  static Op of_hermitian(solver::Vectors vectors, blas::Uplo uplo, const M& a, const W& w,
                         OnFailure on_failure) {
    auto op = of_any<Op>(a, w, on_failure);
    op.vectors = vectors, op.uplo = uplo;
    return op;
  }
};

}  // namespace troupe
