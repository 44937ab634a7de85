#pragma once

#include <cstdint>

#include <troupe/lib/solver/calls.hpp>

/// Systems of linear equations by LAPACK's names (https://www.netlib.org/lapack): Cholesky, LU and
/// L D L^T. Column-major; leading dimensions in elements; a square matrix is of order 2^24 at most.
///
/// Numbers that are not finite go through a factorisation as through any sum or product, and info
/// tells only of what it tells of else: a pivot of potrf that is not a number is not positive.
///
/// Pivots are std::int64_t and count from 1, as LAPACK's do; those that are outside of the matrix
/// exchange nothing. `info` is LAPACK's: 0, or i > 0 for a matrix that has no result.
namespace troupe::solver {

/// Cholesky: a = L L^H (lower) or U^H U (upper), of an n x n Hermitian positive definite matrix.
/// The factor replaces that half of a. info: 0, or the order of the leading minor that is not
/// positive definite, or is not a number; then the factor is not finished.
struct Potrf {
  static constexpr std::string_view kName = "solver.potrf";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0;
  Operand a, info;

  static constexpr std::array kOperands{update("a", &Potrf::a), write("info", &Potrf::info)};
  static constexpr auto kCell = &Potrf::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t) : 0;
  }
};

/// B = the X of A X = B, by the factor a that Potrf has made; nrhs columns.
struct Potrs {
  static constexpr std::string_view kName = "solver.potrs";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, nrhs = 0, lda = 0, ldb = 0;
  Operand a, b;

  static constexpr std::array kOperands{read("a", &Potrs::a), update("b", &Potrs::b)};
  Result<void> check() const;
};

/// The half of the inverse, in place of the factor that Potrf has made. info: 0, or which element
/// of the factor's diagonal is zero.
struct Potri {
  static constexpr std::string_view kName = "solver.potri";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0;
  Operand a, info;

  static constexpr std::array kOperands{update("a", &Potri::a), write("info", &Potri::info)};
  static constexpr auto kCell = &Potri::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t) : 0;
  }
};

/// The inverse of a triangular matrix, in its place. info: 0, or which element of the diagonal is
/// zero.
struct Trtri {
  static constexpr std::string_view kName = "solver.trtri";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Uplo uplo{};
  Diagonal diagonal{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, info;

  static constexpr std::array kOperands{update("a", &Trtri::a), write("info", &Trtri::info)};
  static constexpr auto kCell = &Trtri::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t) : 0;
  }
};

/// A = P L U of an m x n matrix; the factors replace a. `pivots`: min(m, n) of them; absent: P is
/// the identity. info: 0, or which element of U's diagonal is zero; then the factors are finished,
/// and nothing can be solved by them.
struct Getrf {
  static constexpr std::string_view kName = "solver.getrf";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0;
  Operand a, pivots, info;

  static constexpr std::array kOperands{update("a", &Getrf::a), write("pivots", &Getrf::pivots),
                                        write("info", &Getrf::info)};
  static constexpr auto kCell = &Getrf::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &pivots ? sizeof(std::int64_t) * static_cast<std::uint64_t>(std::min(m, n))
                               : 0;
  }
};

/// B = the X of op(A) X = B, by the factors and pivots that Getrf has made of an n x n matrix; nrhs
/// columns.
struct Getrs {
  static constexpr std::string_view kName = "solver.getrs";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, nrhs = 0, lda = 0, ldb = 0;
  Operand a, pivots, b;

  static constexpr std::array kOperands{read("a", &Getrs::a), read("pivots", &Getrs::pivots),
                                        update("b", &Getrs::b)};
  Result<void> check() const;
};

/// Bunch and Kaufman: a = L D L^T (lower) or U D U^T (upper), D of blocks 1 x 1 and 2 x 2, of an
/// n x n symmetric matrix; complex ones are symmetric too, not Hermitian. The factors replace that
/// half of a. `pivots`: n, negative ones tell of 2 x 2 blocks. info: 0, or which block of D is
/// singular. n and lda are below 2^31.
struct Sytrf {
  static constexpr std::string_view kName = "solver.sytrf";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0;
  Operand a, pivots, info;

  static constexpr std::array kOperands{update("a", &Sytrf::a), write("pivots", &Sytrf::pivots),
                                        write("info", &Sytrf::info)};
  static constexpr auto kCell = &Sytrf::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &pivots ? sizeof(std::int64_t) * static_cast<std::uint64_t>(n) : 0;
  }
};

/// B = the X of A X = B, by the factors and pivots that Sytrf has made; nrhs columns.
struct Sytrs {
  static constexpr std::string_view kName = "solver.sytrs";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, nrhs = 0, lda = 0, ldb = 0;
  Operand a, pivots, b;

  static constexpr std::array kOperands{read("a", &Sytrs::a), read("pivots", &Sytrs::pivots),
                                        update("b", &Sytrs::b)};
  Result<void> check() const;
};

/// The half of the inverse, in place of the factors that Sytrf has made. info: 0, or which block of
/// D is singular. n and lda are below 2^31. The cuda engine has it not (unsupported): there Sytrs
/// solves for the identity.
struct Sytri {
  static constexpr std::string_view kName = "solver.sytri";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr auto kLacking = std::array{Lacking{"cuda", kDTypes}};
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  OnFailure on_failure{};
  std::int64_t n = 0, lda = 0;
  Operand a, pivots, info;

