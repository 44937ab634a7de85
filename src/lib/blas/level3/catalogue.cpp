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

template <class T>
void add_gemm(Catalogue& catalogue) {
  catalogue.add<T>("gemm", [](Trial& t) {
    using F = ScalarTypeOf<T>;
    const auto m = t.extent(), n = t.extent(), k = t.extent();
    const auto ta = t.transpose(), tb = t.transpose();
    const auto a = ta == Transpose::no ? t.dense<T>(m, k) : t.dense<T>(k, m);
    const auto b = tb == Transpose::no ? t.dense<T>(k, n) : t.dense<T>(n, k);
    const auto c = t.dense<T>(m, n);
    const auto alpha = t.scalar<F>(), beta = t.scalar<F>();
    const auto to = t.put<T>(c, t.random.below(3));
    t.call(t.device().blas().gemm(ta, tb, reference::to_number<F>(alpha),
                                  t.put<T>(a, t.random.below(3)), t.put<T>(b, t.random.below(3)),
                                  reference::to_number<F>(beta), to));
    t.expect(to, alpha * (reference::op(a, ta) * reference::op(b, tb)) + beta * c);
  });
}

template <class T>
void add_symmetric(Catalogue& catalogue) {
  using R = RealOf<T>;
  catalogue.add<T>("symm", [](Trial& t) {
    const auto m = t.extent(), n = t.extent();
    const auto side = t.side();
    const bool left = side == blas::Side::left, hermitian = ComplexElement<T> && t.flip();
    const auto half = draw_full_half(t, left ? m : n);
    const auto a =
        reference::symmetric_matrix<T>(half, hermitian ? Symmetry::hermitian : Symmetry::symmetric,
                                       t.random.next(), Data::integers);
    const auto b = t.dense<T>(m, n), c = t.dense<T>(m, n);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const MatrixRef matrix(t.put<T>(half.spread(a)), half.n, half.n, half.leading);
    const auto from = t.put<T>(b, t.random.below(3)), to = t.put<T>(c, t.random.below(3));
    const auto f = reference::to_number<T>(alpha), g = reference::to_number<T>(beta);
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
      const auto n = t.extent(), k = t.extent();
      const auto half = draw_full_half(t, n);
      const auto conjugate = hermitian ? Transpose::conjugate : Transpose::yes;
      const auto transpose = t.flip() ? Transpose::no : conjugate;
      const bool plain = transpose == Transpose::no;
      const auto a = plain ? t.dense<T>(n, k) : t.dense<T>(k, n);
      const auto b = !two ? a : plain ? t.dense<T>(n, k) : t.dense<T>(k, n);
      auto c = t.dense<T>(n, n);
      for (std::int64_t i = 0; i < n && hermitian; ++i) c(i, i) = c(i, i).real();
      const auto alpha = hermitian && !two ? Wide(t.scalar<float>()) : t.scalar<T>();
      const auto beta = hermitian ? Wide(t.scalar<float>()) : t.scalar<T>();
      const auto to = t.put<T>(c, half.leading - n);
      const auto of_a = t.put<T>(a, t.random.below(3)), of_b = t.put<T>(b, t.random.below(3));
      const auto f = reference::to_number<T>(alpha), g = reference::to_number<T>(beta);
      auto blas = t.device().blas();
      if constexpr (ComplexElement<T>) {
        const auto real_f = static_cast<R>(alpha.real()), real_g = static_cast<R>(beta.real());
        if (two)
          t.call(hermitian ? blas.her2k(half.uplo, transpose, f, of_a, of_b, real_g, to)
                           : blas.syr2k(half.uplo, transpose, f, of_a, of_b, g, to));
        else
          t.call(hermitian ? blas.herk(half.uplo, transpose, real_f, of_a, real_g, to)
                           : blas.syrk(half.uplo, transpose, f, of_a, g, to));
      } else {
        t.call(two ? blas.syr2k(half.uplo, transpose, f, of_a, of_b, g, to)
                   : blas.syrk(half.uplo, transpose, f, of_a, g, to));
      }
      const auto x = reference::op(a, transpose), y = reference::op(b, transpose);
      auto sum = alpha * (x * reference::op(y, conjugate)) + beta * c;
      if (two)
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
    const auto m = t.extent(), n = t.extent();
    const auto side = t.side();
    const bool left = side == blas::Side::left, solves = t.flip();
    const auto half = draw_full_half(t, left ? m : n);
    const auto transpose = t.transpose();
    const auto diagonal = t.diagonal();
    const auto a = reference::triangular_matrix<T>(half, diagonal, t.random.next(), Data::integers);
    const auto of_a = reference::op(a, transpose);
    const auto x = t.dense<T>(m, n);
    const auto alpha = t.scalar<T>();
    const auto product = left ? of_a * x : x * of_a;
    const MatrixRef matrix(t.put<T>(half.spread(a, diagonal)), half.n, half.n, half.leading);
    const auto f = reference::to_number<T>(alpha);
    const auto b = t.put<T>(solves ? product : x, t.random.below(3));
    if (solves) {
      t.call(t.device().blas().trsm(side, half.uplo, transpose, diagonal, f, matrix, b));
      return t.expect(b, alpha * x);
    }
    const auto c = t.put<T>(t.dense<T>(m, n), t.random.below(3));
    t.call(t.device().blas().trmm(side, half.uplo, transpose, diagonal, f, matrix, b, c));
    t.expect(c, alpha * product);
  });
}

template <class T>
void add_others(Catalogue& catalogue) {
  catalogue.add<T>("geam", [](Trial& t) {
    const auto m = t.extent(), n = t.extent();
    const auto ta = t.transpose(), tb = t.transpose();
    const auto a = ta == Transpose::no ? t.dense<T>(m, n) : t.dense<T>(n, m);
    const auto b = tb == Transpose::no ? t.dense<T>(m, n) : t.dense<T>(n, m);
    const auto alpha = t.scalar<T>(), beta = t.scalar<T>();
    const auto to = t.put<T>(t.dense<T>(m, n), t.random.below(3));
    t.call(t.device().blas().geam(ta, tb, reference::to_number<T>(alpha),
                                  t.put<T>(a, t.random.below(3)), reference::to_number<T>(beta),
                                  t.put<T>(b, t.random.below(3)), to));
    t.expect(to, alpha * reference::op(a, ta) + beta * reference::op(b, tb));
  });
  catalogue.add<T>("dgmm", [](Trial& t) {
    const auto m = t.extent(), n = t.extent();
    const auto side = t.side();
    const bool left = side == blas::Side::left;
    const auto a = t.dense<T>(m, n);
    const auto x = t.numbers<T>(left ? m : n);
    const auto to = t.put<T>(t.dense<T>(m, n), t.random.below(3));
    t.call(t.device().blas().dgmm(side, t.put<T>(a, t.random.below(3)),
                                  t.put<T>(x, std::abs(t.increment())), to));
    auto product = a;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < m; ++i)
        product(i, j) *= x[static_cast<std::size_t>(left ? i : j)];
    }
    t.expect(to, product);
  });
  catalogue.add<T>({"tpttr", "tpttr trttp"}, [](Trial& t) {
    const auto n = t.extent();
    const auto full = draw_full_half(t, n);
    const Stored packed{Storage::packed, full.uplo, n};
    const auto a = t.dense<T>(n, n);
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
