#include "lib/solver/common/catalogue.hpp"

// Eigenvalues and vectors.

namespace troupe::catalogue {
namespace {

using blas::Transpose;
using solver::Problem;
using solver::Vectors;

bool ascend(const std::vector<Wide>& w, std::int64_t first, std::int64_t count) {
  return std::is_sorted(w.begin() + first, w.begin() + first + count,
                        [](const Wide& a, const Wide& b) { return a.real() < b.real(); });
}

template <class T>
Dense hermitian(Trial& t, std::int64_t n) {
  return reference::symmetric_matrix<T>({blas::Storage::full, blas::Uplo::lower, n, 0, n},
                                        blas::Symmetry::hermitian, t.random.next(),
                                        Data::fractions);
}

/// A V = B V W, A B V = V W, or B A V = V W, of ascending W; and V^H B V = I, but for the last.
template <class T>
double error_of_pairs(Problem problem, const Dense& a, const Dense& b, const Dense& v,
                      const std::vector<Wide>& w, std::int64_t first) {
  if (!ascend(w, first, v.columns)) return 1e9;
  const auto n = a.rows;
  const auto image = b * v;
  const auto left = problem == Problem::ax_bx ? a * v
                    : problem == Problem::abx ? a * image
                                              : b * (a * v);
  const auto right = problem == Problem::ax_bx ? image : v;
  const auto scale =
      problem == Problem::ax_bx ? reference::norm(a) : reference::norm(a) * reference::norm(b);
  const auto pairs = reference::ratio<T>(left - right * diagonal(w, first, v.columns), n,
                                         scale * std::max(1.0, reference::norm(v)));
  if (problem == Problem::bax) return pairs;
  const auto square = reference::op(v, Transpose::conjugate) * image;
  return std::max(pairs,
                  reference::ratio<T>(square - reference::identity(v.columns), n,
                                      reference::norm(b) * std::max(1.0, reference::norm(v))));
}
/// How far eigenvalues of one matrix may be apart by the theorem of Weyl.
template <class T>
double weyl(const Dense& a) {
  return 2 * reference::kMostOfEigenvalues * static_cast<double>(a.rows) * reference::norm(a) *
         Trial::epsilon<T>();
}
template <class T>
void add_symmetric_eigenvalues(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const std::string_view name : {"syevd", "syevj", "syevdx", "sygvd", "sygvj", "sygvdx"}) {
    catalogue.add<T>(name, [name](Trial& t) {
      const auto n = t.length<T>();
      const auto uplo = t.uplo();
      const bool with_b = name.starts_with("sygv"), part = name.ends_with("dx");
      const auto problem = with_b
                               ? t.random.of(std::array{Problem::ax_bx, Problem::abx, Problem::bax})
                               : Problem::ax_bx;
      const auto a = hermitian<T>(t, n);
      const auto b =
          with_b ? reference::definite_matrix<T>(n, t.random.next()) : reference::identity(n);
      const auto first = part ? t.random.between(1, n) : 1,
                 last = part ? t.random.between(first, n) : n;
      const auto range = EigenRange::indices(first, last);
      // The problem is solved with vectors, and now and then without: the values are the same.
      const auto solve = [&](Vectors vectors, const MatrixRef<GpuRef<T>>& at) {
        const auto b_at = put_half<T>(t, b, uplo, n + t.random.below(3));
        const auto w = t.room<R>(n);
        auto solver = t.device().solver();
        const auto call = [&t](const auto& future) {
          t.call(future);
          return future;
        };
        if (name == "syevd") t.call(solver.template syevd<T>(vectors, uplo, at, w));
        if (name == "syevj") demand_told(t, call(solver.template syevj<T>(vectors, uplo, at, w)));
        if (name == "syevdx") t.call(solver.template syevdx<T>(vectors, range, uplo, at, w));
        if (name == "sygvd") t.call(solver.template sygvd<T>(problem, vectors, uplo, at, b_at, w));
        if (name == "sygvj")
          demand_told(t, call(solver.template sygvj<T>(problem, vectors, uplo, at, b_at, w)));
        if (name == "sygvdx")
          t.call(solver.template sygvdx<T>(problem, vectors, range, uplo, at, b_at, w));
        demand_gaps<T>(t, at), demand_gaps<T>(t, b_at);
        return w;
      };
      const auto at = put_half<T>(t, a, uplo, n + t.random.below(3));
      const auto w = solve(Vectors::yes, at);
      const auto count = last - first + 1;
      if (t.random.one_in(3)) {
        const auto scale = problem == Problem::ax_bx ? 1 : reference::norm(b);
        demand_same_values(t, w, solve(Vectors::no, put_half<T>(t, a, uplo, n + t.random.below(3))),
                           count, weyl<T>(Wide(scale) * a));
      }
      t.demand(
          "the error of eigenvalues and vectors",
          [&t, problem, a, b, at, w, count] {
            return error_of_pairs<T>(problem, a, b, columns_of(t.got(at), 0, count), t.got(w), 0);
          },
          reference::kMostOfEigenvalues);
      if (!with_b && !part)
        t.demand(
            "the sum of the eigenvalues less the trace",
            [&t, a, w] {
              Wide sum = 0;
              for (const auto& value : t.got(w)) sum += value;
              for (std::int64_t i = 0; i < a.rows; ++i) sum -= a(i, i);
              return std::abs(sum);
            },
            static_cast<double>(n) * weyl<T>(a));
    });
  }
  for (const bool jacobi : {false, true}) {
    catalogue.add<T>(jacobi ? "syevj_batched" : "syev_batched", [jacobi](Trial& t) {
      const auto n = std::min<std::int64_t>(t.length<T>(), 32), batch = t.random.between(1, 3);
      const auto uplo = t.uplo();
      Dense all{n, n * batch};
      for (std::int64_t i = 0; i < batch; ++i) {
        const auto one = hermitian<T>(t, n);
        std::copy(one.element.begin(), one.element.end(), all.element.begin() + i * n * n);
      }
      const auto info =
          t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(batch), -1));
      const auto solve = [&](Vectors vectors, const MatrixRef<GpuRef<T>>& at) {
        const auto w = t.room<R>(n * batch);
        auto solver = t.device().solver();
        t.call(jacobi ? solver.template syevj_batched<T>(vectors, uplo, batch, at, w, info)
                      : solver.template syev_batched<T>(vectors, uplo, batch, at, w, info));
        demand_gaps<T>(t, at);
        return w;
      };
      const auto at = t.put<T>(all, t.random.below(3));
      const auto w = solve(Vectors::yes, at);
      t.expect(info, std::vector<Wide>(static_cast<std::size_t>(batch), 0));
      if (t.random.one_in(3))
        demand_same_values(t, w, solve(Vectors::no, t.put<T>(all, 1)), n * batch, weyl<T>(all));
      t.demand(
          "A V - V W, or V^H V - I",
          [&t, all, at, w, n, batch] {
            double most = 0;
            for (std::int64_t i = 0; i < batch; ++i) {
              most = std::max(
                  most, error_of_pairs<T>(Problem::ax_bx, columns_of(all, i * n, n),
                                          reference::identity(n), columns_of(t.got(at), i * n, n),
                                          t.got(w), i * n));
            }
            return most;
          },
          reference::kMostOfEigenvalues);
    });
  }
}

