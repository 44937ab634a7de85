#include "lib/solver/common/catalogue.hpp"

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

/// orgqr or ungqr, ormqr or unmqr: each type has its own.
template <class T>
Future<void> make_q(Trial& t, const MatrixRef<GpuRef<T>>& a, std::int64_t k, const GpuRef<T>& tau) {
  if constexpr (ComplexElement<T>)
    return t.device().solver().ungqr(a, k, tau);
  else
    return t.device().solver().orgqr(a, k, tau);
}
template <class T>
Future<void> multiply_by_q(Trial& t, blas::Side side, Transpose transpose,
                           const MatrixRef<GpuRef<T>>& a, const GpuRef<T>& tau,
                           const MatrixRef<GpuRef<T>>& c) {
  if constexpr (ComplexElement<T>)
    return t.device().solver().unmqr(side, transpose, a, tau, c);
  else
    return t.device().solver().ormqr(side, transpose, a, tau, c);
}

template <class T>
void add_qr(Catalogue& catalogue) {
  // The first k columns are factorised, which need not be all, nor fewer than the rows; then Q has
  // as many columns as may be.
  catalogue.add<T>({"orgqr", "geqrf orgqr"}, [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>(), wide = t.random.between(1, n);
    const auto k = std::min(m, wide), columns = std::min(m, n);
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3));
    const auto tau = t.room<T>(k);
    const auto factors = t.put<T>(Dense{m, n}, at.leading - m);
    t.call(t.device().solver().template geqrf<T>(
        MatrixRef<GpuRef<T>>(at.buffer, m, wide, at.leading), tau));
    t.call(t.device().copy(at.buffer, factors.buffer));
    const MatrixRef<GpuRef<T>> q_at(at.buffer, m, columns, at.leading);
    t.call(make_q<T>(t, q_at, k, tau));
    demand_gaps<T>(t, q_at);
    t.demand(
        "Q R - A, or Q^H Q - I",
        [&t, a, q_at, factors, columns, wide] {
          const auto r = reference::triangle(t.got(factors), Uplo::upper, columns, wide);
          Dense first{a.rows, wide};
          std::copy_n(a.element.begin(), a.rows * wide, first.element.begin());
          return error_of<T>(t.got(q_at), r, first);
        },
        kMostOfSystems);
  });
  catalogue.add<T>({"ormqr", "geqrf ormqr"}, [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>(), k = std::min(m, n), width = t.length<T>();
    const auto side = t.side();
    const bool left = side == blas::Side::left;
    const auto other = ComplexElement<T> || t.flip() ? Transpose::conjugate : Transpose::yes;
    const auto transpose = t.flip() ? Transpose::no : other;
    const auto c = left ? t.dense<T>(m, width) : t.dense<T>(width, m);
    const auto at = t.put<T>(t.dense<T>(m, n, Data::fractions), t.random.below(3)),
               to = t.put<T>(c, t.random.below(3));
    const auto tau = t.room<T>(k);
    t.call(t.device().solver().template geqrf<T>(at, tau));
    const MatrixRef<GpuRef<T>> reflectors(at.buffer, m, k, at.leading);
    t.call(multiply_by_q<T>(t, side, transpose, reflectors, tau, to));
    demand_gaps<T>(t, at), demand_gaps<T>(t, to);
    t.demand(
        "op(Q) C",
        [&t, c, reflectors, tau, to, left, transpose] {
          const auto q = reference::op(whole_q(t.got(reflectors), t.got(tau)), transpose);
          return reference::ratio<T>(t.got(to) - (left ? q * c : c * q), q.rows,
                                     reference::norm(c));
        },
        kMostOfSystems);
  });
  catalogue.add<T>({"larft", "geqrf larft"}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    const auto at = t.put<T>(t.dense<T>(m, n, Data::fractions), t.random.below(3));
    const auto tau = t.room<T>(n);
    const auto triangle = room_with_gaps<T>(t, n, n);
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
  catalogue.add<T>({"orgtr", "sytrd orgtr ormtr"}, [](Trial& t) {
    const auto n = t.length<T>(), leading = n + t.random.below(3);
    const auto uplo = t.uplo();
    const reference::Stored half{blas::Storage::full, uplo, n, 0, leading};
    const auto a = reference::symmetric_matrix<T>(half, blas::Symmetry::hermitian, t.random.next(),
                                                  Data::fractions);
    const auto at = put_half<T>(t, a, uplo, leading);
    const auto d = t.room<R>(n), e = t.room<R>(n - 1);
    const auto tau = t.room<T>(n - 1);
    const auto side = t.side();
    const bool left = side == blas::Side::left;
    const auto transpose = t.flip() ? Transpose::no : Transpose::conjugate;
    const auto width = t.length<T>();
    const auto c = left ? t.dense<T>(n, width) : t.dense<T>(width, n);
    const auto product = t.put<T>(c, t.random.below(3));
    auto solver = t.device().solver();
    t.call(solver.template sytrd<T>(uplo, at, d, e, tau));
    t.call(solver.template ormtr<T>(side, uplo, transpose, at, tau, product));
    t.call(solver.template orgtr<T>(uplo, at, tau));
    demand_gaps<T>(t, at), demand_gaps<T>(t, product);
    t.demand(
        "Q T - A Q, or Q^H Q - I",
        [&t, a, at, d, e] {
          const auto q = t.got(at);
          return error_of<T>(q, of_diagonals(t.got(d), t.got(e), true), a * q);
        },
        reference::kMostOfEigenvalues);
    t.demand(
        "op(Q) C",
        [&t, c, at, product, left, transpose] {
          const auto q = reference::op(t.got(at), transpose);
          return reference::ratio<T>(t.got(product) - (left ? q * c : c * q), q.rows,
                                     reference::norm(c));
        },
        reference::kMostOfEigenvalues);
  });
  catalogue.add<T>({"sytrd", "sytrd"}, [](Trial& t) {
    const auto n = t.length<T>(), leading = n + t.random.below(3);
    const auto uplo = t.uplo();
    const auto a =
        reference::symmetric_matrix<T>({blas::Storage::full, uplo, n, 0, leading},
                                       blas::Symmetry::hermitian, t.random.next(), Data::fractions);
    const auto at = put_half<T>(t, a, uplo, leading);
    const auto d = t.room<R>(n), e = t.room<R>(n - 1);
    t.call(t.device().solver().template sytrd<T>(uplo, at, d, e, t.room<T>(n - 1)));
    demand_rest<T>(t, at, uplo);
    t.demand(  // the sum of squares of its elements
        "the size of T less that of A",
        [&t, a, d, e] {
          const auto size = [](const Dense& x) {
            double sum = 0;
            for (const auto& element : x.element) sum += std::norm(element);
            return sum;
          };
          const auto whole = size(a);
          return std::abs(size(of_diagonals(t.got(d), t.got(e), true)) - whole) /
                 (static_cast<double>(a.rows) * whole * Trial::epsilon<T>());
        },
        reference::kMostOfEigenvalues);
  });
  catalogue.add<T>({"orgbr", "gebrd orgbr"}, [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3)), right = t.put<T>(Dense{m, n}, at.leading - m);
    const auto d = t.room<R>(n), e = t.room<R>(n - 1);
    const auto tau_q = t.room<T>(n), tau_p = t.room<T>(n);
    auto solver = t.device().solver();
    t.call(solver.template gebrd<T>(at, d, e, tau_q, tau_p));
    t.call(t.device().copy(at.buffer, right.buffer));
    t.call(solver.template orgbr<T>(blas::Side::left, at, tau_q));
    t.call(solver.template orgbr<T>(blas::Side::right, right, tau_p));
    demand_gaps<T>(t, at), demand_gaps<T>(t, right);
    t.demand(
        "Q B P^H - A, or vectors that are not orthonormal",
        [&t, a, at, right, d, e] {
          const auto both = t.got(right);
          Dense p{a.columns, a.columns};
          for (std::int64_t j = 0; j < a.columns; ++j) {
            for (std::int64_t i = 0; i < a.columns; ++i) p(i, j) = both(i, j);
          }
          const auto of_p = reference::orthonormality<T>(reference::op(p, Transpose::conjugate));
          return std::max(of_p,
                          error_of<T>(t.got(at), of_diagonals(t.got(d), t.got(e), false) * p, a));
        },
        reference::kMostOfSingularValues);
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
