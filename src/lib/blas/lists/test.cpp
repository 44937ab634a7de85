// Operations on lists of matrices.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

template <class T>
class BlasListsOf : public Typed<T> {};
TYPED_TEST_SUITE(BlasListsOf, Numbers);

TYPED_TEST(BlasListsOf, ASingularMatrixIsTold) {
  using T = TypeParam;
  std::vector<MatrixRef<GpuRef<T>>> factors;
  for (const double second : {1.0, 0.0, 1.0}) {
    auto a = identity(4);
    a(2, 2) = second;
    factors.push_back(put_matrix<T>(a, 4));
  }
  const auto pivots = device().template alloc<std::int32_t>(12),
             info = device().template alloc<std::int32_t>(3);
  device().blas().getrf_batched(factors, pivots, info);
  const auto told = device().download(info);
  EXPECT_EQ(told[0], 0);
  EXPECT_GT(told[1], 0);
  EXPECT_EQ(told[2], 0);
}

template <class T>
class BlasListsNarrow : public Typed<T> {};
using NarrowLists = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BlasListsNarrow, NarrowLists);

TYPED_TEST(BlasListsNarrow, VectorsOfBothWidths) {
  using T = TypeParam;
  constexpr std::int64_t m = 8, n = 16, batch = 3;
  const auto a = numbers<float>(m * n * batch, 1, Data::integers),
             x = numbers<float>(n * batch, 2, Data::integers),
             y = numbers<float>(m * batch, 3, Data::integers);
  std::vector<Wide> sums;
  for (std::int64_t i = 0; i < batch; ++i) {
    const Dense one{m, n, {a.begin() + i * m * n, a.begin() + (i + 1) * m * n}};
    const auto sum = one * column({x.begin() + i * n, x.begin() + (i + 1) * n}) +
                     column({y.begin() + i * m, y.begin() + (i + 1) * m});
    sums.insert(sums.end(), sum.element.begin(), sum.element.end());
  }
  const auto da = put_any<T>(a), dx = put_any<T>(x);
  const auto narrow = put_any<T>(y);
  const auto wide = put_any<float>(y);
  const GemvOptions options{.m = m, .n = n};
  const BatchOptions strides{batch, m * n, n, m};
  device().blas().gemv_batched(da, dx, narrow, options, strides, 1.0f, 1.0f);
  device().blas().gemv_batched(da, dx, wide, options, strides, 1.0f, 1.0f);
  EXPECT_EQ(got(wide), sums);
  EXPECT_EQ(got(narrow), sums);
}

