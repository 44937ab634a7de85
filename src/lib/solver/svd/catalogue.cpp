#include "lib/solver/common/catalogue.hpp"

// Singular values and vectors.

namespace troupe::catalogue {
namespace {

using blas::Transpose;
using solver::Extent;

/// A = U S V^H of descending S, U and V orthonormal. Where one has more columns S has zeros.
template <class T>
double error_of_svd(const Dense& a, const Dense& u, const Dense& v, const std::vector<Wide>& values,
                    std::int64_t first, std::int64_t count) {
  Dense s{u.columns, v.columns};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = values[static_cast<std::size_t>(first + i)].real();
    const auto last = i == 0 ? value : values[static_cast<std::size_t>(first + i - 1)].real();
    if (value < 0 || value > last) return 1e9;
    s(i, i) = value;
  }
  return std::max({reference::orthonormality<T>(u), reference::orthonormality<T>(v),
                   reference::ratio<T>(u * s * reference::op(v, Transpose::conjugate) - a,
                                       std::max(a.rows, a.columns), reference::norm(a))});
}
/// How far singular values that are computed twice may be apart.
template <class T>
double slack_of(const Dense& a) {
  return 2 * reference::kMostOfSingularValues * static_cast<double>(std::max(a.rows, a.columns)) *
         reference::norm(a) * Trial::epsilon<T>();
}

template <class T>
void add_singular_values(Catalogue& catalogue) {
  using R = RealOf<T>;
  catalogue.add<T>("gesvd", [](Trial& t) {  // by QR iterations
    using solver::Columns;
    const auto n = t.length<T>(), m = n + t.random.below(6);
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3));
    const auto columns = t.random.of(std::array{Columns::some, Columns::all, Columns::overwrite});
    const bool in_place = columns == Columns::overwrite;
    const auto u = in_place ? at : room_with_gaps<T>(t, m, columns == Columns::all ? m : n),
               vt = room_with_gaps<T>(t, n, n);
    const auto s = t.room<R>(n);
    auto solver = t.device().solver();
    t.call(solver.template gesvd<T>(columns, in_place ? Columns::some : columns, at, s,
                                    in_place ? MatrixRef<GpuRef<T>>() : u, vt));
    demand_gaps<T>(t, at);
    t.demand(
        "U S V^H - A, or vectors that are not orthonormal",
        [&t, a, u, vt, s, n] {
          return error_of_svd<T>(a, t.got(u), reference::op(t.got(vt), Transpose::conjugate),
                                 t.got(s), 0, n);
        },
        reference::kMostOfSingularValues);
    if (!t.random.one_in(3)) return;
    const auto alone = t.room<R>(n);
    t.call(solver.template gesvd<T>(t.put<T>(a, 1), alone));
    demand_same_values(t, s, alone, n, slack_of<T>(a));
  });
  for (const bool polar : {false, true}) {  // else by Jacobi's method
    catalogue.add<T>(polar ? "gesvdp" : "gesvdj", [polar](Trial& t) {
      const auto m = t.length<T>(), n = t.length<T>(), k = std::min(m, n);
      const auto a = t.dense<T>(m, n, Data::fractions);
      const auto extent = t.flip() ? Extent::economy : Extent::full;
      const bool full = extent == Extent::full;
      const auto solve = [&](const MatrixRef<GpuRef<T>>& u, const MatrixRef<GpuRef<T>>& v) {
        const auto s = t.room<R>(k);
        const auto at = t.put<T>(a, t.random.below(3));
        auto solver = t.device().solver();
        if (polar) {
          const auto told = solver.template gesvdp<T>(extent, at, s, u, v);
          t.call(told), demand_told(t, told);
        } else {
          const auto told = solver.template gesvdj<T>(extent, at, s, u, v);
          t.call(told), demand_told(t, told);
        }
        return s;
      };
      const auto u = room_with_gaps<T>(t, m, full ? m : k),
                 v = room_with_gaps<T>(t, n, full ? n : k);
      const auto s = solve(u, v);
      t.demand(
          "U S V^H - A, or vectors that are not orthonormal",
          [&t, a, u, v, s, k] { return error_of_svd<T>(a, t.got(u), t.got(v), t.got(s), 0, k); },
          reference::kMostOfSingularValues);
      if (t.random.one_in(3)) demand_same_values(t, s, solve({}, {}), k, slack_of<T>(a));
    });
  }
  // The matrix has the rank that is asked for. In f32 power iterations lose digits.
  catalogue.add<T>("gesvdr", [](Trial& t) {
    const auto n = t.random.between(6, 9), m = n + t.random.below(4), rank = t.random.between(1, 2);
    const auto a = t.dense<T>(m, rank, Data::fractions) * t.dense<T>(rank, n, Data::fractions);
    const auto u = t.room<T>(m, rank), v = t.room<T>(n, rank);
    const auto s = t.room<R>(rank);
    t.call(t.device().solver().template gesvdr<T>(t.put<T>(a, 0), s, u, v,
                                                  {.rank = rank, .oversampling = 2}));
    t.demand(
        "A V - U S",
        [&t, a, u, v, s, rank] {
          return reference::ratio<T>(a * t.got(v) - t.got(u) * diagonal(t.got(s), 0, rank), a.rows,
                                     std::max(1.0, reference::norm(a)));
        },
        400 * reference::kMostOfSingularValues);
  });
}

