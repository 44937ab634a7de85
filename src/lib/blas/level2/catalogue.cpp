#include "catalogue/catalogue.hpp"

// Matrices and vectors: BLAS, level 2.

namespace troupe::catalogue {
namespace {

using blas::Storage;
using blas::Symmetry;
using reference::Stored;

/// A square matrix of which a half is stored, in whatever form.
template <class T>
Stored draw_half(Trial& t, bool inverted = false) {
  const auto n = t.length<T>(inverted), k = t.random.below(n), gap = t.random.below(3);
  const auto storage = t.random.of(std::array{Storage::full, Storage::banded, Storage::packed});
  return {storage, t.uplo(), n, storage == Storage::banded ? k : 0,
          (storage == Storage::banded ? k + 1 : n) + gap};
}
/// As the calls for full and for banded ones take it.
template <class T>
MatrixRef<GpuRef<T>> matrix_of(const Stored& half, const GpuRef<T>& memory) {
  return {memory, half.storage == Storage::banded ? half.k + 1 : half.n, half.n, half.leading};
}

template <class T>
void add_products(Catalogue& catalogue) {
  catalogue.add<T>("gemv", [](Trial& t) {
    const auto transpose = t.transpose();
    const auto a = t.varied<T>(t.length<T>(), t.length<T>());
    const auto of_a = reference::op(a, transpose);
    const auto x = t.varied<T>(of_a.columns), y = t.varied<T>(of_a.rows);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto to = t.put<T>(t.weighed(y, beta), t.increment());
    t.call(t.device().blas().gemv(transpose, t.factor<T>(alpha), t.put<T>(a, t.random.below(3)),
                                  t.put<T>(x, t.increment()), t.factor<T>(beta), to));
    t.expect(to, (alpha * (of_a * reference::column(x)) + beta * reference::column(y)).element);
  });
  catalogue.add<T>("gbmv", [](Trial& t) {
    const auto transpose = t.transpose();
    const auto m = t.length<T>(), n = t.length<T>(), below = t.random.below(m),
               above = t.random.below(n);
    auto a = t.varied<T>(m, n), band = t.varied<T>(below + above + 1, n);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i) {
        if (i - j > below || j - i > above)
          a(i, j) = 0;
        else
          band(above + i - j, j) = a(i, j);
      }
    }
    const auto of_a = reference::op(a, transpose);
    const auto x = t.varied<T>(of_a.columns), y = t.varied<T>(of_a.rows);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto to = t.put<T>(t.weighed(y, beta), t.increment());
    t.call(t.device().blas().gbmv(transpose, m, below, above, t.factor<T>(alpha),
                                  t.put<T>(band, t.random.below(3)), t.put<T>(x, t.increment()),
                                  t.factor<T>(beta), to));
    t.expect(to, (alpha * (of_a * reference::column(x)) + beta * reference::column(y)).element);
  });
  catalogue.add<T>("symv", [](Trial& t) {
    const auto half = draw_half<T>(t);
    // BLAS has banded and packed ones that are symmetric of reals, and Hermitian of complex ones.
    const bool hermitian = ComplexElement<T> && (half.storage != Storage::full || t.flip());
    const auto a = reference::symmetric_matrix<T>(
        half, hermitian ? Symmetry::hermitian : Symmetry::symmetric, t.random.next(), t.data<T>());
    const auto x = t.varied<T>(half.n), y = t.varied<T>(half.n);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto memory = t.put<T>(half.spread(a));
    const auto matrix = matrix_of(half, memory);
    const auto from = t.put<T>(x, t.increment()), to = t.put<T>(t.weighed(y, beta), t.increment());
    const auto f = t.factor<T>(alpha), g = t.factor<T>(beta);
    auto blas = t.device().blas();
    if constexpr (ComplexElement<T>) {
      t.call(half.storage == Storage::banded ? blas.hbmv(half.uplo, half.k, f, matrix, from, g, to)
             : half.storage == Storage::packed ? blas.hpmv(half.uplo, f, memory, from, g, to)
             : hermitian                       ? blas.hemv(half.uplo, f, matrix, from, g, to)
                                               : blas.symv(half.uplo, f, matrix, from, g, to));
    } else {
      t.call(half.storage == Storage::banded ? blas.sbmv(half.uplo, half.k, f, matrix, from, g, to)
             : half.storage == Storage::packed ? blas.spmv(half.uplo, f, memory, from, g, to)
                                               : blas.symv(half.uplo, f, matrix, from, g, to));
    }
    t.expect(to, (alpha * (a * reference::column(x)) + beta * reference::column(y)).element);
  });
}

/// A half that is updated: its memory, fillers and the other half included.
template <class T>
Dense drawn_for(Trial& t, std::int64_t n, bool hermitian) {
  auto a = t.varied<T>(n, n);
  for (std::int64_t i = 0; i < n && hermitian; ++i) a(i, i) = a(i, i).real();
  return a;
}

