// QR factorisations, and systems that are solved by one call.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Lowest;

template <class T>
class SolverOrthogonal : public Typed<T> {};
TYPED_TEST_SUITE(SolverOrthogonal, Numbers);

/// ormqr or unmqr, orgqr or ungqr: each type has its own.
template <class T>
Future<void> multiply(Side side, Transpose transpose, const MatrixRef<GpuRef<T>>& a,
                      const GpuRef<T>& tau, const MatrixRef<GpuRef<T>>& c) {
  if constexpr (ComplexElement<T>) {
    return device().solver().unmqr(side, transpose, a, tau, c);
  } else {
    return device().solver().ormqr(side, transpose, a, tau, c);
  }
}

TYPED_TEST(SolverOrthogonal, TheTransposeOfARealQIsItsConjugate) {
  using T = TypeParam;
  const auto a = put_matrix<T>(random_matrix<T>(6, 6, 4, Data::fractions), 6);
  const auto tau = device().template alloc<T>(6);
  device().solver().geqrf(a, tau);
  const auto once = put_matrix<T>(identity(6), 6), again = put_matrix<T>(identity(6), 6);
  multiply(Side::left, Transpose::conjugate, a, tau, once);
  const auto transposed = multiply(Side::left, Transpose::yes, a, tau, again);
  if constexpr (ComplexElement<T>) {
    EXPECT_EQ(transposed.wait().code(), Errc::invalid);
    (void)device().take_error();
  } else {
    EXPECT_EQ(device().download(once.buffer), device().download(again.buffer));
  }
}

TYPED_TEST(SolverOrthogonal, ASingularSystemIsANumericFailure) {
  using T = TypeParam;
  auto a = identity(5);
  a(2, 2) = 0;
  const auto b = put_matrix<T>(random_matrix<T>(5, 2, 9, Data::fractions), 5);
  const auto x = put_matrix<T>(Dense{5, 2}, 5), y = put_matrix<T>(Dense{5, 2}, 5);
  const auto failed = device().solver().gesv(put_matrix<T>(a, 5), b, x);
  EXPECT_EQ(failed.wait().code(), Errc::numeric);
  EXPECT_FALSE(x.buffer.valid());
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
  const auto reported =
      device().solver().gesv(put_matrix<T>(a, 5), b, y, {.on_failure = OnFailure::report}).get();
  EXPECT_GT(reported.info, 0);
  EXPECT_TRUE(y.buffer.valid());
}

TEST_F(BadArguments, OfOrthogonalFactors) {
  const auto cell = device().submitter().result_cell(sizeof(solver::Refinement)).take();
  const auto second = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const Operand y = second.operand(), z = third.operand();
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const solver::Geqrf geqrf{DType::f64, 4, 4, 4, x, y};
  refuse(geqrf, [](auto& op) { op.m = -1; });
  refuse(geqrf, [](auto& op) { op.n = 5; });
  refuse(geqrf, [](auto& op) { op.lda = 3; });
  refuse(geqrf, [&](auto& op) { op.tau = absent; });
  refuse(geqrf, [&](auto& op) { op.tau = x; });
  refuse(geqrf, [&](auto& op) { op.a = unaligned; });
  const solver::Ormqr ormqr{DType::f64, Side::left, Transpose::no, 4, 4, 2, 4, 4, x, y, z};
  refuse(ormqr, [](auto& op) { op.side = static_cast<Side>(2); });
  refuse(ormqr, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refuse(ormqr, [](auto& op) { op.k = -1; });
  refuse(ormqr, [](auto& op) { op.k = 5; });
  refuse(ormqr, [](auto& op) { op.lda = 3; });
  refuse(ormqr, [](auto& op) { op.ldc = 5; });
  refuse(ormqr, [&](auto& op) { op.c = x; });
  refuse(ormqr, [&](auto& op) { op.tau.bytes = 8; });
  const solver::Orgqr orgqr{DType::f64, 4, 4, 2, 4, x, y};
  refuse(orgqr, [](auto& op) { op.k = 5; });
  refuse(orgqr, [](auto& op) { op.k = -1; });
  refuse(orgqr, [](auto& op) { op.m = 3; });
  refuse(orgqr, [&](auto& op) { op.tau = absent; });
  const solver::Gesv gesv{DType::f64, {}, {}, 4, 4, 4, 4, 4, x, y, z, cell.where};
  refuse(gesv, [](auto& op) { op.lowest = static_cast<Lowest>(5); });
  refuse(gesv, [](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
  refuse(gesv, [](auto& op) { op.nrhs = 5; });
  refuse(gesv, [](auto& op) { op.ldx = 3; });
  refuse(gesv, [&](auto& op) { op.x = y; });
  refuse(gesv, [&](auto& op) { op.told = i; });  // not pinned
  const solver::Gels gels{DType::f64, {}, {}, 4, 4, 4, 4, 4, 4, x, y, z, cell.where};
  refuse(gels, [](auto& op) { op.m = 3; });
  refuse(gels, [](auto& op) { op.n = -1; });
  refuse(gels, [](auto& op) { op.ldb = 3; });
  refuse(gels, [&](auto& op) { op.told = absent; });
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
