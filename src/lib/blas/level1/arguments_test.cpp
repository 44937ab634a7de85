#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

TEST_F(BadArguments, OfTheRestOfBlasLevelOne) {
  using namespace blas;
  const auto z = put(std::vector<double>(16, 0.0)).operand();
  expect_refused(Asum{DType::f64, 16, -1, x, z});
  expect_refused(Asum{DType::f64, 17, 1, x, z});
  expect_refused(Asum{DType::f64, 16, 1, x, absent});
  expect_refused(Asum{DType::f16, 16, 1, x, z}, Errc::unsupported);
  expect_refused(Iamax{DType::f64, static_cast<Iamax::Which>(2), 0, 16, 1, x, z});
  expect_refused(Iamax{DType::f64, {}, 0, 16, 1, x, absent});
  expect_refused(Iamax{DType::f64, {}, 0, 16, 0, x, z});
  expect_refused(Scal{DType::c128, 9, 1, one, x, {}, 0});
  expect_refused(Scal{DType::f64, 4, 1, one, x, static_cast<ScalarKind>(2), 0});
  expect_refused(Scal{DType::f64, 4, -1, one, x, {}, 0});
  expect_refused(Dot{DType::f64, 4, 1, 1, x, x, z, static_cast<Conjugate>(2), 0});
  expect_refused(Dot{DType::f64, 4, INT64_MIN, 1, x, x, z, {}, 0});
  expect_refused(Swap{DType::f64, 16, 1, 1, x, x});
  expect_refused(Swap{DType::f64, 16, 1, -2, x, z});
  expect_refused(Swap{DType::f64, 16, 0, 1, x, z});
  expect_refused(Rot{DType::f64, static_cast<ScalarKind>(2), 0, 4, 1, 1, one, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 17, 1, 1, one, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 4, 1, 1, short_scalar, one, x, z});
  expect_refused(Rot{DType::f64, {}, 0, 4, 1, 1, one, one, x, x});
  expect_refused(Rotg{DType::f64, x, absent, z, z});
  expect_refused(Rotg{DType::f64, x, z, x, z});
  expect_refused(Rotm{DType::c64, 4, 1, 1, x, z, x}, Errc::unsupported);
  expect_refused(Rotm{DType::f64, 4, 1, 1, x, z, short_scalar.device});
  expect_refused(Rotmg{DType::f64, x, z, z, z, z});
  EXPECT_EQ(device().blas().dot(ref, VectorRef{ref, 8, 2}, ref.slice(0, 1)).wait().code(),
            Errc::invalid);
}

}  // namespace
}  // namespace troupe::test
