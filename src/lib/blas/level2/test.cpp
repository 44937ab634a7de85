// Level 2 in all types, storages and transpositions.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

template <class T>
class BlasLevel2Ops : public Typed<T> {};
TYPED_TEST_SUITE(BlasLevel2Ops, Numbers);

struct Steps2 {
  std::int64_t x, y;
};
constexpr Steps2 kSteps2[] = {{1, 1}, {2, -1}, {-3, 2}};

/// alpha op(A) x + beta y
std::vector<Wide> combined(Wide alpha, const Dense& a, const std::vector<Wide>& x, Wide beta,
                           const std::vector<Wide>& y) {
  return (alpha * (a * column(x)) + beta * column(y)).element;
}

/// The elements outside of the band become 0.
Dense only_band(Dense a, std::int64_t kl, std::int64_t ku) {
  for (std::int64_t j = 0; j < a.columns; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      if (i - j > kl || j - i > ku) a(i, j) = 0;
    }
  }
  return a;
}

TYPED_TEST(BlasLevel2Ops, GeneralMatrices) {
  using T = TypeParam;
  struct Shape {
    std::int64_t m, n, kl, ku;
  };
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [m, n, kl, ku] :
       {Shape{1, 1, 0, 0}, Shape{7, 5, 2, 1}, Shape{5, 9, 0, 3}, Shape{40, 33, 12, 7}}) {
    for (const auto transpose : kTransposes) {
      for (const auto steps : kSteps2) {
        for (const auto data : kData) {
          SCOPED_TRACE(::testing::Message()
                       << m << "x" << n << " transposed " << static_cast<int>(transpose)
                       << " steps " << steps.x << " " << steps.y);
          const bool plain = transpose == Transpose::no;
          const auto full = random_matrix<T>(m, n, 1, data);
          const auto x = numbers<T>(plain ? n : m, 2, data), y = numbers<T>(plain ? m : n, 3, data);
          const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
          const auto da = put_matrix<T>(full, m + 2);
          const auto terms = static_cast<double>(n + m);
          device().blas().gemv(transpose, scalar(alpha, Place::device), da, dx, beta, dy);
          const auto sum = combined(widen(alpha), op(full, transpose), x, widen(beta), y);
          EXPECT_TRUE(agree(device().download(dy.buffer), spread(sum, steps.y), data, 4 * terms));

          const auto band = only_band(full, kl, ku);
          std::vector<Wide> memory(static_cast<std::size_t>((kl + ku + 3) * n), kFiller<Wide>);
          for (std::int64_t j = 0; j < n; ++j) {
            for (auto i = std::max<std::int64_t>(0, j - ku); i < std::min(m, j + kl + 1); ++i)
              memory[static_cast<std::size_t>(j * (kl + ku + 3) + ku + i - j)] = band(i, j);
          }
          const auto dz = put_vector<T>(y, steps.y);
          device().blas().gbmv(transpose, m, kl, ku, alpha,
                               MatrixRef(put_numbers<T>(memory), kl + ku + 1, n, kl + ku + 3), dx,
                               scalar(beta, Place::device), dz);
          const auto banded = combined(widen(alpha), op(band, transpose), x, widen(beta), y);
          EXPECT_TRUE(
              agree(device().download(dz.buffer), spread(banded, steps.y), data, 4 * terms));
        }
      }
    }
  }
}

/// The storages of a matrix that has n rows.
std::vector<Stored> storages(std::int64_t n, Uplo uplo) {
  const auto k = std::min<std::int64_t>(n - 1, 3);
  return {{Storage::full, uplo, n, 0, n + 1},
          {Storage::banded, uplo, n, k, k + 3},
          {Storage::packed, uplo, n, 0, 0}};
}
/// Whether T has such matrices.
template <class T>
bool exists(const Stored& half, Symmetry symmetry) {
  if (!ComplexElement<T>) return symmetry == Symmetry::symmetric;
  return symmetry == Symmetry::hermitian || half.storage == Storage::full;
}

template <class T, class X>
void product(const Stored& half, Symmetry symmetry, T alpha, const GpuRef<T>& a, const X& x, T beta,
             const X& y) {
  auto blas = device().blas();
  const MatrixRef full(a, half.n, half.n, std::max<std::int64_t>(1, half.leading)),
      band(a, half.k + 1, half.n, half.leading);
  if constexpr (ComplexElement<T>) {
    if (symmetry == Symmetry::hermitian) {
      switch (half.storage) {
        case Storage::full: blas.hemv(half.uplo, alpha, full, x, beta, y); return;
        case Storage::banded: blas.hbmv(half.uplo, half.k, alpha, band, x, beta, y); return;
        case Storage::packed: blas.hpmv(half.uplo, alpha, a, x, beta, y); return;
      }
    }
  } else {
    if (half.storage == Storage::banded) {
      blas.sbmv(half.uplo, half.k, alpha, band, x, beta, y);
      return;
    }
    if (half.storage == Storage::packed) {
      blas.spmv(half.uplo, alpha, a, x, beta, y);
      return;
    }
  }
  blas.symv(half.uplo, alpha, full, x, beta, y);
}

