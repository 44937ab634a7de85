#include "catalogue/catalogue.hpp"

// Matrices: BLAS, level 3.

namespace troupe::catalogue {
namespace {

using blas::Storage;
using blas::Symmetry;
using blas::Transpose;
using reference::Stored;

Stored draw_full_half(Trial& t, std::int64_t n) {
  return {Storage::full, t.uplo(), n, 0, n + t.random.below(3)};
}

/// The matrix c; where beta is 0, the stored half may be NaN, because nobody may read it.
Dense weighed_half(Trial& t, const Dense& c, const Wide& beta, const Stored& half) {
  auto a = t.weighed(c, beta);
  for (std::int64_t j = 0; j < c.columns; ++j) {
    for (std::int64_t i = 0; i < c.rows; ++i)
      if (!half.has(i, j)) a(i, j) = c(i, j);
  }
  return a;
}

template <class T>
void add_gemm(Catalogue& catalogue) {
  catalogue.add<T>("gemm", [](Trial& t) {
    using F = ScalarTypeOf<T>;
    const auto m = t.length<T>(), n = t.length<T>(), k = t.length<T>();
    const auto ta = t.transpose(), tb = t.transpose();
    const auto a = ta == Transpose::no ? t.varied<T>(m, k) : t.varied<T>(k, m);
    const auto b = tb == Transpose::no ? t.varied<T>(k, n) : t.varied<T>(n, k);
    const auto c = t.varied<T>(m, n);
    const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
    const auto to = t.put<T>(t.weighed(c, beta), t.random.below(3));
    t.call(t.device().blas().gemm(ta, tb, t.factor<F>(alpha), t.put<T>(a, t.random.below(3)),
                                  t.put<T>(b, t.random.below(3)), t.factor<F>(beta), to));
    t.expect(to, alpha * (reference::op(a, ta) * reference::op(b, tb)) + beta * c);
  });
}

template <class T>
void add_symmetric(Catalogue& catalogue) {
  using R = RealOf<T>;
  catalogue.add<T>("symm", [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>();
    const auto side = t.side();
    const bool left = side == blas::Side::left, hermitian = ComplexElement<T> && t.flip();
    const auto half = draw_full_half(t, left ? m : n);
    const auto a = reference::symmetric_matrix<T>(
        half, hermitian ? Symmetry::hermitian : Symmetry::symmetric, t.random.next(), t.data<T>());
    const auto b = t.varied<T>(m, n), c = t.varied<T>(m, n);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const MatrixRef matrix(t.put<T>(half.spread(a)), half.n, half.n, half.leading);
    const auto from = t.put<T>(b, t.random.below(3)),
               to = t.put<T>(t.weighed(c, beta), t.random.below(3));
    const auto f = t.factor<T>(alpha), g = t.factor<T>(beta);
    auto blas = t.device().blas();
    if constexpr (ComplexElement<T>) {
      t.call(hermitian ? blas.hemm(side, half.uplo, f, matrix, from, g, to)
                       : blas.symm(side, half.uplo, f, matrix, from, g, to));
    } else {
      t.call(blas.symm(side, half.uplo, f, matrix, from, g, to));
    }
    t.expect(to, alpha * (left ? a * b : b * a) + beta * c);
  });
  for (const bool two : {false, true}) {
    catalogue.add<T>(two ? "syr2k" : "syrk", [two](Trial& t) {
      const bool hermitian = ComplexElement<T> && t.flip();
      // The first product alone: whoever calls it knows it to be symmetric or Hermitian.
      const bool one = two && t.flip();
      const auto n = t.length<T>(), k = t.length<T>();
      const auto half = draw_full_half(t, n);
      const auto conjugate = hermitian ? Transpose::conjugate : Transpose::yes;
      const auto transpose = t.flip() ? Transpose::no : conjugate;
      const bool plain = transpose == Transpose::no;
      const auto a = plain ? t.varied<T>(n, k) : t.varied<T>(k, n);
      const auto b = !two || one ? a : plain ? t.varied<T>(n, k) : t.varied<T>(k, n);
      auto c = t.varied<T>(n, n);
      for (std::int64_t i = 0; i < n && hermitian; ++i) c(i, i) = c(i, i).real();
      const auto alpha = hermitian && (!two || one) ? Wide(t.scalar<float>()) : t.scalar<T>();
      const auto beta = hermitian ? Wide(t.scalar<float>()) : t.scalar<T>();
      const auto to = t.put<T>(weighed_half(t, c, beta, half), half.leading - n);
      const auto of_a = t.put<T>(a, t.random.below(3)), of_b = t.put<T>(b, t.random.below(3));
      const auto f = t.factor<T>(alpha), g = t.factor<T>(beta);
      auto blas = t.device().blas();
      if constexpr (ComplexElement<T>) {
        const auto real_f = t.factor<R>(alpha.real()), real_g = t.factor<R>(beta.real());
        if (hermitian)
          t.call(one   ? blas.herkx(half.uplo, transpose, f, of_a, of_b, real_g, to)
                 : two ? blas.her2k(half.uplo, transpose, f, of_a, of_b, real_g, to)
                       : blas.herk(half.uplo, transpose, real_f, of_a, real_g, to));
      }
      if (!hermitian)
        t.call(one   ? blas.syrkx(half.uplo, transpose, f, of_a, of_b, g, to)
               : two ? blas.syr2k(half.uplo, transpose, f, of_a, of_b, g, to)
                     : blas.syrk(half.uplo, transpose, f, of_a, g, to));
      const auto x = reference::op(a, transpose), y = reference::op(b, transpose);
      auto sum = alpha * (x * reference::op(y, conjugate)) + beta * c;
      if (two && !one)
        sum = sum + (hermitian ? std::conj(alpha) : alpha) * (y * reference::op(x, conjugate));
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (!half.has(i, j)) sum(i, j) = c(i, j);
        }
      }
      t.expect(to, sum);
    });
  }
}

