#include "lib/solver/common/catalogue.hpp"

// Linear systems. Factors are judged by residuals, in the units of LAPACK's own tests.

namespace troupe::catalogue {
namespace {

using blas::Transpose;
using blas::Uplo;
using reference::kMostOfSystems;

/// Far from singular.
template <class T>
Dense regular(Trial& t, std::int64_t n) {
  auto a = t.dense<T>(n, n, Data::fractions);
  for (std::int64_t i = 0; i < n; ++i)
    a(i, i) = reference::widen(reference::to_number<T>(a(i, i) + static_cast<double>(n)));
  return a;
}
/// Symmetric also where it is complex, and not definite: rows are exchanged, and without a diagonal
/// pivots are blocks of two.
template <class T>
Dense symmetric(Trial& t, std::int64_t n) {
  const bool large = n == 1 || t.flip(), none = !large && t.flip();
  auto a = reference::mirrored(large ? regular<T>(t, n) : t.dense<T>(n, n, Data::fractions),
                               Uplo::lower, blas::Symmetry::symmetric);
  for (std::int64_t i = 0; i < n && none; ++i) a(i, i) = 0;
  return a;
}
/// Right-hand sides.
template <class T>
Dense sides(Trial& t, std::int64_t n) {
  return t.varied<T>(n, t.random.between(1, 5));
}
template <class T>
void demand_solution(Trial& t, const Dense& a, const MatrixRef<GpuRef<T>>& x, const Dense& b) {
  t.demand(
      "A X - B", [&t, a, x, b] { return reference::residual<T>(a, t.got(x), b); }, kMostOfSystems);
}
/// `whole` makes the inverse of what has been left of it.
template <class T, class Whole>
void demand_inverse(Trial& t, const Dense& a, const MatrixRef<GpuRef<T>>& at, Whole whole) {
  t.demand(
      "A times its inverse",
      [&t, a, at, whole] {
        const Dense inverse = whole(t.got(at));
        return reference::ratio<T>(a * inverse - reference::identity(a.rows), a.rows,
                                   reference::norm(a) * reference::norm(inverse));
      },
      kMostOfSystems);
}

template <class T>
void add_definite(Catalogue& catalogue) {
  catalogue.add<T>({"potrs", "potrf potrs"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto uplo = t.uplo();
    const auto a = reference::definite_matrix<T>(n, t.random.next());
    const auto at = put_half<T>(t, a, uplo, n + t.random.below(3));
    const auto b = sides<T>(t, n);
    const auto x = t.put<T>(b, 0);
    auto solver = t.device().solver();
    t.call(solver.template potrf<T>(uplo, at));
    t.call(solver.template potrs<T>(uplo, at, x));
    demand_solution<T>(t, a, x, b), demand_rest<T>(t, at, uplo);
    t.demand(
        "L L^H - A",
        [&t, a, at, uplo] {
          const auto factor = reference::triangle(t.got(at), uplo, a.rows, a.rows);
          const auto other = reference::op(factor, Transpose::conjugate);
          return reference::ratio<T>((uplo == Uplo::lower ? factor * other : other * factor) - a,
                                     a.rows, reference::norm(a));
        },
        kMostOfSystems);
  });
  catalogue.add<T>({"potri", "potrf potri"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto uplo = t.uplo();
    const auto a = reference::definite_matrix<T>(n, t.random.next());
    const auto at = put_half<T>(t, a, uplo, n + t.random.below(3));
    auto solver = t.device().solver();
    t.call(solver.template potrf<T>(uplo, at));
    t.call(solver.template potri<T>(uplo, at));
    demand_inverse<T>(t, a, at, [uplo](const Dense& x) { return reference::mirrored(x, uplo); });
    demand_rest<T>(t, at, uplo);
  });
  catalogue.add<T>({"potrs_batched", "potrf_batched potrs_batched"}, [](Trial& t) {
    const auto n = t.length<T>(), leading = n + t.random.below(3);
    const auto uplo = t.uplo();
    std::vector<MatrixRef<GpuRef<T>>> a, b;
    for (int i = 0; i < 3; ++i) {
      const auto one = reference::definite_matrix<T>(n, t.random.next());
      const auto right = t.dense<T>(n, 1);
      a.push_back(put_half<T>(t, one, uplo, leading)), b.push_back(t.put<T>(right, leading - n));
      demand_gaps<T>(t, a.back()), demand_gaps<T>(t, b.back());
      demand_solution<T>(t, one, b.back(), right);
    }
    const auto info = t.put_values(std::vector<std::int32_t>(3, -1));
    auto solver = t.device().solver();
    t.call(solver.template potrf_batched<T>(uplo, a, info));
    t.call(solver.template potrs_batched<T>(uplo, a, b));
    t.expect(info, std::vector<Wide>(3, 0));
  });
}

template <class T>
void add_triangular_systems(Catalogue& catalogue) {
  catalogue.add<T>("trtri", [](Trial& t) {
    const auto n = t.length<T>(), leading = n + t.random.below(3);
    const auto uplo = t.uplo();
    const auto diagonal = t.diagonal();
    const reference::Stored half{blas::Storage::full, uplo, n, 0, leading};
    const auto a =
        reference::triangular_matrix<T>(half, diagonal, t.random.next(), Data::fractions);
    const MatrixRef at(t.put<T>(half.spread(a, diagonal)), n, n, leading);
    t.call(t.device().solver().template trtri<T>(uplo, diagonal, at));
    const bool unit = diagonal == blas::Diagonal::unit;
    demand_inverse<T>(t, a, at, [uplo, unit](const Dense& x) {
      return reference::triangle(x, uplo, x.rows, x.rows, unit);
    });
    demand_rest<T>(t, at, uplo, unit);
  });
  catalogue.add<T>("lauum", [](Trial& t) {
    const auto n = t.length<T>(), leading = n + t.random.below(3);
    const auto uplo = t.uplo();
    const reference::Stored half{blas::Storage::full, uplo, n, 0, leading};
    // Its diagonal is real, as potrf leaves it.
    auto a = reference::triangle(t.varied<T>(n, n), uplo, n, n);
    for (std::int64_t i = 0; i < n; ++i) a(i, i) = a(i, i).real();
    auto memory = half.spread(a);
    const auto buffer = t.put<T>(memory);
    t.call(t.device().solver().template lauum<T>(uplo, MatrixRef(buffer, n, n, leading)));
    const auto other = reference::op(a, Transpose::conjugate);
    half.store(uplo == Uplo::lower ? other * a : a * other, memory);
    t.expect(buffer, memory);
  });
}

/// The precision in which a solution that is refined begins.
solver::Lowest lowest(Trial& t) {
  using solver::Lowest;
  return t.random.of(
      std::array{Lowest::same, Lowest::f32, Lowest::tf32, Lowest::bf16, Lowest::f16});
}

template <class T>
void add_general_systems(Catalogue& catalogue) {
  using Pivot = std::int64_t;
  catalogue.add<T>({"getrs", "getrf getrs"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto transpose = t.transpose();
    // Without a large diagonal rows are exchanged.
    const bool pivots_at_all = t.flip();
    const auto a = pivots_at_all ? t.dense<T>(n, n, Data::fractions) : regular<T>(t, n);
    const auto b = sides<T>(t, n);
    const auto at = t.put<T>(a, t.random.below(3)), x = t.put<T>(b, t.random.below(3));
    auto solver = t.device().solver();
    if (pivots_at_all) {
      const auto pivots = t.room<Pivot>(n);
      t.call(solver.template getrf<T>(at, pivots));
      t.call(solver.template getrs<T>(transpose, at, pivots, x));
    } else {
      t.call(solver.template getrf<T>(at));
      t.call(solver.template getrs<T>(transpose, at, x));
    }
    demand_solution<T>(t, reference::op(a, transpose), x, b);
  });
  catalogue.add<T>("getrf", [](Trial& t) {  // of any shape
    const auto m = t.length<T>(), n = t.length<T>();
    const auto a = t.dense<T>(m, n, Data::fractions);
    const auto at = t.put<T>(a, t.random.below(3));
    const auto pivots = t.room<Pivot>(std::min(m, n));
    t.call(t.device().solver().template getrf<T>(at, pivots));
    demand_gaps<T>(t, at);
    t.demand(
        "L U - P A",
        [&t, a, at, pivots] {
          const auto both = t.got(at);
          const auto k = std::min(a.rows, a.columns);
          auto exchanged = a;
          const auto rows = t.got(pivots);
          for (std::int64_t i = 0; i < k; ++i) {
            const auto other =
                static_cast<std::int64_t>(rows[static_cast<std::size_t>(i)].real()) - 1;
            if (other < i || other >= a.rows) return 1e9;
            for (std::int64_t j = 0; j < a.columns; ++j)
              std::swap(exchanged(i, j), exchanged(other, j));
          }
          const auto product = reference::triangle(both, Uplo::lower, a.rows, k, true) *
                               reference::triangle(both, Uplo::upper, k, a.columns);
          return reference::ratio<T>(product - exchanged, std::max(a.rows, a.columns),
                                     reference::norm(a));
        },
        kMostOfSystems);
  });
  catalogue.add<T>("laswp", [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>(), first = t.random.between(1, m),
               last = t.random.between(first, m);
    auto a = t.dense<T>(m, n);
    std::vector<Pivot> pivots;
    // Pivots outside of the matrix exchange nothing.
    for (std::int64_t i = 0; i < m; ++i) pivots.push_back(t.random.between(0, m + 1));
    const auto at = t.put<T>(a, t.random.below(3));
    const auto order = t.flip() ? solver::Order::forward : solver::Order::backward;
    t.call(t.device().solver().template laswp<T>(at, first, last, t.put_values(pivots), order));
    for (auto step = first - 1; step < last; ++step) {
      const auto i = order == solver::Order::forward ? step : last + first - 2 - step;
      const auto other = pivots[static_cast<std::size_t>(i)] - 1;
      for (std::int64_t j = 0; j < n && other >= 0 && other < m; ++j)
        std::swap(a(i, j), a(other, j));
    }
    t.expect(at, a);
  });
  catalogue.add<T>({"sytrs", "sytrf sytrs"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto uplo = t.uplo();
    const auto a = symmetric<T>(t, n);
    const auto b = sides<T>(t, n);
    const auto at = put_half<T>(t, a, uplo, n + t.random.below(3)), x = t.put<T>(b, 0);
    const auto pivots = t.room<Pivot>(n);
    auto solver = t.device().solver();
    t.call(solver.template sytrf<T>(uplo, at, pivots));
    t.call(solver.template sytrs<T>(uplo, at, pivots, x));
    demand_solution<T>(t, a, x, b), demand_rest<T>(t, at, uplo);
  });
  catalogue.add<T>({"sytri", "sytrf sytri", Missing::itself}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto uplo = t.uplo();
    const auto a = symmetric<T>(t, n);
    const auto at = put_half<T>(t, a, uplo, n + t.random.below(3));
    const auto pivots = t.room<Pivot>(n);
    auto solver = t.device().solver();
    t.call(solver.template sytrf<T>(uplo, at, pivots));
    t.call(solver.template sytri<T>(uplo, at, pivots));
    demand_inverse<T>(t, a, at, [uplo](const Dense& x) {
      return reference::mirrored(x, uplo, blas::Symmetry::symmetric);
    });
    demand_rest<T>(t, at, uplo);
  });
  catalogue.add<T>("gesv", [](Trial& t) {
    const auto n = t.length<T>();
    const auto a = regular<T>(t, n), b = sides<T>(t, n);
    const auto x = t.room<T>(n, b.columns);
    const auto right = t.put<T>(b, t.random.below(3));
    t.call(t.device().solver().template gesv<T>(t.put<T>(a, t.random.below(3)), right, x,
                                                {.lowest = lowest(t)}));
    demand_solution<T>(t, a, x, b), t.expect(right, b);
  });
  catalogue.add<T>("gels", [](Trial& t) {
    const auto n = t.length<T>(), m = n + t.random.below(4);
    auto a = t.dense<T>(m, n, Data::fractions);
    for (std::int64_t i = 0; i < n; ++i)
      a(i, i) = reference::widen(reference::to_number<T>(a(i, i) + static_cast<double>(m)));
    const auto b = sides<T>(t, m);
    const auto x = t.room<T>(n, b.columns);
    const auto right = t.put<T>(b, t.random.below(3));
    t.call(t.device().solver().template gels<T>(t.put<T>(a, t.random.below(3)), right, x,
                                                {.lowest = lowest(t)}));
    t.expect(right, b);
    t.demand(
        "A^H (A X - B)",
        [&t, a, b, x] {
          const auto is = t.got(x);
          const auto normal = reference::op(a, Transpose::conjugate) * (a * is - b);
          const auto size = reference::norm(a);
          return reference::ratio<T>(normal, a.rows,
                                     size * (size * reference::norm(is) + reference::norm(b)));
        },
        kMostOfSystems);
  });
}

void add_calls_of_linear(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_definite<T>(catalogue);
    add_triangular_systems<T>(catalogue);
    add_general_systems<T>(catalogue);
  });
}

const Subject kLinear("solver", add_calls_of_linear);

}  // namespace

}  // namespace troupe::catalogue
