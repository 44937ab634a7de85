#pragma once

#include <troupe/lib/solver/calls.hpp>

/// QR factorisations, and what solves systems as a whole.
namespace troupe::solver {

/// A = Q R of an m x n matrix: R replaces the upper triangle of a, and the reflectors that Q is
/// made of what is below it. tau: min(m, n) factors of these.
struct Geqrf {
  static constexpr std::string_view kName = "solver.geqrf";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  std::int64_t m = 0, n = 0, lda = 0;
  Operand a, tau;

  static constexpr std::array kOperands{update("a", &Geqrf::a), write("tau", &Geqrf::tau)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &tau ? static_cast<std::uint64_t>(std::min(m, n)) * size_of(dtype) : 0;
  }
};

/// C = op(Q) C (left) or C op(Q) (right), C being m x n and Q of the first k reflectors of Geqrf:
/// ormqr of real numbers, unmqr of complex ones, whose op is not ^T. Extents are below 2^31.
struct Ormqr {
  static constexpr std::string_view kName = "solver.ormqr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  Side side{};
  Transpose transpose{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldc = 0;
  Operand a, tau, c;

  static constexpr std::array kOperands{read("a", &Ormqr::a), read("tau", &Ormqr::tau),
                                        update("c", &Ormqr::c)};
  Result<void> check() const;
  /// The order of Q.
  [[nodiscard]] std::int64_t order() const noexcept { return side == Side::left ? m : n; }
};

/// The first n columns of Q, m x n, in place of the k reflectors of Geqrf: orgqr of real numbers,
/// ungqr of complex ones; m >= n >= k. Extents are below 2^31.
struct Orgqr {
  static constexpr std::string_view kName = "solver.orgqr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kComputesHere;

  OpDType dtype;
  std::int64_t m = 0, n = 0, k = 0, lda = 0;
  Operand a, tau;

  static constexpr std::array kOperands{update("a", &Orgqr::a), read("tau", &Orgqr::tau)};
  Result<void> check() const;
};

/// What a matrix is factorised in before the solution is refined to the precision of its own type;
/// of complex numbers both parts. `same`: in that precision. The cpu engine always does the latter.
enum class Lowest : std::uint32_t { same, f32, tf32, bf16, f16 };

/// What Gesv and Gels tell.
struct Refinement {
  /// 0, or which element of a triangular factor's diagonal is zero, or kNotFinite
  std::int32_t info = 0;
  /// How often the solution was refined; negative: that did not converge, and the factorisation was
  /// done again in the precision of the matrix.
  std::int32_t iterations = 0;
};

/// X = the solution of A X = B, A being n x n, with iterative refinement
/// (https://docs.nvidia.com/cuda/cusolver, IRS). What is in a afterwards is undefined. Extents are
/// below 2^31.
struct Gesv {
  static constexpr std::string_view kName = "solver.gesv";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Lowest lowest{};
  OnFailure on_failure{};
  std::int64_t n = 0, nrhs = 0, lda = 0, ldb = 0, ldx = 0;
  Operand a, b, x, told;

  static constexpr std::array kOperands{update("a", &Gesv::a), read("b", &Gesv::b),
                                        write("x", &Gesv::x), write("told", &Gesv::told)};
  static constexpr auto kCell = &Gesv::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(Refinement) : 0;
  }
};

/// X = the n x nrhs matrix that minimises |A X - B|, A being m x n of full rank, m >= n. Otherwise
/// as Gesv.
struct Gels {
  static constexpr std::string_view kName = "solver.gels";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Lowest lowest{};
  OnFailure on_failure{};
  std::int64_t m = 0, n = 0, nrhs = 0, lda = 0, ldb = 0, ldx = 0;
  Operand a, b, x, told;

  static constexpr std::array kOperands{update("a", &Gels::a), read("b", &Gels::b),
                                        write("x", &Gels::x), write("told", &Gels::told)};
  static constexpr auto kCell = &Gels::told;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &told ? sizeof(Refinement) : 0;
  }
};

}  // namespace troupe::solver