template <class T>
void add_triangular(Catalogue& catalogue) {
  catalogue.add<T>({"trmm", "trmm trsm"}, [](Trial& t) {
    const auto side = t.side();
    const bool left = side == blas::Side::left, solves = t.flip();
    const auto m = t.length<T>(solves && left), n = t.length<T>(solves && !left);
    const auto half = draw_full_half(t, left ? m : n);
    const auto transpose = t.transpose();
    const auto diagonal = t.diagonal();
    const auto a = reference::triangular_matrix<T>(half, diagonal, t.random.next(), t.data<T>());
    const auto of_a = reference::op(a, transpose);
    const auto x = t.varied<T>(m, n);
    const auto alpha = t.scalar<T>();
    const auto product = left ? of_a * x : x * of_a;
    const MatrixRef matrix(t.put<T>(half.spread(a, diagonal)), half.n, half.n, half.leading);
    const auto f = t.factor<T>(alpha);
    const auto b = t.put<T>(solves ? product : x, t.random.below(3));
    if (solves) {
      t.call(t.device().blas().trsm(side, half.uplo, transpose, diagonal, f, matrix, b));
      return t.expect(b, alpha * x);
    }
    const auto c = t.flip() ? b : t.put<T>(t.varied<T>(m, n), t.random.below(3));
    t.call(t.device().blas().trmm(side, half.uplo, transpose, diagonal, f, matrix, b, c));
    t.expect(c, alpha * product);
  });
}

template <class T>
void add_others(Catalogue& catalogue) {
  catalogue.add<T>("geam", [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>();
    const auto ta = t.transpose(), tb = t.transpose();
    const auto a = ta == Transpose::no ? t.varied<T>(m, n) : t.varied<T>(n, m);
    const auto b = tb == Transpose::no ? t.varied<T>(m, n) : t.varied<T>(n, m);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto of_a = t.put<T>(a, t.random.below(3));
    const auto to =
        ta == Transpose::no && t.flip() ? of_a : t.put<T>(t.varied<T>(m, n), t.random.below(3));
    t.call(t.device().blas().geam(ta, tb, t.factor<T>(alpha), of_a, t.factor<T>(beta),
                                  t.put<T>(b, t.random.below(3)), to));
    t.expect(to, alpha * reference::op(a, ta) + beta * reference::op(b, tb));
  });
  catalogue.add<T>("dgmm", [](Trial& t) {
    const auto m = t.length<T>(), n = t.length<T>();
    const auto side = t.side();
    const bool left = side == blas::Side::left;
    const auto a = t.varied<T>(m, n);
    const auto x = t.varied<T>(left ? m : n);
    const auto of_a = t.put<T>(a, t.random.below(3));
    const auto to = t.flip() ? of_a : t.put<T>(t.varied<T>(m, n), t.random.below(3));
    t.call(t.device().blas().dgmm(side, of_a, t.put<T>(x, t.increment()), to));
    auto product = a;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i)
        product(i, j) *= x[static_cast<std::size_t>(left ? i : j)];
    }
    t.expect(to, product);
  });
  catalogue.add<T>({"tpttr", "tpttr trttp"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto full = draw_full_half(t, n);
    const Stored packed{Storage::packed, full.uplo, n};
    const auto a = t.varied<T>(n, n);
    const bool unpacks = t.flip();
    auto from = (unpacks ? packed : full).spread(a);
    const auto& half = unpacks ? full : packed;
    auto memory = std::vector<Wide>(static_cast<std::size_t>(half.size()), 5);
    const auto source = t.put<T>(from), to = t.put<T>(memory);
    t.call(unpacks ? t.device().blas().tpttr(full.uplo, source, MatrixRef(to, n, n, full.leading))
                   : t.device().blas().trttp(full.uplo, MatrixRef(source, n, n, full.leading), to));
    half.store(a, memory);
    t.expect(to, memory);
  });
}

void add_calls_of_level3(Catalogue& catalogue) {
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      [&catalogue]<class T>(T) { add_gemm<T>(catalogue); });
  for_numbers([&catalogue]<class T>(T) {
    add_symmetric<T>(catalogue);
    add_triangular<T>(catalogue);
    add_others<T>(catalogue);
  });
}

const Subject kLevel3("blas", add_calls_of_level3);

}  // namespace

}  // namespace troupe::catalogue