/// The eigenvectors as complex numbers; LAPACK packs those of real matrices.
template <class T>
Dense unpacked(Dense v, const std::vector<Wide>& w) {
  for (std::int64_t j = 0; !ComplexElement<T> && j + 1 < v.columns; ++j) {
    if (w[static_cast<std::size_t>(j)].imag() == 0) continue;
    for (std::int64_t i = 0; i < v.rows; ++i) {
      v(i, j) = Wide(v(i, j).real(), v(i, j + 1).real());
      v(i, j + 1) = std::conj(v(i, j));
    }
    ++j;
  }
  return v;
}

template <class T>
void add_general_eigenvalues(Catalogue& catalogue) {
  using R = RealOf<T>;
  catalogue.add<T>("geev", [](Trial& t) {
    const auto n = t.length<T>();
    const auto a = t.dense<T>(n, n, Data::fractions);
    const auto w = t.room<std::complex<R>>(n);
    const auto at = t.put<T>(a, t.random.below(3));
    // The traces of powers of A are sums of powers of its eigenvalues.
    t.demand(
        "sums of powers of eigenvalues",
        [&t, a, w] {
          const auto values = t.got(w);
          double most = 0, scale = 1;
          auto power = reference::identity(a.rows);
          for (int k = 1; k <= 3; ++k) {
            power = power * a, scale *= std::max(1.0, reference::norm(a));
            Wide difference = 0;
            for (std::int64_t i = 0; i < a.rows; ++i) difference += power(i, i);
            for (const auto& value : values) difference -= std::pow(value, k);
            most = std::max(most, std::abs(difference) / scale);
          }
          return most / (static_cast<double>(a.rows) * Trial::epsilon<T>());
        },
        reference::kMostOfEigenvalues);
    if (t.flip()) return t.call(t.device().solver().template geev<T>(at, w));
    const auto vr = room_with_gaps<T>(t, n, n);
    t.call(t.device().solver().template geev<T>(at, w, vr));
    t.demand(
        "A V - V W, or vectors that are not of length 1",
        [&t, a, w, vr] {
          const auto values = t.got(w);
          const auto v = unpacked<T>(t.got(vr), values);
          double length = 0;
          for (std::int64_t j = 0; j < v.columns; ++j) {
            double square = 0;
            for (std::int64_t i = 0; i < v.rows; ++i) square += std::norm(v(i, j));
            length = std::max(length, std::abs(square - 1));
          }
          const auto rows = static_cast<double>(a.rows);
          return std::max(length / (rows * Trial::epsilon<T>()),
                          reference::ratio<T>(a * v - v * diagonal(values, 0, v.columns), a.rows,
                                              reference::norm(a)));
        },
        reference::kMostOfEigenvalues);
  });
}

void add_calls_of_eigen(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_symmetric_eigenvalues<T>(catalogue);
    add_general_eigenvalues<T>(catalogue);
  });
}

const Subject kEigen("solver", add_calls_of_eigen);

}  // namespace

}  // namespace troupe::catalogue