/// Jacobi's method makes all of U and V, of at most 32 rows and columns. By way of A^H A the first
/// columns of tall matrices are made, which loses half of the digits.
template <class T>
void add_batches_of_singular_values(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const bool jacobi : {false, true}) {
    catalogue.add<T>(jacobi ? "gesvdj_batched" : "gesvda_batched", [jacobi](Trial& t) {
      const auto batch = t.random.between(1, 3), n = std::min<std::int64_t>(t.length<T>(), 20),
                 m = jacobi ? std::min<std::int64_t>(t.length<T>(), 32) : n + t.random.below(40);
      const auto k = std::min(m, n), rank = jacobi ? k : t.random.between(1, n);
      const auto columns_u = jacobi ? m : rank, columns_v = jacobi ? n : rank;
      auto all = t.dense<T>(m, n * batch, Data::fractions);
      // By way of A^H A the matrices are to be well conditioned.
      for (std::int64_t j = 0; !jacobi && j < all.columns; ++j)
        all(j % n, j) = reference::widen(
            reference::to_number<T>(all(j % n, j) + static_cast<double>(2 * m + j % n * 2)));
      const auto info =
          t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(batch), -1));
      const auto solve = [&](const MatrixRef<GpuRef<T>>& u, const MatrixRef<GpuRef<T>>& v) {
        const auto at = t.put<T>(all, t.random.below(3));
        const auto s = t.room<R>(rank * batch);
        auto solver = t.device().solver();
        t.call(jacobi ? solver.template gesvdj_batched<T>(batch, at, s, u, v, info)
                      : solver.template gesvda_batched<T>(batch, rank, at, s, u, v, info));
        if (!jacobi) t.expect(at, all);
        return s;
      };
      const auto u = room_with_gaps<T>(t, m, columns_u * batch),
                 v = room_with_gaps<T>(t, n, columns_v * batch);
      const auto s = solve(u, v);
      t.expect(info, std::vector<Wide>(static_cast<std::size_t>(batch), 0));
      const auto most = (jacobi ? 1 : 100) * reference::kMostOfSingularValues;
      t.demand(
          "A V - U S, or vectors that are not orthonormal",
          [&t, all, u, v, s, n, rank, columns_u, columns_v, batch] {
            double error = 0;
            const auto left = t.got(u), right = t.got(v);
            for (std::int64_t i = 0; i < batch; ++i) {
              const auto a = columns_of(all, i * n, n),
                         of_v = columns_of(right, i * columns_v, columns_v);
              // The columns of V are some of those that a product with A has.
              const auto image = a * of_v * reference::op(of_v, Transpose::conjugate);
              error =
                  std::max(error, error_of_svd<T>(image, columns_of(left, i * columns_u, columns_u),
                                                  of_v, t.got(s), i * rank, rank));
            }
            return error;
          },
          most);
      if (t.random.one_in(3))
        demand_same_values(t, s, solve({}, {}), rank * batch, most * slack_of<T>(all));
    });
  }
}

void add_calls_of_svd(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_singular_values<T>(catalogue);
    add_batches_of_singular_values<T>(catalogue);
  });
}

const Subject kSvd("solver", add_calls_of_svd);

}  // namespace

}  // namespace troupe::catalogue