template <class T>
void add_updates(Catalogue& catalogue) {
  catalogue.add<T>("ger", [](Trial& t) {
    const auto x = t.varied<T>(t.length<T>()), y = t.varied<T>(t.length<T>());
    const auto a = t.varied<T>(std::ssize(x), std::ssize(y));
    const auto alpha = t.scalar<T>();
    const auto matrix = t.put<T>(a, t.random.below(3));
    const auto of_x = t.put<T>(x, t.increment()), of_y = t.put<T>(y, t.increment());
    const auto f = t.factor<T>(alpha);
    auto transpose = blas::Transpose::yes;
    if constexpr (ComplexElement<T>) {
      if (t.flip()) transpose = blas::Transpose::conjugate;
      t.call(transpose == blas::Transpose::conjugate
                 ? t.device().blas().gerc(f, of_x, of_y, matrix)
                 : t.device().blas().ger(f, of_x, of_y, matrix));
    } else {
      t.call(t.device().blas().ger(f, of_x, of_y, matrix));
    }
    t.expect(matrix,
             alpha * (reference::column(x) * reference::op(reference::column(y), transpose)) + a);
  });
  for (const bool two : {false, true}) {
    catalogue.add<T>(two ? "syr2" : "syr", [two](Trial& t) {
      const bool packed = t.flip(), hermitian = ComplexElement<T> && (packed || t.flip());
      const auto n = t.length<T>();
      const Stored half{packed ? Storage::packed : Storage::full, t.uplo(), n, 0,
                        n + t.random.below(3)};
      const auto a = drawn_for<T>(t, n, hermitian);
      const auto x = t.varied<T>(n), y = two ? t.varied<T>(n) : x;
      const auto alpha = hermitian && !two ? Wide(t.scalar<float>()) : t.scalar<T>();
      auto memory = half.spread(a);
      if (!packed) memory = reference::spread(a, half.leading);
      const auto buffer = t.put<T>(memory);
      const auto matrix = matrix_of(half, buffer);
      const auto of_x = t.put<T>(x, t.increment()), of_y = t.put<T>(y, t.increment());
      const auto f = t.factor<T>(alpha);
      auto blas = t.device().blas();
      if constexpr (ComplexElement<T>) {
        const auto real = t.factor<RealOf<T>>(alpha.real());
        if (two)
          t.call(packed      ? blas.hpr2(half.uplo, f, of_x, of_y, buffer)
                 : hermitian ? blas.her2(half.uplo, f, of_x, of_y, matrix)
                             : blas.syr2(half.uplo, f, of_x, of_y, matrix));
        else
          t.call(packed      ? blas.hpr(half.uplo, real, of_x, buffer)
                 : hermitian ? blas.her(half.uplo, real, of_x, matrix)
                             : blas.syr(half.uplo, f, of_x, matrix));
      } else if (two) {
        t.call(packed ? blas.spr2(half.uplo, f, of_x, of_y, buffer)
                      : blas.syr2(half.uplo, f, of_x, of_y, matrix));
      } else {
        t.call(packed ? blas.spr(half.uplo, f, of_x, buffer)
                      : blas.syr(half.uplo, f, of_x, matrix));
      }
      const auto transpose = hermitian ? blas::Transpose::conjugate : blas::Transpose::yes;
      const auto column_x = reference::column(x), column_y = reference::column(y);
      auto sum = a + alpha * (column_x * reference::op(column_y, transpose));
      if (two) {
        const auto other = hermitian ? std::conj(alpha) : alpha;
        sum = sum + other * (column_y * reference::op(column_x, transpose));
      }
      half.store(sum, memory);
      t.expect(buffer, memory);
    });
  }
}

template <class T>
void add_triangles(Catalogue& catalogue) {
  catalogue.add<T>("trmv", [](Trial& t) {
    const bool solves = t.flip();
    const auto half = draw_half<T>(t, solves);
    const auto transpose = t.transpose();
    const auto diagonal = t.diagonal();
    const auto a = reference::triangular_matrix<T>(half, diagonal, t.random.next(), t.data<T>());
    const auto x = t.varied<T>(half.n);
    const auto product = (reference::op(a, transpose) * reference::column(x)).element;
    const auto memory = t.put<T>(half.spread(a, diagonal));
    const auto matrix = matrix_of(half, memory);
    const auto at = t.put<T>(solves ? product : x, t.increment());
    auto blas = t.device().blas();
    const auto uplo = half.uplo;
    if (half.storage == Storage::banded)
      t.call(solves ? blas.tbsv(uplo, transpose, diagonal, half.k, matrix, at)
                    : blas.tbmv(uplo, transpose, diagonal, half.k, matrix, at));
    else if (half.storage == Storage::packed)
      t.call(solves ? blas.tpsv(uplo, transpose, diagonal, memory, at)
                    : blas.tpmv(uplo, transpose, diagonal, memory, at));
    else
      t.call(solves ? blas.trsv(uplo, transpose, diagonal, matrix, at)
                    : blas.trmv(uplo, transpose, diagonal, matrix, at));
    t.expect(at, solves ? x : product);
  });
}

void add_calls_of_level2(Catalogue& catalogue) {
  for_numbers([&catalogue]<class T>(T) {
    add_products<T>(catalogue);
    add_updates<T>(catalogue);
    add_triangles<T>(catalogue);
  });
}

const Subject kLevel2("blas", add_calls_of_level2);

}  // namespace

}  // namespace troupe::catalogue