  static constexpr std::array kOperands{update("a", &Sytri::a), read("pivots", &Sytri::pivots),
                                        write("info", &Sytri::info)};
  static constexpr auto kCell = &Sytri::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &info ? sizeof(std::int32_t) : 0;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// The linear systems of Solver. Where a call gives a Future<std::int32_t>, its value is LAPACK's
/// info, and a matrix without a result fails it with Errc::numeric (native: the info) unless
/// `on_failure` is OnFailure::report.
class SolverLinear : public detail::SolverCalls {
 public:
  using SolverCalls::SolverCalls;

  /// a = its Cholesky factor. See solver::Potrf.
  template <FieldElement T>
  Info potrf(blas::Uplo uplo, const Matrix<T>& a, OnFailure on_failure = OnFailure::error) const {
    return of_half<solver::Potrf>(uplo, a, on_failure);
  }
  /// b = the X of A X = b by potrf's factor
  template <FieldElement T>
  Future<void> potrs(blas::Uplo uplo, const Matrix<T>& a, const Matrix<T>& b) const {
    auto op = solving<solver::Potrs>(a, b);
    op.uplo = uplo;
    return detail::submit_exact(*submitter_, op, {square(a), {"b", b.rows, a.rows}});
  }
  /// a = the half of the inverse, by potrf's factor
  template <FieldElement T>
  Info potri(blas::Uplo uplo, const Matrix<T>& a, OnFailure on_failure = OnFailure::error) const {
    return of_half<solver::Potri>(uplo, a, on_failure);
  }
  /// a = the inverse of a triangular matrix
  template <FieldElement T>
  Info trtri(blas::Uplo uplo, blas::Diagonal diagonal, const Matrix<T>& a,
             OnFailure on_failure = OnFailure::error) const {
    auto op = of_square<solver::Trtri>(a, on_failure);
    op.uplo = uplo, op.diagonal = diagonal;
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }
  /// a = its factors L and U. See solver::Getrf.
  template <FieldElement T>
  Info getrf(const Matrix<T>& a, const Pivots& pivots,
             OnFailure on_failure = OnFailure::error) const {
    return factor(a, pivots.operand(), on_failure);
  }
  /// Without pivots.
  template <FieldElement T>
  Info getrf(const Matrix<T>& a, OnFailure on_failure = OnFailure::error) const {
    return factor(a, Operand(), on_failure);
  }
  /// b = the X of op(A) X = b by getrf's factors
  template <FieldElement T>
  Future<void> getrs(blas::Transpose transpose, const Matrix<T>& a, const Pivots& pivots,
                     const Matrix<T>& b) const {
    return solve(transpose, a, pivots.operand(), b);
  }
  /// Without pivots.
  template <FieldElement T>
  Future<void> getrs(blas::Transpose transpose, const Matrix<T>& a, const Matrix<T>& b) const {
    return solve(transpose, a, Operand(), b);
  }
  /// a = its factors L (or U) and D. See solver::Sytrf.
  template <FieldElement T>
  Info sytrf(blas::Uplo uplo, const Matrix<T>& a, const Pivots& pivots,
             OnFailure on_failure = OnFailure::error) const {
    auto op = of_square<solver::Sytrf>(a, on_failure);
    op.uplo = uplo, op.pivots = pivots.operand();
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }
  /// b = the X of A X = b by sytrf's factors
  template <FieldElement T>
  Future<void> sytrs(blas::Uplo uplo, const Matrix<T>& a, const Pivots& pivots,
                     const Matrix<T>& b) const {
    auto op = solving<solver::Sytrs>(a, b);
    op.uplo = uplo, op.pivots = pivots.operand();
    return detail::submit_exact(*submitter_, op, {square(a), {"b", b.rows, a.rows}});
  }
  /// a = the half of the inverse, by sytrf's factors
  template <FieldElement T>
  Info sytri(blas::Uplo uplo, const Matrix<T>& a, const Pivots& pivots,
             OnFailure on_failure = OnFailure::error) const {
    auto op = of_square<solver::Sytri>(a, on_failure);
    op.uplo = uplo, op.pivots = pivots.operand();
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }

 private:
  template <class Op, class M>
  Info of_half(blas::Uplo uplo, const M& a, OnFailure on_failure) const {
    auto op = of_square<Op>(a, on_failure);
    op.uplo = uplo;
    return detail::submit_exact_for_value<std::int32_t>(*submitter_, op, {square(a)});
  }
  template <class M>
  Info factor(const M& a, const Operand& pivots, OnFailure on_failure) const {
    auto op = of_square<solver::Getrf>(a, on_failure);
    op.m = a.rows, op.pivots = pivots;
    return detail::submit_for_value<std::int32_t>(*submitter_, op);
  }
  template <class Op, class M>
  static Op solving(const M& a, const M& b) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>;
    op.n = a.columns, op.nrhs = b.columns, op.lda = a.leading, op.ldb = b.leading;
    op.a = a.buffer.operand(), op.b = b.buffer.operand();
    return op;
  }
  template <class M>
  Future<void> solve(blas::Transpose transpose, const M& a, const Operand& pivots,
                     const M& b) const {
    auto op = solving<solver::Getrs>(a, b);
    op.transpose = transpose, op.pivots = pivots;
    return detail::submit_exact(*submitter_, op, {square(a), {"b", b.rows, a.rows}});
  }
};

}  // namespace troupe