TYPED_TEST(BlasLevel2Ops, SymmetricAndHermitianMatrices) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const std::int64_t n : {1, 6, 35}) {
    for (const auto uplo : kUplos) {
      for (const auto& half : storages(n, uplo)) {
        for (const auto symmetry : {Symmetry::symmetric, Symmetry::hermitian}) {
          for (const auto steps : kSteps2) {
            for (const auto data : kData) {
              if (!exists<T>(half, symmetry)) continue;
              SCOPED_TRACE(::testing::Message() << n << " uplo " << static_cast<int>(uplo)
                                                << " storage " << static_cast<int>(half.storage)
                                                << " symmetry " << static_cast<int>(symmetry));
              const auto a = symmetric_matrix<T>(half, symmetry, 4, data);
              const auto x = numbers<T>(n, 5, data), y = numbers<T>(n, 6, data);
              const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
              product<T>(half, symmetry, alpha, put_numbers<T>(half.spread(a)), dx, beta, dy);
              const auto sum = combined(widen(alpha), a, x, widen(beta), y);
              EXPECT_TRUE(agree(device().download(dy.buffer), spread(sum, steps.y), data,
                                8 * static_cast<double>(n)));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel2Ops, OuterProducts) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1);
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 4}, {33, 40}}) {
    for (const auto steps : kSteps2) {
      for (const auto data : kData) {
        for (const bool conjugated : {false, true}) {
          if (conjugated && !ComplexElement<T>) continue;
          SCOPED_TRACE(::testing::Message() << m << "x" << n);
          const auto x = numbers<T>(m, 7, data), y = numbers<T>(n, 8, data);
          const auto a = random_matrix<T>(m, n, 9, data);
          const auto da = put_matrix<T>(a, m + 3);
          const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
          if constexpr (ComplexElement<T>) {
            if (conjugated) {
              device().blas().gerc(scalar(alpha, Place::device), dx, dy, da);
            } else {
              device().blas().ger(scalar(alpha, Place::device), dx, dy, da);
            }
          } else {
            device().blas().ger(alpha, dx, dy, da);
          }
          const auto sum =
              widen(alpha) *
                  (column(x) * op(column(y), conjugated ? Transpose::conjugate : Transpose::yes)) +
              a;
          EXPECT_TRUE(agree(device().download(da.buffer), spread(sum, m + 3), data, 4));
        }
      }
    }
  }
}

template <class T, class X>
void rank_one(const Stored& half, Symmetry symmetry, T alpha, const X& x, const GpuRef<T>& a) {
  auto blas = device().blas();
  const bool full = half.storage == Storage::full;
  const MatrixRef matrix(a, half.n, half.n, std::max<std::int64_t>(1, half.leading));
  if constexpr (ComplexElement<T>) {
    if (symmetry == Symmetry::hermitian) {
      const auto wide_alpha = std::real(alpha);
      (void)(full ? blas.her(half.uplo, wide_alpha, x, matrix)
                  : blas.hpr(half.uplo, wide_alpha, x, a));
      return;
    }
  } else if (!full) {
    blas.spr(half.uplo, alpha, x, a);
    return;
  }
  blas.syr(half.uplo, alpha, x, matrix);
}
template <class T, class X>
void rank_two(const Stored& half, Symmetry symmetry, T alpha, const X& x, const X& y,
              const GpuRef<T>& a) {
  auto blas = device().blas();
  const bool full = half.storage == Storage::full;
  const MatrixRef matrix(a, half.n, half.n, std::max<std::int64_t>(1, half.leading));
  if constexpr (ComplexElement<T>) {
    if (symmetry == Symmetry::hermitian) {
      (void)(full ? blas.her2(half.uplo, alpha, x, y, matrix)
                  : blas.hpr2(half.uplo, alpha, x, y, a));
      return;
    }
  } else if (!full) {
    blas.spr2(half.uplo, alpha, x, y, a);
    return;
  }
  blas.syr2(half.uplo, alpha, x, y, matrix);
}

