#include "catalogue/catalogue.hpp"

// Eigenvalues and singular values, with vectors.

namespace troupe::catalogue {
namespace {

using blas::Transpose;
using solver::Extent;
using solver::Problem;
using solver::Vectors;

Dense columns_of(const Dense& a, std::int64_t first, std::int64_t count) {
  Dense part{a.rows, count};
  std::copy_n(a.element.begin() + first * a.rows, count * a.rows, part.element.begin());
  return part;
}
Dense diagonal(const std::vector<Wide>& values, std::int64_t first, std::int64_t count) {
  Dense matrix{count, count};
  for (std::int64_t i = 0; i < count; ++i)
    matrix(i, i) = values[static_cast<std::size_t>(first + i)];
  return matrix;
}
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

/// A V = B V W, V^H B V = I, and the sum of all eigenvalues where all are there.
template <class T>
double error_of_pairs(const Dense& a, const Dense& b, const Dense& v, const std::vector<Wide>& w,
                      std::int64_t first) {
  if (!ascend(w, first, v.columns)) return 1e9;
  const auto n = a.rows;
  const auto image = b * v;
  const auto scale = (reference::norm(a) + reference::norm(b)) * std::max(1.0, reference::norm(v));
  return std::max(reference::ratio<T>(a * v - image * diagonal(w, first, v.columns), n, scale),
                  reference::ratio<T>(reference::op(v, Transpose::conjugate) * image -
                                          reference::identity(v.columns),
                                      n, reference::norm(b) * std::max(1.0, reference::norm(v))));
}

template <class T>
void add_symmetric_eigenvalues(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const std::string_view name : {"syevd", "syevj", "syevdx", "sygvd", "sygvj", "sygvdx"}) {
    catalogue.add<T>(name, [name](Trial& t) {
      const auto n = t.length<T>();
      const auto uplo = t.uplo();
      const bool with_b = name.starts_with("sygv"), part = name.ends_with("dx");
      const auto a = hermitian<T>(t, n);
      const auto b =
          with_b ? reference::definite_matrix<T>(n, t.random.next()) : reference::identity(n);
      const auto at = t.put<T>(a, t.random.below(3)), b_at = t.put<T>(b, t.random.below(3));
      const auto w = t.room<R>(n);
      const auto first = part ? t.random.between(1, n) : 1,
                 last = part ? t.random.between(first, n) : n;
      const auto range = EigenRange::indices(first, last);
      auto solver = t.device().solver();
      if (name == "syevd") t.call(solver.template syevd<T>(Vectors::yes, uplo, at, w));
      if (name == "syevj") t.call(solver.template syevj<T>(Vectors::yes, uplo, at, w));
      if (name == "syevdx") t.call(solver.template syevdx<T>(Vectors::yes, range, uplo, at, w));
      if (name == "sygvd")
        t.call(solver.template sygvd<T>(Problem::ax_bx, Vectors::yes, uplo, at, b_at, w));
      if (name == "sygvj")
        t.call(solver.template sygvj<T>(Problem::ax_bx, Vectors::yes, uplo, at, b_at, w));
      if (name == "sygvdx")
        t.call(solver.template sygvdx<T>(Problem::ax_bx, Vectors::yes, range, uplo, at, b_at, w));
      t.demand(
          "A V - B V W, or V^H B V - I",
          [&t, a, b, at, w, count = last - first + 1] {
            return error_of_pairs<T>(a, b, columns_of(t.got(at), 0, count), t.got(w), 0);
          },
          reference::kMostOfEigenvalues);
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
      const auto at = t.put<T>(all, 0);
      const auto w = t.room<R>(n * batch);
      const auto info =
          t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(batch), -1));
      auto solver = t.device().solver();
      t.call(jacobi ? solver.template syevj_batched<T>(Vectors::yes, uplo, batch, at, w, info)
                    : solver.template syev_batched<T>(Vectors::yes, uplo, batch, at, w, info));
      t.expect(info, std::vector<Wide>(static_cast<std::size_t>(batch), 0));
      t.demand(
          "A V - V W, or V^H V - I",
          [&t, all, at, w, n, batch] {
            double most = 0;
            for (std::int64_t i = 0; i < batch; ++i) {
              most = std::max(most,
                              error_of_pairs<T>(columns_of(all, i * n, n), reference::identity(n),
                                                columns_of(t.got(at), i * n, n), t.got(w), i * n));
            }
            return most;
          },
          reference::kMostOfEigenvalues);
    });
  }
}

