#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

TEST_F(BadArguments, OfTheRestOfBlasLevelTwo) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  const auto y = y_ref.operand();
  const auto good_band = Gbmv{DType::f64, {}, 0, 4, 4, 1, 1, 4, 1, 1, one, one, x, x, y};
  const auto refused = [](auto op, auto change, Errc code = Errc::invalid) {
    change(op);
    expect_refused(op, code);
  };
  refused(good_band, [](auto& op) { op.kl = -1; });
  refused(good_band, [](auto& op) { op.ku = 3; });
  refused(good_band, [](auto& op) { op.ku = std::int64_t{1} << 62; });
  refused(good_band, [](auto& op) { op.n = 5; });
  refused(good_band, [](auto& op) { op.m = -1; });
  refused(good_band, [](auto& op) { op.incx = 0; });
  refused(good_band, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refused(good_band, [&](auto& op) { op.a = absent; });

  Symv symv;
  symv.dtype = DType::f64, symv.n = 4, symv.k = 1, symv.lda = 4;
  symv.alpha = one, symv.a = symv.x = x, symv.y = y;
  refused(symv, [](auto& op) { op.symmetry = Symmetry::hermitian; });
  refused(symv, [](auto& op) { op.symmetry = static_cast<Symmetry>(2); });
  refused(symv, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
  refused(symv, [](auto& op) { op.storage = static_cast<Storage>(3); });
  refused(symv, [](auto& op) { op.lda = 3; });
  refused(symv, [](auto& op) { op.n = op.lda = 5; });
  refused(symv, [](auto& op) { op.storage = Storage::packed, op.n = 6; });
  refused(symv, [](auto& op) { op.storage = Storage::packed, op.n = std::int64_t{1} << 40; });
  refused(symv, [](auto& op) { op.storage = Storage::banded, op.k = 4; });
  refused(symv, [](auto& op) { op.storage = Storage::banded, op.k = -1; });
  refused(symv, [](auto& op) { op.storage = Storage::packed, op.dtype = DType::c128, op.n = 2; });
  refused(symv, [&](auto& op) { op.y = x; });
  refused(
      symv, [](auto& op) { op.dtype = DType::f16; }, Errc::unsupported);

  const Ger ger{DType::f64, {}, 0, 4, 4, 4, 1, 1, one, x, x, y};
  refused(ger, [](auto& op) { op.conjugate = static_cast<Conjugate>(2); });
  refused(ger, [](auto& op) { op.n = 5; });
  refused(ger, [](auto& op) { op.incy = 6; });
  refused(ger, [&](auto& op) { op.alpha = short_scalar; });
  refused(ger, [&](auto& op) { op.a = x; });

  Syr syr;
  syr.dtype = DType::f64, syr.n = syr.lda = 4, syr.alpha = one, syr.x = x, syr.a = y;
  refused(syr, [](auto& op) { op.storage = Storage::banded; });
  refused(syr, [](auto& op) { op.symmetry = Symmetry::hermitian; });
  refused(syr, [](auto& op) { op.lda = 3; });
  refused(syr, [&](auto& op) { op.alpha = short_scalar; });
  Syr2 syr2;
  syr2.dtype = DType::f64, syr2.n = syr2.lda = 4, syr2.alpha = one;
  syr2.x = syr2.y = x, syr2.a = y;
  refused(syr2, [](auto& op) { op.storage = Storage::banded; });
  refused(syr2, [](auto& op) { op.incy = 0; });
  refused(syr2, [&](auto& op) { op.y = absent; });

  Trmv trmv;
  trmv.dtype = DType::f64, trmv.n = trmv.lda = 4, trmv.a = x, trmv.x = y;
  refused(trmv, [](auto& op) { op.task = static_cast<Trmv::Task>(2); });
  refused(trmv, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
  refused(trmv, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refused(trmv, [](auto& op) { op.diagonal = static_cast<Diagonal>(2); });
  refused(trmv, [](auto& op) { op.n = op.lda = 5; });
  refused(trmv, [](auto& op) { op.incx = 0; });
  refused(trmv, [&](auto& op) { op.x = x; });

  const MatrixRef a(ref, 4, 4);
  auto blas = device().blas();
  const auto four = y_ref.slice(0, 4), five = y_ref.slice(0, 5);
  EXPECT_EQ(blas.gemv(Transpose::no, 1.0, a, four, 0.0, five).wait().code(), Errc::invalid);
  EXPECT_EQ(blas.symv(Uplo::lower, 1.0, MatrixRef(ref, 3, 4, 4), four, 0.0, four).wait().code(),
            Errc::invalid);
  EXPECT_EQ(blas.trmv(Uplo::lower, Transpose::no, Diagonal::unit, a, five).wait().code(),
            Errc::invalid);
  EXPECT_EQ(
      blas.tpmv(Uplo::lower, Transpose::no, Diagonal::unit, ref.slice(0, 9), four).wait().code(),
      Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
