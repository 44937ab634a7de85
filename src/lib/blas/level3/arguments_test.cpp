#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

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
