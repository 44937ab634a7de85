// Batches of small matrices.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Vectors;

template <class T>
class SolverBatches : public Typed<T> {};
TYPED_TEST_SUITE(SolverBatches, Numbers);

constexpr std::size_t kBatch = 5;
using Infos = std::vector<std::int32_t>;

GpuRef<std::int32_t> put_infos() {
  return put(Infos(kBatch, -1));
}

TYPED_TEST(SolverBatches, AMatrixThatIsNotDefiniteFailsNoOther) {
  using T = TypeParam;
  std::vector<MatrixRef<GpuRef<T>>> a;
  auto bad = identity(4);
  bad(2, 2) = -1;
  for (std::size_t i = 0; i < kBatch; ++i)
    a.push_back(put_matrix<T>(i == 3 ? bad : identity(4), 4));
  const auto info = put_infos();
  device().solver().potrf_batched(Uplo::lower, a, info).get();
  EXPECT_EQ(device().download(info), (Infos{0, 0, 0, 3, 0}));
  EXPECT_EQ(fetched<T>(a[4]).element, identity(4).element);
}

TYPED_TEST(SolverBatches, OfNothing) {
  using T = TypeParam;
  auto solver = device().solver();
  const auto no_info = put(Infos()), info = put(Infos(2, -1));
  const MatrixRef none(put(std::vector<T>()), 0, 0);
  const auto w = put(std::vector<RealOf<T>>());
  solver.potrf_batched(Uplo::lower, std::vector<MatrixRef<GpuRef<T>>>(), no_info).get();
  solver.syev_batched(Vectors::yes, Uplo::lower, 0, none, w, no_info).get();
  solver.syevj_batched(Vectors::yes, Uplo::lower, 2, none, w, info).get();
  EXPECT_EQ(device().download(info), Infos(2, 0));
}

TEST_F(BadArguments, OfSolverBatches) {
  const auto put_more = [](std::size_t n) { return put(std::vector<double>(n, 1.0)); };
  const auto second = put_more(16), third = put_more(16), fourth = put_more(16);
  const Operand w = second.operand(), u = third.operand(), v = fourth.operand();
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const auto refuse_any = [&](const auto& good) {
    refuse(good, [](auto& op) { op.n = -1; });
    refuse(good, [](auto& op) { op.n = std::int64_t{1} << 31; });
    refuse(good, [](auto& op) { op.batch = -1; });
    refuse(good, [](auto& op) { op.batch = 17; });
    refuse(good, [](auto& op) { op.lda = 1; });
    refuse(good, [&](auto& op) { op.info = absent; });
    refuse(good, [](auto& op) { op.vectors = static_cast<Vectors>(2); });
    refuse(good, [&](auto& op) { op.a = unaligned; });
  };
  const solver::SyevBatched syev{DType::f64, Vectors::yes, Uplo::lower, 2, 2, 4, x, w, i};
  refuse_any(syev);
  refuse(syev, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
  refuse(syev, [&](auto& op) { op.w.bytes = 56; });
  const solver::SyevjBatched syevj{DType::f64, Vectors::yes, {}, 10, 0, 0, 2, 2, 4, x, w, i};
  refuse_any(syevj);
  refuse(syevj, [](auto& op) { op.max_sweeps = 0; });
  const solver::GesvdjBatched gesvdj{DType::f64, Vectors::yes, 10, 0, 2, 2, 2, 2, 2, 4, x, w, u, v,
                                     i};
  refuse_any(gesvdj);
  refuse(gesvdj, [&](auto& op) { op.v = absent; });
  refuse(gesvdj, [](auto& op) { op.m = op.lda = op.ldu = 33, op.n = op.batch = 0; });
  refuse(gesvdj, [](auto& op) { op.vectors = Vectors::no; });
  const solver::GesvdaBatched gesvda{DType::f64, Vectors::yes, 0, 2, 2, 1, 2, 2, 2, 4, x, w, u, v,
                                     i};
  refuse_any(gesvda);
  refuse(gesvda, [](auto& op) { op.rank = 0; });
  refuse(gesvda, [](auto& op) { op.rank = 3; });
  refuse(gesvda, [](auto& op) { op.m = 1; });
  refuse(gesvda, [&](auto& op) { op.u = x; });
  // Lists.
  auto solver = device().solver();
  const MatrixRef square(ref, 4, 4), small(ref, 3, 3), wide(ref, 3, 4), column(second, 4, 1),
      two_columns(second, 4, 2);
  const auto refused = [](const Future<void>& future) {
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
  };
  refused(solver.potrf_batched(Uplo::lower, std::vector{square, small}, index));
  refused(solver.potrf_batched(Uplo::lower, std::vector{wide}, index));
  refused(solver.potrf_batched(static_cast<Uplo>(2), std::vector{square}, index));
  refused(solver.potrf_batched(Uplo::lower, std::vector{square}, index.slice(0, 0)));
  refused(solver.potrf_batched(Uplo::lower, std::vector{square, square}, index));  // one twice
  refused(solver.potrs_batched(Uplo::lower, std::vector{square}, {two_columns}));
  refused(solver.potrs_batched(Uplo::lower, std::vector{square}, {}));
  refused(solver.potrs_batched(Uplo::lower, std::vector{square}, {square}));
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