TYPED_TEST(BlasLevel2Ops, SymmetricAndHermitianUpdatesWriteOneHalf) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1);
  for (const std::int64_t n : {1, 6, 35}) {
    for (const auto uplo : kUplos) {
      for (const auto& half : storages(n, uplo)) {
        if (half.storage == Storage::banded) continue;
        for (const auto symmetry : {Symmetry::symmetric, Symmetry::hermitian}) {
          for (const auto steps : kSteps2) {
            for (const auto data : kData) {
              if (!exists<T>(half, symmetry)) continue;
              SCOPED_TRACE(::testing::Message() << n << " uplo " << static_cast<int>(uplo)
                                                << " storage " << static_cast<int>(half.storage)
                                                << " symmetry " << static_cast<int>(symmetry));
              const bool hermitian = symmetry == Symmetry::hermitian;
              const auto mirror = hermitian ? Transpose::conjugate : Transpose::yes;
              const auto a = symmetric_matrix<T>(half, symmetry, 10, data);
              const auto x = numbers<T>(n, 11, data), y = numbers<T>(n, 12, data);
              const auto dx = put_vector<T>(x, steps.x), dy = put_vector<T>(y, steps.y);
              const auto one = put_numbers<T>(half.spread(a)), two = put_numbers<T>(half.spread(a));
              rank_one<T>(half, symmetry, alpha, dx, one);
              const Wide wide_alpha = hermitian ? widen(alpha).real() : widen(alpha);
              EXPECT_TRUE(agree(device().download(one),
                                half.spread(wide_alpha * (column(x) * op(column(x), mirror)) + a),
                                data, 4));
              rank_two<T>(half, symmetry, alpha, dx, dy, two);
              const Wide other = hermitian ? std::conj(widen(alpha)) : widen(alpha);
              EXPECT_TRUE(agree(device().download(two),
                                half.spread(widen(alpha) * (column(x) * op(column(y), mirror)) +
                                            other * (column(y) * op(column(x), mirror)) + a),
                                data, 8));
            }
          }
        }
      }
    }
  }
}

template <class T, class X>
void triangular(const Stored& half, bool solve, Transpose transpose, Diagonal diagonal,
                const GpuRef<T>& a, const X& x) {
  auto blas = device().blas();
  const auto uplo = half.uplo;
  const MatrixRef full(a, half.n, half.n, std::max<std::int64_t>(1, half.leading)),
      band(a, half.k + 1, half.n, half.leading);
  switch (half.storage) {
    case Storage::full:
      (void)(solve ? blas.trsv(uplo, transpose, diagonal, full, x)
                   : blas.trmv(uplo, transpose, diagonal, full, x));
      break;
    case Storage::banded:
      (void)(solve ? blas.tbsv(uplo, transpose, diagonal, half.k, band, x)
                   : blas.tbmv(uplo, transpose, diagonal, half.k, band, x));
      break;
    case Storage::packed:
      (void)(solve ? blas.tpsv(uplo, transpose, diagonal, a, x)
                   : blas.tpmv(uplo, transpose, diagonal, a, x));
      break;
  }
}

TYPED_TEST(BlasLevel2Ops, TriangularMatrices) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 6, 35}) {
    for (const auto uplo : kUplos) {
      for (const auto& half : storages(n, uplo)) {
        for (const auto transpose : kTransposes) {
          for (const auto diagonal : {Diagonal::stored, Diagonal::unit}) {
            for (const auto data : kData) {
              // Solutions by integers grow with n.
              if (data == Data::integers && n > 6) continue;
              for (const std::int64_t step : {1, -2}) {
                SCOPED_TRACE(::testing::Message() << n << " uplo " << static_cast<int>(uplo)
                                                  << " storage " << static_cast<int>(half.storage)
                                                  << " transposed " << static_cast<int>(transpose)
                                                  << " unit " << static_cast<int>(diagonal));
                const auto a = triangular_matrix<T>(half, diagonal, 13, data);
                const auto x = numbers<T>(n, 14, data);
                const auto da = put_numbers<T>(half.spread(a, diagonal));
                const auto dx = put_vector<T>(x, step);
                triangular<T>(half, false, transpose, diagonal, da, dx);
                const auto product = (op(a, transpose) * column(x)).element;
                const auto terms = 4 * static_cast<double>(n);
                EXPECT_TRUE(
                    agree(device().download(dx.buffer), spread(product, step), data, terms));
                triangular<T>(half, true, transpose, diagonal, da, dx);
                EXPECT_TRUE(agree(device().download(dx.buffer), spread(x, step), data, 2 * terms));
              }
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel2Ops, BetaZeroIgnoresWhatWasThereInAllStorages) {
  using T = TypeParam;
  const T nan = T(std::numeric_limits<RealOf<T>>::quiet_NaN());
  for (const auto& half : storages(1, Uplo::lower)) {
    if (!exists<T>(half, ComplexElement<T> ? Symmetry::hermitian : Symmetry::symmetric)) continue;
    const auto a = put(std::vector<T>(static_cast<std::size_t>(half.size()), T(3)));
    const VectorRef x{put(std::vector<T>{T(5)}), 1, 1}, y{put(std::vector<T>{nan}), 1, 1};
    product<T>(half, ComplexElement<T> ? Symmetry::hermitian : Symmetry::symmetric, T(1), a, x,
               T(0), y);
    EXPECT_EQ(device().download(y.buffer)[0], T(15));
  }
}

}  // namespace
}  // namespace troupe::test::reference
