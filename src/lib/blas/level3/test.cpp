// Level 3 in all types, sides, halves and transpositions.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

template <class T>
class BlasLevel3Ops : public Typed<T> {};
TYPED_TEST_SUITE(BlasLevel3Ops, Numbers);

struct Extents {
  std::int64_t m, n, k;
};
constexpr Extents kExtents[] = {{1, 1, 1}, {5, 4, 3}, {4, 6, 0}, {34, 17, 40}};

template <FieldElement T>
::testing::AssertionResult holds(const MatrixRef<GpuRef<T>>& matrix, const Dense& expected,
                                 Data data, double terms) {
  return agree(device().download(matrix.buffer), spread(expected, matrix.leading), data, terms);
}
constexpr Side kSides[] = {Side::left, Side::right};

TYPED_TEST(BlasLevel3Ops, Gemm) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [m, n, k] : kExtents) {
    for (const auto ta : kTransposes) {
      for (const auto tb : kTransposes) {
        for (const auto data : kData) {
          SCOPED_TRACE(::testing::Message() << m << "x" << n << "x" << k << " "
                                            << static_cast<int>(ta) << static_cast<int>(tb));
          const auto a = ta == Transpose::no ? random_matrix<T>(m, k, 1, data)
                                             : random_matrix<T>(k, m, 1, data);
          const auto b = tb == Transpose::no ? random_matrix<T>(k, n, 2, data)
                                             : random_matrix<T>(n, k, 2, data);
          const auto c = random_matrix<T>(m, n, 3, data);
          const auto dc = put_matrix<T>(c, m + 2);
          device().blas().gemm(ta, tb, scalar(alpha, Place::device), put_matrix<T>(a, a.rows + 1),
                               put_matrix<T>(b, b.rows + 3), beta, dc);
          EXPECT_TRUE(holds(dc, widen(alpha) * (op(a, ta) * op(b, tb)) + widen(beta) * c, data,
                            8.0 * static_cast<double>(k + 1)));
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel3Ops, SymmetricAndHermitianFactors) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [m, n, k] : kExtents) {
    for (const auto side : kSides) {
      for (const auto uplo : kUplos) {
        for (const auto symmetry : {Symmetry::symmetric, Symmetry::hermitian}) {
          for (const auto data : kData) {
            if (symmetry == Symmetry::hermitian && !ComplexElement<T>) continue;
            const auto order = side == Side::left ? m : n;
            const Stored half{Storage::full, uplo, order, 0, order + 2};
            const auto a = symmetric_matrix<T>(half, symmetry, 4, data);
            const auto b = random_matrix<T>(m, n, 5, data), c = random_matrix<T>(m, n, 6, data);
            const MatrixRef da(put_numbers<T>(half.spread(a)), order, order, order + 2);
            const auto db = put_matrix<T>(b, m), dc = put_matrix<T>(c, m + 1);
            if constexpr (ComplexElement<T>) {
              (void)(symmetry == Symmetry::hermitian
                         ? device().blas().hemm(side, uplo, alpha, da, db, beta, dc)
                         : device().blas().symm(side, uplo, alpha, da, db, beta, dc));
            } else {
              device().blas().symm(side, uplo, alpha, da, db, beta, dc);
            }
            const auto product = side == Side::left ? a * b : b * a;
            EXPECT_TRUE(holds(dc, widen(alpha) * product + widen(beta) * c, data,
                              8.0 * static_cast<double>(order)));
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel3Ops, RankKUpdatesWriteOneHalf) {
  using T = TypeParam;
  using R = RealOf<T>;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [m, n, k] : kExtents) {
    for (const auto uplo : kUplos) {
      for (const bool transposed : {false, true}) {
        for (const auto symmetry : {Symmetry::symmetric, Symmetry::hermitian}) {
          for (const auto data : kData) {
            const bool hermitian = symmetry == Symmetry::hermitian;
            if (hermitian && !ComplexElement<T>) continue;
            SCOPED_TRACE(::testing::Message() << n << "x" << k << " hermitian " << hermitian);
            const Stored half{Storage::full, uplo, n, 0, n + 1};
            const auto mirror = hermitian ? Transpose::conjugate : Transpose::yes;
            const auto transpose = transposed ? mirror : Transpose::no;
            const auto a =
                transposed ? random_matrix<T>(k, n, 7, data) : random_matrix<T>(n, k, 7, data);
            const auto b =
                transposed ? random_matrix<T>(k, n, 8, data) : random_matrix<T>(n, k, 8, data);
            const auto c = symmetric_matrix<T>(half, symmetry, 9, data);
            const auto da = put_matrix<T>(a, a.rows + 1), db = put_matrix<T>(b, b.rows + 2);
            const auto fresh = [&] {
              return MatrixRef(put_numbers<T>(half.spread(c)), n, n, n + 1);
            };
            const auto one = fresh(), both = fresh(), product = fresh();
            const auto x = op(a, transpose), y = op(b, transpose);
            auto blas = device().blas();
            // What syrkx computes need not be symmetric: a half of it is written all the same. A
            // Hermitian one has a real diagonal, so that its scalars are equal.
            const Wide wide_alpha = widen(alpha), real = wide_alpha.real();
            const Wide scale = hermitian ? widen(beta).real() : widen(beta);
            if constexpr (ComplexElement<T>) {
              if (hermitian) {
                blas.herk(uplo, transpose, R(2), da, scalar(R(-1), Place::device), one);
                blas.her2k(uplo, transpose, alpha, da, db, R(-1), both);
                blas.herkx(uplo, transpose, T(2), da, da, R(-1), product);
              }
            }
            if (!hermitian) {
              blas.syrk(uplo, transpose, alpha, da, scalar(beta, Place::device), one);
              blas.syr2k(uplo, transpose, alpha, da, db, beta, both);
              blas.syrkx(uplo, transpose, alpha, da, db, beta, product);
            }
            const auto terms = 16.0 * static_cast<double>(k + 1);
            const auto is = [&](const auto& result, const Dense& expected) {
              return agree(device().download(result.buffer), half.spread(expected + scale * c),
                           data, terms);
            };
            EXPECT_TRUE(is(one, (hermitian ? real : wide_alpha) * (x * op(x, mirror))));
            EXPECT_TRUE(is(
                both, wide_alpha * (x * op(y, mirror)) +
                          (hermitian ? std::conj(wide_alpha) : wide_alpha) * (y * op(x, mirror))));
            EXPECT_TRUE(is(product, hermitian ? real * (x * op(x, mirror))
                                              : wide_alpha * (x * op(y, mirror))));
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel3Ops, TriangularFactors) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1);
  for (const auto& [m, n, k] : kExtents) {
    for (const auto side : kSides) {
      for (const auto uplo : kUplos) {
        for (const auto transpose : kTransposes) {
          for (const auto diagonal : {Diagonal::stored, Diagonal::unit}) {
            for (const auto data : kData) {
              const auto order = side == Side::left ? m : n;
              if (data == Data::integers && order > 6) continue;  // solutions grow with it
              SCOPED_TRACE(::testing::Message()
                           << m << "x" << n << " side " << static_cast<int>(side) << " uplo "
                           << static_cast<int>(uplo) << " transposed "
                           << static_cast<int>(transpose) << " unit "
                           << static_cast<int>(diagonal));
              const Stored half{Storage::full, uplo, order, 0, order + 1};
              const auto a = triangular_matrix<T>(half, diagonal, 10, data);
              const auto b = random_matrix<T>(m, n, 11, data), c = random_matrix<T>(m, n, 12, data);
              const MatrixRef da(put_numbers<T>(half.spread(a, diagonal)), order, order, order + 1);
              const auto db = put_matrix<T>(b, m + 1), dc = put_matrix<T>(c, m + 2);
              auto blas = device().blas();
              blas.trmm(side, uplo, transpose, diagonal, scalar(alpha, Place::device), da, db, dc);
              const auto x = op(a, transpose);
              const auto product = side == Side::left ? x * b : b * x;
              const auto terms = 8.0 * static_cast<double>(order);
              EXPECT_TRUE(holds(dc, widen(alpha) * product, data, terms));
              EXPECT_TRUE(holds(db, b, data, 0));
              // In place, and back.
              blas.trmm(side, uplo, transpose, diagonal, T(1), da, db, db);
              EXPECT_TRUE(holds(db, product, data, terms));
              blas.trsm(side, uplo, transpose, diagonal, alpha, da, db);
              EXPECT_TRUE(holds(db, widen(alpha) * b, data, 4 * terms));
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasLevel3Ops, SumsScaledColumnsAndPackedMatrices) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  for (const auto& [m, n, k] : kExtents) {
    for (const auto data : kData) {
      auto blas = device().blas();
      for (const auto ta : kTransposes) {
        for (const auto tb : kTransposes) {
          SCOPED_TRACE(::testing::Message()
                       << m << "x" << n << " " << static_cast<int>(ta) << static_cast<int>(tb));
          const auto a = ta == Transpose::no ? random_matrix<T>(m, n, 13, data)
                                             : random_matrix<T>(n, m, 13, data);
          const auto b = tb == Transpose::no ? random_matrix<T>(m, n, 14, data)
                                             : random_matrix<T>(n, m, 14, data);
          const auto da = put_matrix<T>(a, a.rows + 1), db = put_matrix<T>(b, b.rows),
                     dc = put_matrix<T>(random_matrix<T>(m, n, 15, data), m + 2);
          blas.geam(ta, tb, alpha, da, scalar(beta, Place::device), db, dc);
          const auto sum = widen(alpha) * op(a, ta) + widen(beta) * op(b, tb);
          EXPECT_TRUE(holds(dc, sum, data, 4));
          if (ta == Transpose::no) {
            blas.geam(ta, tb, alpha, da, beta, db, da);
            EXPECT_TRUE(holds(da, sum, data, 4));
          }
        }
      }
      for (const auto side : kSides) {
        const auto a = random_matrix<T>(m, n, 16, data);
        const auto x = numbers<T>(side == Side::left ? m : n, 17, data);
        Dense diagonal{std::ssize(x), std::ssize(x)};
        for (std::int64_t i = 0; i < std::ssize(x); ++i)
          diagonal(i, i) = x[static_cast<std::size_t>(i)];
        const auto da = put_matrix<T>(a, m + 1), dc = put_matrix<T>(a, m);
        const auto product = side == Side::left ? diagonal * a : a * diagonal;
        blas.dgmm(side, da, put_vector<T>(x, -2), dc);
        EXPECT_TRUE(holds(dc, product, data, 2));
        blas.dgmm(side, da, put_vector<T>(x, 1), da);
        EXPECT_TRUE(holds(da, product, data, 2));
      }
      for (const auto uplo : kUplos) {
        const Stored half{Storage::full, uplo, n, 0, n + 1}, packed{Storage::packed, uplo, n, 0, 0};
        const auto a = random_matrix<T>(n, n, 18, data), b = random_matrix<T>(n, n, 19, data);
        const auto da = put_matrix<T>(a, n + 1);
        const auto dp = put(std::vector<T>(static_cast<std::size_t>(packed.size())));
        blas.trttp(uplo, da, dp);
        EXPECT_TRUE(agree(device().download(dp), packed.spread(a), data, 0));
        const auto db = put_matrix<T>(b, n + 1);
        blas.tpttr(uplo, dp, db);
        auto expected = spread(b, n + 1);
        half.store(a, expected);
        EXPECT_TRUE(agree(device().download(db.buffer), expected, data, 0));
      }
    }
  }
}

TYPED_TEST(BlasLevel3Ops, BetaZeroIgnoresWhatWasThereOnLevelThree) {
  using T = TypeParam;
  const T nan = T(std::numeric_limits<RealOf<T>>::quiet_NaN());
  const MatrixRef two(put(std::vector<T>{T(2)}), 1, 1);
  const auto fresh = [&] { return MatrixRef(put(std::vector<T>{nan}), 1, 1); };
  const auto a = fresh(), b = fresh(), c = fresh();
  auto blas = device().blas();
  blas.symm(Side::left, Uplo::lower, T(1), two, two, T(0), a);
  blas.syrk(Uplo::lower, Transpose::no, T(1), two, T(0), b);
  blas.syrkx(Uplo::upper, Transpose::no, T(3), two, two, T(0), c);
  EXPECT_EQ(device().download(a.buffer)[0], T(4));
  EXPECT_EQ(device().download(b.buffer)[0], T(4));
  EXPECT_EQ(device().download(c.buffer)[0], T(12));
}

template <class T>
class BlasLevel3Narrow : public Typed<T> {};
using NarrowTypes3 = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BlasLevel3Narrow, NarrowTypes3);

TYPED_TEST(BlasLevel3Narrow, ProductsOfIntegersAreExact) {
  using T = TypeParam;
  const auto m = 9, n = 6, k = 5;
  const auto a = random_matrix<float>(m, k, 1, Data::integers),
             b = random_matrix<float>(n, k, 2, Data::integers),
             c = random_matrix<float>(m, n, 3, Data::integers);
  const MatrixRef da(put_any<T>(a.element), m, k), db(put_any<T>(spread(b, n + 1)), n, k, n + 1),
      dc(put_any<T>(spread(c, m + 1)), m, n, m + 1);
  device().blas().gemm(Transpose::no, Transpose::yes, 2.0f, da, db, -1.0f, dc);
  const auto expected = 2.0 * (a * op(b, Transpose::yes)) + Wide(-1) * c;
  EXPECT_EQ(got(dc.buffer), spread(expected, m + 1));
}

TEST_F(BadArguments, OfTheRestOfBlasLevelThree) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  const auto y = y_ref.operand();
  const auto refused = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  Symm symm;
  symm.dtype = DType::f64, symm.m = symm.n = symm.lda = symm.ldb = symm.ldc = 4;
  symm.alpha = one, symm.a = symm.b = x, symm.c = y;
  refused(symm, [](auto& op) { op.side = static_cast<Side>(2); });
  refused(symm, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
  refused(symm, [](auto& op) { op.symmetry = Symmetry::hermitian; });
  refused(symm, [](auto& op) { op.n = 5; });
  refused(symm, [](auto& op) { op.lda = 3; });
  refused(symm, [&](auto& op) { op.c = x; });
  Syrk syrk;
  syrk.dtype = DType::f64, syrk.n = syrk.k = syrk.lda = syrk.ldc = 4;
  syrk.alpha = one, syrk.a = x, syrk.c = y;
  refused(syrk, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refused(syrk, [](auto& op) { op.k = -1; });
  refused(syrk, [](auto& op) { op.k = 5; });
  refused(syrk, [](auto& op) { op.symmetry = Symmetry::hermitian; });
  refused(syrk, [&](auto& op) { op.beta = short_scalar; });
  refused(
      syrk, [](auto& op) { op.dtype = DType::bf16; }, Errc::unsupported);
  refused(syrk, [](auto& op) {
    op.dtype = DType::c128, op.n = op.k = op.lda = op.ldc = 2;
    op.transpose = Transpose::conjugate;  // which is herk's
  });
  Syr2k syr2k;
  syr2k.dtype = DType::f64, syr2k.n = syr2k.k = syr2k.lda = syr2k.ldb = syr2k.ldc = 4;
  syr2k.alpha = one, syr2k.a = syr2k.b = x, syr2k.c = y;
  refused(syr2k, [](auto& op) { op.products = static_cast<Syr2k::Products>(2); });
  refused(syr2k, [](auto& op) { op.ldb = 3; });
  refused(syr2k, [](auto& op) { op.ldc = 5; });
  refused(syr2k, [&](auto& op) { op.b = absent; });
  Trmm trmm;
  trmm.dtype = DType::f64, trmm.m = trmm.n = trmm.lda = trmm.ldb = trmm.ldc = 4;
  trmm.alpha = one, trmm.a = trmm.b = x, trmm.c = y;
  refused(trmm, [](auto& op) { op.diagonal = static_cast<Diagonal>(2); });
  refused(trmm, [](auto& op) { op.m = 5; });
  refused(trmm, [&](auto& op) { op.c = x; });
  refused(trmm, [&](auto& op) { op.b = y, op.m = op.n = op.lda = 2, op.ldb = 3; });
  Trsm trsm;
  trsm.dtype = DType::f64, trsm.m = trsm.n = trsm.lda = trsm.ldb = 4;
  trsm.alpha = one, trsm.a = x, trsm.b = y;
  refused(trsm, [](auto& op) { op.side = static_cast<Side>(2); });
  refused(trsm, [](auto& op) { op.ldb = 5; });
  refused(trsm, [&](auto& op) { op.b = x; });
  Geam geam;
  geam.dtype = DType::f64, geam.m = geam.n = geam.lda = geam.ldb = geam.ldc = 4;
  geam.alpha = geam.beta = one, geam.a = geam.b = x, geam.c = y;
  refused(geam, [](auto& op) { op.transpose_b = static_cast<Transpose>(3); });
  refused(geam, [&](auto& op) { op.a = y, op.transpose_a = Transpose::yes; });
  refused(geam, [](auto& op) { op.ldc = 3; });
  const Dgmm dgmm{DType::f64, {}, 0, 4, 4, 4, 1, 4, x, x, y};
  refused(dgmm, [](auto& op) { op.side = static_cast<Side>(2); });
  refused(dgmm, [](auto& op) { op.incx = 0; });
  refused(dgmm, [](auto& op) { op.incx = 6; });
  refused(dgmm, [&](auto& op) { op.x = y; });
  const Tpttr tpttr{DType::f64, {}, 0, 4, 4, x, y};
  refused(tpttr, [](auto& op) { op.n = 5; });
  refused(tpttr, [](auto& op) { op.lda = 3; });
  const Trttp trttp{DType::f64, {}, 0, 4, 4, x, y};
  refused(trttp, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
  refused(trttp, [&](auto& op) { op.packed = absent; });

  auto blas = device().blas();
  const MatrixRef a(ref, 4, 4), b(ref, 4, 3), c(y_ref, 4, 4);
  const auto code = [](const Future<void>& future) { return future.wait().code(); };
  EXPECT_EQ(code(blas.gemm(Transpose::no, Transpose::no, 1.0, a, b, 0.0, c)), Errc::invalid);
  EXPECT_EQ(code(blas.gemm(Transpose::no, Transpose::yes, 1.0, a, b, 0.0, c)), Errc::invalid);
  EXPECT_EQ(code(blas.symm(Side::left, Uplo::lower, 1.0, b, a, 0.0, c)), Errc::invalid);
  EXPECT_EQ(code(blas.trsm(Side::right, Uplo::lower, Transpose::no, Diagonal::unit, 1.0, a,
                           MatrixRef(y_ref, 4, 3))),
            Errc::invalid);
  EXPECT_EQ(code(blas.syrk(Uplo::lower, Transpose::yes, 1.0, b, 0.0, c)), Errc::invalid);
  EXPECT_EQ(code(blas.geam(Transpose::yes, Transpose::no, 1.0, b, 1.0, a, c)), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
