#pragma once

#include <troupe/lib/solver/calls.hpp>

/// The steps of which factorisations and eigenvalue problems are made, for programs that put them
/// together in another way. Extents are below 2^31, but for Larft.
namespace troupe::solver {

/// A = Q T Q^H of an n x n Hermitian matrix, T tridiagonal and real: d has its diagonal, n
/// elements, and e the n - 1 elements beside it, both in the real type. The reflectors that Q is
/// made of replace that half of a; tau: n - 1 factors of these. sytrd of real numbers, hetrd of
/// complex ones.
struct Sytrd {
  static constexpr std::string_view kName = "solver.sytrd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, d, e, tau;

  static constexpr std::array kOperands{update("a", &Sytrd::a), write("d", &Sytrd::d),
                                        write("e", &Sytrd::e), write("tau", &Sytrd::tau)};
  Result<void> check() const;
};

/// Q, n x n, in place of the reflectors of Sytrd.
struct Orgtr {
  static constexpr std::string_view kName = "solver.orgtr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a, tau;

  static constexpr std::array kOperands{update("a", &Orgtr::a), read("tau", &Orgtr::tau)};
  Result<void> check() const;
};

/// C = op(Q) C (left) or C op(Q) (right), C being m x n and Q that of Sytrd; complex ones have no
/// op of ^T. a is as before when it is done.
struct Ormtr {
  static constexpr std::string_view kName = "solver.ormtr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Side side{};
  Uplo uplo{};
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, ldc = 0;
  Operand a, tau, c;

  static constexpr std::array kOperands{update("a", &Ormtr::a), read("tau", &Ormtr::tau),
                                        update("c", &Ormtr::c)};
  Result<void> check() const;
  /// The order of Q.
  [[nodiscard]] std::int64_t order() const noexcept { return side == Side::left ? m : n; }
};

/// A = Q B P^H of an m x n matrix, m >= n, B upper bidiagonal and real: d has its diagonal, n
/// elements, and e the n - 1 elements above it, both in the real type. The reflectors that Q and P
/// are made of replace a; tau_q and tau_p: n factors of each.
struct Gebrd {
  static constexpr std::string_view kName = "solver.gebrd";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  std::int64_t m = 0, n = 0, lda = 0;
  Operand a, d, e, tau_q, tau_p;

  static constexpr std::array kOperands{update("a", &Gebrd::a), write("d", &Gebrd::d),
                                        write("e", &Gebrd::e), write("tau_q", &Gebrd::tau_q),
                                        write("tau_p", &Gebrd::tau_p)};
  Result<void> check() const;
};

/// The first n columns of Q, m x n (left), or P^H, n x n (right), in place of the reflectors of
/// Gebrd, whose matrix was m x n.
struct Orgbr {
  static constexpr std::string_view kName = "solver.orgbr";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Side side{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0;
  Operand a, tau;

  static constexpr std::array kOperands{update("a", &Orgbr::a), read("tau", &Orgbr::tau)};
  Result<void> check() const;
  /// The rows of what it makes.
  [[nodiscard]] std::int64_t rows() const noexcept { return side == Side::left ? m : n; }
};

/// The upper triangle t, k x k, of I - V T V^H, the product of the k reflectors that Geqrf has made
/// in v, n x k, with their factors tau.
struct Larft {
  static constexpr std::string_view kName = "solver.larft";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  std::int64_t n = 0, k = 0, ldv = 0, ldt = 0;
  Operand v, tau, t;

  static constexpr std::array kOperands{read("v", &Larft::v), read("tau", &Larft::tau),
                                        update("t", &Larft::t)};
  Result<void> check() const;
};

/// The half of L^H L (lower) or U U^H (upper), in place of a triangular matrix.
struct Lauum {
  static constexpr std::string_view kName = "solver.lauum";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Uplo uplo{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, lda = 0;
  Operand a;

  static constexpr std::array kOperands{update("a", &Lauum::a)};
  Result<void> check() const;
};

enum class Order : std::uint32_t { forward, backward };

/// Exchanges each row from the first-th to the last-th, counted from 1, of an m x n matrix with the
/// one that its pivot names, as Getrf has done it; backward, to undo that. `pivots`: std::int64_t,
/// the first `last` of them; those outside of the matrix exchange nothing.
struct Laswp {
  static constexpr std::string_view kName = "solver.laswp";
  static constexpr DTypes kDTypes = solver::kDTypes;
  static constexpr Traits kTraits = kBlocksHere;

