#include "catalogue/catalogue.hpp"

// Orthogonal factors, and reductions to few diagonals.

namespace troupe::catalogue {
namespace {

using blas::Transpose;
using blas::Uplo;
using reference::kMostOfSystems;

/// The Q of geqrf's reflectors, m x m.
Dense whole_q(const Dense& factors, const std::vector<Wide>& tau) {
  const auto m = factors.rows;
  auto q = reference::identity(m);
  for (std::size_t r = 0; r < tau.size(); ++r) {
    const auto column = static_cast<std::int64_t>(r);
    Dense v{m, 1};
    for (auto i = column; i < m; ++i) v(i, 0) = i == column ? 1 : factors(i, column);
    q = q - tau[r] * (q * v * reference::op(v, Transpose::conjugate));
  }
  return q;
}
/// How far Q is from orthonormal, and Q R from A.
template <class T>
double error_of(const Dense& q, const Dense& r, const Dense& a) {
  return std::max(reference::orthonormality<T>(q),
                  reference::ratio<T>(q * r - a, a.rows, reference::norm(a)));
}

template <class T>
void add_qr(Catalogue& catalogue) {
  catalogue.add<T>({"orgqr", "geqrf orgqr"}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3));
    const auto tau = t.room<T>(n);
    const auto factors = t.put<T>(Dense{m, n}, at.leading - m);
    auto solver = t.device().solver();
    t.call(solver.template geqrf<T>(at, tau));
    t.call(t.device().copy(at.buffer, factors.buffer));
    if constexpr (ComplexElement<T>)
      t.call(solver.template ungqr<T>(at, n, tau));
    else
      t.call(solver.template orgqr<T>(at, n, tau));
    t.demand(
        "Q R - A, or Q^H Q - I",
        [&t, a, at, factors] {
          const auto r = reference::triangle(t.got(factors), Uplo::upper, a.columns, a.columns);
          return error_of<T>(t.got(at), r, a);
        },
        kMostOfSystems);
  });
  catalogue.add<T>({"ormqr", "geqrf ormqr"}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    const auto side = t.side();
    const bool left = side == blas::Side::left;
    const auto transpose = t.flip() ? Transpose::no : Transpose::conjugate;
    const auto c = left ? t.dense<T>(m, 3) : t.dense<T>(3, m);
    const auto at = t.put<T>(t.dense<T>(m, n, Data::fractions), t.random.below(3)),
               to = t.put<T>(c, t.random.below(3));
    const auto tau = t.room<T>(n);
    auto solver = t.device().solver();
    t.call(solver.template geqrf<T>(at, tau));
    if constexpr (ComplexElement<T>)
      t.call(solver.template unmqr<T>(side, transpose, at, tau, to));
    else
      t.call(solver.template ormqr<T>(side, transpose, at, tau, to));
    t.demand(
        "op(Q) C",
        [&t, c, at, tau, to, left, transpose] {
          const auto q = reference::op(whole_q(t.got(at), t.got(tau)), transpose);
          return reference::ratio<T>(t.got(to) - (left ? q * c : c * q), at.rows,
                                     reference::norm(c));
        },
        kMostOfSystems);
  });
  catalogue.add<T>({"larft", "geqrf larft"}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    const auto at = t.put<T>(t.dense<T>(m, n, Data::fractions), t.random.below(3));
    const auto tau = t.room<T>(n);
    const auto triangle = t.room<T>(n, n);
    auto solver = t.device().solver();
    t.call(solver.template geqrf<T>(at, tau));
    t.call(solver.template larft<T>(at, tau, triangle));
    t.demand(
        "I - V T V^H",
        [&t, at, tau, triangle, m, n] {
          const auto factors = t.got(at);
          const auto v = reference::triangle(factors, Uplo::lower, m, n, true);
          const auto block = reference::triangle(t.got(triangle), Uplo::upper, n, n);
          const auto q =
              reference::identity(m) - v * block * reference::op(v, Transpose::conjugate);
          return reference::ratio<T>(q - whole_q(factors, t.got(tau)), m, 1);
        },
        kMostOfSystems);
  });
}

