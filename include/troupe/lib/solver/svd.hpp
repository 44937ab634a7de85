#pragma once

#include <troupe/lib/solver/eigen.hpp>

/// Singular values: A = U diag(s) V^H of an m x n matrix, s descending and in the real type of
/// dtype. k is min(m, n). Of a matrix without elements nothing is computed.
namespace troupe::solver {

/// Which singular vectors of one side Gesvd computes: none, the first k, all, or the first k in
/// place of a.
enum class Columns : std::uint32_t { none, some, all, overwrite };

/// By QR iterations, m >= n; u has m rows, and vt, which is V^H, n columns. At most one of them is
/// computed in place of a, which is destroyed otherwise. info: 0, or how many superdiagonals have
/// not converged.
struct Gesvd {
  static constexpr std::string_view kName = "solver.gesvd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Columns columns_u{}, columns_v{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldu = 0, ldvt = 0;
  Operand a, s, u, vt, info;

  static constexpr std::array kOperands{update("a", &Gesvd::a), write("s", &Gesvd::s),
                                        write("u", &Gesvd::u), write("vt", &Gesvd::vt),
                                        write("info", &Gesvd::info)};
  static constexpr auto kCell = &Gesvd::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &s ? static_cast<std::uint64_t>(n) * size_of(real_type(dtype)) : 0;
  }
};

/// How many singular vectors there are: the first k, or m and n.
enum class Extent : std::uint32_t { economy, full };

/// By Jacobi's method, see Syevj; u and v are absent without vectors. v is V, not V^H. a is
/// destroyed. Extents are below 2^31.
struct Gesvdj {
  static constexpr std::string_view kName = "solver.gesvdj";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Extent extent{};
  OnFailure on_failure{};
  std::int32_t max_sweeps = 0;
  double tolerance = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldu = 0, ldv = 0;
  Operand a, s, u, v, told;

  static constexpr std::array kOperands{update("a", &Gesvdj::a), write("s", &Gesvdj::s),
                                        write("u", &Gesvdj::u), write("v", &Gesvdj::v),
                                        write("told", &Gesvdj::told)};
  static constexpr auto kCell = &Gesvdj::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(Sweeps);
    return &operand == &s ? static_cast<std::uint64_t>(std::min(m, n)) * size_of(real_type(dtype))
                          : 0;
  }
};

/// What Gesvdp tells.
struct Perturbation {
  std::int32_t info = 0;  ///< 0, or positive if it has not converged
  std::uint32_t reserved = 0;
  double error = 0;  ///< by how much a was changed to make it well-conditioned
};

/// By polar decomposition; otherwise as Gesvdj. The cpu engine tells of no error.
struct Gesvdp {
  static constexpr std::string_view kName = "solver.gesvdp";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Vectors vectors{};
  Extent extent{};
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldu = 0, ldv = 0;
  Operand a, s, u, v, told;

  static constexpr std::array kOperands{update("a", &Gesvdp::a), write("s", &Gesvdp::s),
                                        write("u", &Gesvdp::u), write("v", &Gesvdp::v),
                                        write("told", &Gesvdp::told)};
  static constexpr auto kCell = &Gesvdp::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &told) return sizeof(Perturbation);
    return &operand == &s ? static_cast<std::uint64_t>(std::min(m, n)) * size_of(real_type(dtype))
                          : 0;
  }
};

/// The largest `rank` singular values, approximately, from random samples of `rank + oversampling`
/// columns and `iterations` power iterations (Halko, Martinsson and Tropp, SIAM Review 53, 2011);
/// u is m x rank and v, which is V, n x rank; either may be absent. a is destroyed. Never run
/// again: the random numbers are others each time. The cpu engine computes all, and takes the
/// first. On GPUs all digits are lost where the ratio of the values that a sample meets, to the
/// power 2 * iterations + 1, comes near to 1 over the square root of the dtype's precision.
struct Gesvdr {
  static constexpr std::string_view kName = "solver.gesvdr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = {.blocking = true};