  OpDType dtype;
  Order order{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, first = 1, last = 0;
  Operand a, pivots;

  static constexpr std::array kOperands{update("a", &Laswp::a), read("pivots", &Laswp::pivots)};
  Result<void> check() const;
};

}  // namespace troupe::solver

namespace troupe {

/// The reductions of Solver.
class SolverReductions : public detail::SolverCalls {
 public:
  using SolverCalls::SolverCalls;

  /// a = the reflectors of Q, d and e = T. See solver::Sytrd.
  template <FieldElement T>
  Future<void> sytrd(blas::Uplo uplo, const Matrix<T>& a, const GpuRef<RealOf<T>>& d,
                     const GpuRef<RealOf<T>>& e, const GpuRef<T>& tau) const {
    auto op = half_of<solver::Sytrd>(uplo, a);
    op.d = d.operand(), op.e = e.operand(), op.tau = tau.operand();
    return detail::submit_exact(*submitter_, op, {square(a)});
  }
  /// a = Q of sytrd
  template <FieldElement T>
  Future<void> orgtr(blas::Uplo uplo, const Matrix<T>& a, const GpuRef<T>& tau) const {
    auto op = half_of<solver::Orgtr>(uplo, a);
    op.tau = tau.operand();
    return detail::submit_exact(*submitter_, op, {square(a)});
  }
  /// c = op(Q) c (left), c op(Q) (right), Q of sytrd
  template <FieldElement T>
  Future<void> ormtr(blas::Side side, blas::Uplo uplo, blas::Transpose transpose,
                     const Matrix<T>& a, const GpuRef<T>& tau, const Matrix<T>& c) const {
    const solver::Ormtr op{dtype_of<T>,
                           side,
                           uplo,
                           transpose,
                           0,
                           c.rows,
                           c.columns,
                           a.leading,
                           c.leading,
                           a.buffer.operand(),
                           tau.operand(),
                           c.buffer.operand()};
    return detail::submit_exact(*submitter_, op, {{"a", a.rows, op.order()}, square(a)});
  }
  /// a = the reflectors of Q and P, d and e = B. See solver::Gebrd.
  template <FieldElement T>
  Future<void> gebrd(const Matrix<T>& a, const GpuRef<RealOf<T>>& d, const GpuRef<RealOf<T>>& e,
                     const GpuRef<T>& tau_q, const GpuRef<T>& tau_p) const {
    return detail::submit(
        *submitter_, solver::Gebrd{dtype_of<T>, a.rows, a.columns, a.leading, a.buffer.operand(),
                                   d.operand(), e.operand(), tau_q.operand(), tau_p.operand()});
  }
  /// a = Q (left) or P^H (right) of gebrd, of as many columns as its matrix had
  template <FieldElement T>
  Future<void> orgbr(blas::Side side, const Matrix<T>& a, const GpuRef<T>& tau) const {
    return detail::submit(*submitter_, solver::Orgbr{dtype_of<T>, side, 0, a.rows, a.columns,
                                                     a.leading, a.buffer.operand(), tau.operand()});
  }
  /// t = the triangle of the product of geqrf's reflectors. See solver::Larft.
  template <FieldElement T>
  Future<void> larft(const Matrix<T>& v, const GpuRef<T>& tau, const Matrix<T>& t) const {
    const solver::Larft op{
        dtype_of<T>,        v.rows,        v.columns,         v.leading, t.leading,
        v.buffer.operand(), tau.operand(), t.buffer.operand()};
    return detail::submit_exact(*submitter_, op,
                                {{"t", t.rows, v.columns}, {"a row of t", t.columns, v.columns}});
  }
  /// a = L^H L or U U^H
  template <FieldElement T>
  Future<void> lauum(blas::Uplo uplo, const Matrix<T>& a) const {
    return detail::submit_exact(*submitter_, half_of<solver::Lauum>(uplo, a), {square(a)});
  }
  /// Exchanges rows of a, from the first-th to the last-th, counted from 1. See solver::Laswp.
  template <FieldElement T>
  Future<void> laswp(const Matrix<T>& a, std::int64_t first, std::int64_t last,
                     const Pivots& pivots, solver::Order order = solver::Order::forward) const {
    return detail::submit(
        *submitter_, solver::Laswp{dtype_of<T>, order, 0, a.rows, a.columns, a.leading, first, last,
                                   a.buffer.operand(), pivots.operand()});
  }

 private:
  template <class Op, class M>
  static Op half_of(blas::Uplo uplo, const M& a) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>, op.uplo = uplo;
    op.n = a.columns, op.lda = a.leading, op.a = a.buffer.operand();
    return op;
  }
};

}  // namespace troupe