/// The matrix with d on the diagonal and e above it, and below it if it is symmetric.
Dense of_diagonals(const std::vector<Wide>& d, const std::vector<Wide>& e, bool is_symmetric) {
  const auto n = std::ssize(d);
  Dense matrix{n, n};
  for (std::int64_t i = 0; i < n; ++i) {
    matrix(i, i) = d[static_cast<std::size_t>(i)];
    if (i + 1 == n) break;
    matrix(i, i + 1) = e[static_cast<std::size_t>(i)];
    if (is_symmetric) matrix(i + 1, i) = e[static_cast<std::size_t>(i)];
  }
  return matrix;
}

template <class T>
void add_reduced_forms(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const bool multiplies : {false, true}) {
    catalogue.add<T>(
        multiplies ? CallName{"ormtr", "sytrd ormtr"} : CallName{"orgtr", "sytrd orgtr"},
        [multiplies](Trial& t) {
          const auto n = std::max<std::int64_t>(2, t.length<T>()), leading = n + t.random.below(3);
          const auto uplo = t.uplo();
          const reference::Stored half{blas::Storage::full, uplo, n, 0, leading};
          const auto a = reference::symmetric_matrix<T>(half, blas::Symmetry::hermitian,
                                                        t.random.next(), Data::fractions);
          const MatrixRef at(t.put<T>(half.spread(a)), n, n, leading);
          const auto d = t.room<R>(n), e = t.room<R>(n - 1);
          const auto tau = t.room<T>(n - 1);
          const auto unit = t.put<T>(reference::identity(n), 0);
          auto solver = t.device().solver();
          t.call(solver.template sytrd<T>(uplo, at, d, e, tau));
          if (multiplies)
            t.call(solver.template ormtr<T>(blas::Side::left, uplo, Transpose::no, at, tau, unit));
          else
            t.call(solver.template orgtr<T>(uplo, at, tau));
          t.demand(
              "Q T - A Q, or Q^H Q - I",
              [&t, a, q_at = multiplies ? unit : at, d, e] {
                const auto q = t.got(q_at);
                return error_of<T>(q, of_diagonals(t.got(d), t.got(e), true), a * q);
              },
              kMostOfSystems);
        });
  }
  catalogue.add<T>({"orgbr", "gebrd orgbr"}, [](Trial& t) {
    const auto n = std::max<std::int64_t>(2, t.length<T>()), m = n + t.random.below(4);
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3));
    const auto d = t.room<R>(n), e = t.room<R>(n - 1);
    const auto tau_q = t.room<T>(n), tau_p = t.room<T>(n);
    auto solver = t.device().solver();
    t.call(solver.template gebrd<T>(at, d, e, tau_q, tau_p));
    t.call(solver.template orgbr<T>(blas::Side::left, at, tau_q));
    t.demand(
        "B B^H - Q^H A A^H Q, or Q^H Q - I",
        [&t, a, at, d, e] {
          const auto q = t.got(at);
          const auto b = of_diagonals(t.got(d), t.got(e), false);
          const auto rows = reference::op(q, Transpose::conjugate) * a;
          const auto square = rows * reference::op(rows, Transpose::conjugate);
          return std::max(reference::orthonormality<T>(q),
                          reference::ratio<T>(square - b * reference::op(b, Transpose::yes), a.rows,
                                              reference::norm(square)));
        },
        kMostOfSystems);
  });
}

void add_calls_of_orthogonal(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_qr<T>(catalogue);
    add_reduced_forms<T>(catalogue);
  });
}

const Subject kOrthogonal("solver", add_calls_of_orthogonal);

}  // namespace

}  // namespace troupe::catalogue