  OpDType dtype;
  OnFailure on_failure{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldu = 0, ldv = 0;
  std::int64_t rank = 0, oversampling = 0, iterations = 0;
  Operand a, s, u, v, info;

  static constexpr std::array kOperands{update("a", &Gesvdr::a), write("s", &Gesvdr::s),
                                        write("u", &Gesvdr::u), write("v", &Gesvdr::v),
                                        write("info", &Gesvdr::info)};
  static constexpr auto kCell = &Gesvdr::info;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    if (&operand == &info) return sizeof(std::int32_t);
    return &operand == &s ? static_cast<std::uint64_t>(rank) * size_of(real_type(dtype)) : 0;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// What Solver::gesvdr samples.
struct SampledSvdOptions {
  std::int64_t rank = 1;
  std::int64_t oversampling = 0;
  std::int64_t iterations = 2;
  OnFailure on_failure = OnFailure::error;
};

/// The singular values of Solver. `s` has min(m, n) elements. Matrices without a buffer stand for
/// vectors that are not computed.
class SolverSvd : public detail::SolverCalls {
 public:
  using SolverCalls::SolverCalls;

  /// s, u and vt = the decomposition of a. See solver::Gesvd.
  template <FieldElement T>
  Info gesvd(solver::Columns columns_u, solver::Columns columns_v, const Matrix<T>& a,
             const GpuRef<RealOf<T>>& s, const Matrix<T>& u, const Matrix<T>& vt,
             OnFailure on_failure = OnFailure::error) const {
    auto op = of_matrix<solver::Gesvd>(a, s, on_failure);
    op.columns_u = columns_u, op.columns_v = columns_v;
    op.ldu = u.leading, op.u = u.buffer.operand();
    op.ldvt = vt.leading, op.vt = vt.buffer.operand();
    const auto k = std::min(a.rows, a.columns);
    return detail::submit_exact_for_value<std::int32_t>(
        *submitter_, op,
        {length("u", u, u.rows, a.rows),
         length("a row of u", u, u.columns, columns_u == solver::Columns::all ? a.rows : k),
         length("vt", vt, vt.rows, columns_v == solver::Columns::all ? a.columns : k),
         length("a row of vt", vt, vt.columns, a.columns)});
  }
  /// The singular values only.
  template <FieldElement T>
  Info gesvd(const Matrix<T>& a, const GpuRef<RealOf<T>>& s,
             OnFailure on_failure = OnFailure::error) const {
    return detail::submit_for_value<std::int32_t>(*submitter_,
                                                  of_matrix<solver::Gesvd>(a, s, on_failure));
  }
  /// The same by Jacobi's method; v is V. See solver::Gesvdj.
  template <FieldElement T>
  Future<solver::Sweeps> gesvdj(solver::Extent extent, const Matrix<T>& a,
                                const GpuRef<RealOf<T>>& s, const Matrix<T>& u, const Matrix<T>& v,
                                const JacobiOptions& options = {}) const {
    auto op = of_matrix<solver::Gesvdj>(a, s, options.on_failure);
    op.max_sweeps = options.max_sweeps, op.tolerance = options.tolerance;
    return decompose<solver::Sweeps>(op, extent, a, u, v);
  }
  /// The same by polar decomposition. See solver::Gesvdp.
  template <FieldElement T>
  Future<solver::Perturbation> gesvdp(solver::Extent extent, const Matrix<T>& a,
                                      const GpuRef<RealOf<T>>& s, const Matrix<T>& u,
                                      const Matrix<T>& v,
                                      OnFailure on_failure = OnFailure::error) const {
    return decompose<solver::Perturbation>(of_matrix<solver::Gesvdp>(a, s, on_failure), extent, a,
                                           u, v);
  }
  /// s, u and v = the first of them, approximately; s has `rank` elements. See solver::Gesvdr.
  template <FieldElement T>
  Info gesvdr(const Matrix<T>& a, const GpuRef<RealOf<T>>& s, const Matrix<T>& u,
              const Matrix<T>& v, const SampledSvdOptions& options) const {
    auto op = of_matrix<solver::Gesvdr>(a, s, options.on_failure);
    op.rank = options.rank, op.oversampling = options.oversampling;
    op.iterations = options.iterations;
    op.ldu = u.leading, op.u = u.buffer.operand();
    op.ldv = v.leading, op.v = v.buffer.operand();
    return detail::submit_exact_for_value<std::int32_t>(
        *submitter_, op,
        {length("u", u, u.rows, a.rows), length("a row of u", u, u.columns, options.rank),
         length("v", v, v.rows, a.columns), length("a row of v", v, v.columns, options.rank)});
  }

 private:
  template <class Op, class M, class S>
  static Op of_matrix(const M& a, const S& s, OnFailure on_failure) {
    auto op = of_square<Op>(a, on_failure);
    op.m = a.rows, op.s = s.operand();
    return op;
  }
  template <class Told, class Op, class M>
  Future<Told> decompose(Op op, solver::Extent extent, const M& a, const M& u, const M& v) const {
    op.vectors = u.buffer ? solver::Vectors::yes : solver::Vectors::no;
    op.extent = extent;
    op.ldu = u.leading, op.u = u.buffer.operand();
    op.ldv = v.leading, op.v = v.buffer.operand();
    const bool full = extent == solver::Extent::full;
    const auto k = std::min(a.rows, a.columns);
    return detail::submit_exact_for_value<Told>(
        *submitter_, op,
        {length("u", u, u.rows, a.rows), length("a row of u", u, u.columns, full ? a.rows : k),
         length("v", v, v.rows, a.columns),
         length("a row of v", v, v.columns, full ? a.columns : k)});
  }
};

}  // namespace troupe