TEST_F(BadArguments, OfListsOfMatrices) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  const auto y = y_ref.operand();
  const auto refused = [](const auto& op, const Parts& parts, Errc code = Errc::invalid) {
    const auto future = detail::submit(device().submitter(), op, parts);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), code);
  };
  GemvBatched gemv;
  gemv.dtype = gemv.y_dtype = DType::f64, gemv.m = gemv.n = gemv.lda = 2, gemv.batch = 2;
  gemv.stride_a = 4, gemv.stride_x = gemv.stride_y = 2;
  gemv.alpha = one, gemv.a = gemv.x = x, gemv.y = y;
  const auto gemv_refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = gemv;
    change(op);
    expect_refused(op, code);
  };
  gemv_refused([](auto& op) { op.stride_y = 1; });
  gemv_refused([](auto& op) { op.stride_a = 14; });
  gemv_refused([](auto& op) { op.batch = -1; });
  gemv_refused([](auto& op) { op.incy = 0; });
  gemv_refused([](auto& op) { op.stride_y = std::int64_t{1} << 62; });
  gemv_refused([](auto& op) { op.y_dtype = DType::f32; }, Errc::unsupported);
  gemv_refused([&](auto& op) { op.y = x; });
  auto listed = gemv;
  listed.a = listed.x = listed.y = absent, listed.batch = 1;
  const TailOperand a{x, 0, Access::read}, v{x, 1, Access::read}, w{y, 2, Access::write};
  refused(listed, std::vector{a, v});
  refused(listed, std::vector{v, a, w});
  refused(listed, std::vector{a, v, {y, 2, Access::read}});
  refused(gemv, std::vector{a, v, w});

  const TailOperand updated{y, 1, Access::update};
  TrsmBatched trsm;
  trsm.dtype = DType::f64, trsm.m = trsm.n = trsm.lda = trsm.ldb = 2, trsm.batch = 1;
  trsm.alpha = one;
  refused(trsm, std::vector{a});
  refused(trsm, std::vector{a, {y, 1, Access::write}});
  auto large = trsm;
  large.m = large.lda = large.ldb = 9;
  refused(large, std::vector{a, updated});
  large = trsm, large.side = static_cast<Side>(2);
  refused(large, std::vector{a, updated});

  LapackBatched lapack;
  lapack.dtype = DType::f64, lapack.task = LapackBatched::Task::getrs;
  lapack.m = lapack.n = lapack.lda = lapack.ldb = 2, lapack.nrhs = 2, lapack.batch = 1;
  const auto lapack_refused = [&](auto change) {
    auto op = lapack;
    change(op);
    refused(op, std::vector{a, updated});
  };
  lapack_refused([](auto& op) { op.m = 3; });
  lapack_refused([](auto& op) { op.lda = 1; });
  lapack_refused([](auto& op) { op.task = static_cast<LapackBatched::Task>(5); });
  lapack_refused([&](auto& op) { op.info = i; });
  lapack_refused([&](auto& op) { op.task = LapackBatched::Task::matinv; });  // without info
  lapack_refused([&](auto& op) { op.pivots = i, op.pivots.bytes = 4; });
  lapack_refused([](auto& op) { op.nrhs = -1; });
  lapack_refused([](auto& op) { op.n = op.m = op.lda = std::int64_t{1} << 32; });
  refused(lapack, std::vector{a});

  GetrfBatched getrf;
  getrf.dtype = DType::f64, getrf.n = getrf.lda = 2, getrf.batch = 1, getrf.info = i;
  const auto getrf_refused = [&](auto change) {
    auto op = getrf;
    change(op);
    refused(op, std::vector{TailOperand{y, 0, Access::update}});
  };
  getrf_refused([](auto& op) { op.lda = 1; });
  getrf_refused([](auto& op) { op.n = op.lda = 9; });
  getrf_refused([](auto& op) { op.n = -1; });
  getrf_refused([&](auto& op) { op.info = absent; });
  getrf_refused([&](auto& op) { op.pivots = i; });  // which is info
  getrf_refused([](auto& op) { op.batch = 2; });
  refused(getrf, std::vector{a});

  const GemmGrouped grouped{DType::f64, 1};
  GemmGroup group;
  group.m = group.n = group.k = group.lda = group.ldb = group.ldc = 2, group.batch = 1;
  const auto bytes = [](const GemmGroup& one_group) {
    return std::as_bytes(std::span(&one_group, 1));
  };
  const std::vector tail{a, v, w};
  refused(grouped, Parts(tail));
  refused(GemmGrouped{DType::f64, 2}, Parts(tail, bytes(group)));
  refused(GemmGrouped{DType::c64, 1}, Parts(tail, bytes(group)), Errc::unsupported);
  auto changed = group;
  changed.batch = 2;
  refused(grouped, Parts(tail, bytes(changed)));
  changed = group, changed.m = changed.lda = changed.ldc = 9;
  refused(grouped, Parts(tail, bytes(changed)));
  changed = group, changed.beta = 1;  // then c is updated
  refused(grouped, Parts(tail, bytes(changed)));

  const std::vector<MatrixRef<GpuRef<double>>> unlike{{ref, 2, 2}, {ref, 3, 3}}, none;
  EXPECT_EQ(device().blas().getrf_batched(unlike, index).wait().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