namespace troupe {

/// How Solver::gesv and Solver::gels solve.
struct RefinementOptions {
  solver::Lowest lowest = solver::Lowest::same;
  OnFailure on_failure = OnFailure::error;
};

/// The QR factorisations of Solver, and its calls that factorise and solve at once.
class SolverOrthogonal : public detail::SolverCalls {
 public:
  using SolverCalls::SolverCalls;

  /// a = R and the reflectors of Q. See solver::Geqrf.
  template <FieldElement T>
  Future<void> geqrf(const Matrix<T>& a, const GpuRef<T>& tau) const {
    return detail::submit(*submitter_, solver::Geqrf{dtype_of<T>, a.rows, a.columns, a.leading,
                                                     a.buffer.operand(), tau.operand()});
  }
  /// c = op(Q) c (left), c op(Q) (right), Q of as many reflectors as a has columns
  template <RealElement T>
  Future<void> ormqr(blas::Side side, blas::Transpose transpose, const Matrix<T>& a,
                     const GpuRef<T>& tau, const Matrix<T>& c) const {
    return multiply_by_q(side, transpose, a, tau, c);
  }
  template <ComplexElement T>
  Future<void> unmqr(blas::Side side, blas::Transpose transpose, const Matrix<T>& a,
                     const GpuRef<T>& tau, const Matrix<T>& c) const {
    return multiply_by_q(side, transpose, a, tau, c);
  }
  /// a = its first columns of Q, of `k` reflectors
  template <RealElement T>
  Future<void> orgqr(const Matrix<T>& a, std::int64_t k, const GpuRef<T>& tau) const {
    return make_q(a, k, tau);
  }
  template <ComplexElement T>
  Future<void> ungqr(const Matrix<T>& a, std::int64_t k, const GpuRef<T>& tau) const {
    return make_q(a, k, tau);
  }
  /// x = the solution of A X = b. See solver::Gesv.
  template <FieldElement T>
  Future<solver::Refinement> gesv(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x,
                                  const RefinementOptions& options = {}) const {
    const auto op = refined<solver::Gesv>(a, b, x, options);
    return detail::submit_exact_for_value<solver::Refinement>(
        *submitter_, op,
        {square(a), {"b", b.rows, a.rows}, {"x", x.rows, a.columns}, same_columns(x, b)});
  }
  /// x = what minimises |A X - b|. See solver::Gels.
  template <FieldElement T>
  Future<solver::Refinement> gels(const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x,
                                  const RefinementOptions& options = {}) const {
    auto op = refined<solver::Gels>(a, b, x, options);
    op.m = a.rows;
    return detail::submit_exact_for_value<solver::Refinement>(
        *submitter_, op, {{"b", b.rows, a.rows}, {"x", x.rows, a.columns}, same_columns(x, b)});
  }

 private:
  template <class M>
  static detail::Length same_columns(const M& x, const M& b) {
    return {"a row of x", x.columns, b.columns};
  }
  template <class T>
  Future<void> multiply_by_q(blas::Side side, blas::Transpose transpose, const Matrix<T>& a,
                             const GpuRef<T>& tau, const Matrix<T>& c) const {
    const solver::Ormqr op{dtype_of<T>,        side,          transpose,         c.rows,
                           c.columns,          a.columns,     a.leading,         c.leading,
                           a.buffer.operand(), tau.operand(), c.buffer.operand()};
    return detail::submit_exact(*submitter_, op, {{"a", a.rows, op.order()}});
  }
  template <class T>
  Future<void> make_q(const Matrix<T>& a, std::int64_t k, const GpuRef<T>& tau) const {
    return detail::submit(*submitter_, solver::Orgqr{dtype_of<T>, a.rows, a.columns, k, a.leading,
                                                     a.buffer.operand(), tau.operand()});
  }
  template <class Op, class M>
  static Op refined(const M& a, const M& b, const M& x, const RefinementOptions& options) {
    auto op = of_square<Op>(a, options.on_failure);
    op.lowest = options.lowest, op.nrhs = b.columns, op.ldb = b.leading, op.ldx = x.leading;
    op.b = b.buffer.operand(), op.x = x.buffer.operand();
    return op;
  }
};

}  // namespace troupe