template <class T>
void add_general_eigenvalues(Catalogue& catalogue) {
  using R = RealOf<T>;
  // The traces of powers of A are sums of powers of its eigenvalues.
  catalogue.add<T>("geev", [](Trial& t) {
    const auto n = t.length<T>();
    const auto a = t.dense<T>(n, n, Data::fractions);
    const auto w = t.room<std::complex<R>>(n);
    t.call(t.device().solver().template geev<T>(t.put<T>(a, 0), w));
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
  });
}

/// A V = U S, and both are orthonormal.
template <class T>
double error_of_svd(const Dense& a, const Dense& u, const Dense& v, const Dense& s) {
  return std::max({reference::orthonormality<T>(u), reference::orthonormality<T>(v),
                   reference::ratio<T>(a * v - u * s, a.rows, reference::norm(a))});
}

template <class T>
void add_singular_values(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const std::string_view name : {"gesvd", "gesvdj", "gesvdp"}) {
    catalogue.add<T>(name, [name](Trial& t) {
      const auto n = t.length<T>(), m = n + t.random.below(4);
      const auto a = t.dense<T>(m, n, Data::fractions);
      const auto at = t.put<T>(a, t.random.below(3));
      const auto u = t.room<T>(m, n), v = t.room<T>(n, n);
      const auto s = t.room<R>(n);
      auto solver = t.device().solver();
      const bool transposed = name == "gesvd";
      using solver::Columns;
      if (name == "gesvd")
        t.call(solver.template gesvd<T>(Columns::some, Columns::some, at, s, u, v));
      if (name == "gesvdj") t.call(solver.template gesvdj<T>(Extent::economy, at, s, u, v));
      if (name == "gesvdp") t.call(solver.template gesvdp<T>(Extent::economy, at, s, u, v));
      t.demand(
          "A V - U S, or vectors that are not orthonormal",
          [&t, a, u, v, s, n, transposed] {
            const auto is = t.got(v);
            return error_of_svd<T>(a, t.got(u),
                                   transposed ? reference::op(is, Transpose::conjugate) : is,
                                   diagonal(t.got(s), 0, n));
          },
          reference::kMostOfSingularValues);
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

/// All of U by Jacobi's method, of at most 32 rows; the first columns by way of A^H A, which loses
/// half of the digits.
template <class T>
void add_eigenvalue_batches(Catalogue& catalogue) {
  using R = RealOf<T>;
  for (const bool jacobi : {false, true}) {
    catalogue.add<T>(jacobi ? "gesvdj_batched" : "gesvda_batched", [jacobi](Trial& t) {
      const auto n = std::min<std::int64_t>(t.length<T>(), 16), m = n + t.random.below(4),
                 batch = t.random.between(1, 3);
      const auto rank = jacobi ? n : t.random.between(1, n), wide = jacobi ? m : rank;
      auto all = t.dense<T>(m, n * batch, Data::fractions);
      for (std::int64_t j = 0; j < all.columns; ++j)
        all(j % n, j) = reference::widen(
            reference::to_number<T>(all(j % n, j) + static_cast<double>(2 * m + j % n * 2)));
      const auto at = t.put<T>(all, 0), u = t.room<T>(m, wide * batch),
                 v = t.room<T>(n, rank * batch);
      const auto s = t.room<R>(rank * batch);
      const auto info =
          t.put_values(std::vector<std::int32_t>(static_cast<std::size_t>(batch), -1));
      auto solver = t.device().solver();
      t.call(jacobi ? solver.template gesvdj_batched<T>(batch, at, s, u, v, info)
                    : solver.template gesvda_batched<T>(batch, rank, at, s, u, v, info));
      t.expect(info, std::vector<Wide>(static_cast<std::size_t>(batch), 0));
      t.demand(
          "A V - U S, or vectors that are not orthonormal",
          [&t, all, u, v, s, n, rank, wide, batch] {
            double most = 0;
            for (std::int64_t i = 0; i < batch; ++i) {
              most = std::max(most, error_of_svd<T>(columns_of(all, i * n, n),
                                                    columns_of(t.got(u), i * wide, rank),
                                                    columns_of(t.got(v), i * rank, rank),
                                                    diagonal(t.got(s), i * rank, rank)));
            }
            return most;
          },
          (jacobi ? 1 : 100) * reference::kMostOfSingularValues);
    });
  }
}

void add_calls_of_eigen(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_symmetric_eigenvalues<T>(catalogue);
    add_general_eigenvalues<T>(catalogue);
    add_singular_values<T>(catalogue);
    add_eigenvalue_batches<T>(catalogue);
  });
}

const Subject kEigen("solver", add_calls_of_eigen);

}  // namespace

}  // namespace troupe::catalogue
