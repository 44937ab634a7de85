// Singular values.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Columns;
using solver::Extent;

template <class T>
class SolverSvd : public Typed<T> {};
TYPED_TEST_SUITE(SolverSvd, Numbers);

template <class Real>
Dense fetched_diagonal(const GpuRef<Real>& s, std::int64_t rows, std::int64_t columns) {
  const auto values = device().download(s);
  EXPECT_TRUE(std::is_sorted(values.rbegin(), values.rend()));
  Dense a{rows, columns};
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i) {
    EXPECT_GE(values[static_cast<std::size_t>(i)], 0);
    a(i, i) = values[static_cast<std::size_t>(i)];
  }
  return a;
}
Dense adjoint(const Dense& v) {
  return op(v, Transpose::conjugate);
}

/// For a matrix whose values fall off quickly, as the method wants it.
TYPED_TEST(SolverSvd, TheLargestFromRandomSamples) {
  using T = TypeParam;
  using Real = RealOf<T>;
  constexpr std::int64_t m = 40, n = 25, rank = 4;
  const auto left = random_matrix<T>(m, n, 3, Data::fractions),
             right = random_matrix<T>(n, n, 4, Data::fractions);
  Dense scales{n, n};
  // In f32 GPUs have no digits for more: see solver::Gesvdr.
  const bool narrow = std::is_same_v<Real, float>;
  for (std::int64_t i = 0; i < n; ++i) scales(i, i) = std::pow(narrow ? 0.5 : 0.1, i);
  auto a = left * scales * right;
  for (auto& x : a.element) x = widen(to_number<T>(x));
  const auto all = device().template alloc<Real>(n), s = device().template alloc<Real>(rank);
  device().solver().gesvd(put_matrix<T>(a, m), all).get();
  const auto u = put_matrix<T>(Dense{m, rank}, m + 1), v = put_matrix<T>(Dense{n, rank}, n + 2);
  EXPECT_EQ(device()
                .solver()
                .gesvdr(put_matrix<T>(a, m), s, u, v,
                        {.rank = rank, .oversampling = 6, .iterations = narrow ? 0 : 3})
                .get(),
            0);
  const auto exact = device().download(all), found = device().download(s);
  // What is left over is as large as the next value, or a little more.
  const double rounding = 40 * norm(a) * static_cast<double>(std::numeric_limits<Real>::epsilon());
  const double next = 2 * static_cast<double>(exact[rank]) + rounding;
  for (std::size_t i = 0; i < rank; ++i) EXPECT_NEAR(found[i], exact[i], next);
  EXPECT_LE(orthonormality<T>(fetched<T>(u)), kMostOfSingularValues);
  EXPECT_LE(orthonormality<T>(fetched<T>(v)), kMostOfSingularValues);
  const auto rest = fetched<T>(u) * fetched_diagonal(s, rank, rank) * adjoint(fetched<T>(v)) - a;
  EXPECT_LE(norm(rest), next * std::sqrt(static_cast<double>(m)));
  EXPECT_TRUE(gaps_untouched(u));
  EXPECT_TRUE(gaps_untouched(v));
  EXPECT_FALSE(info_of<solver::Gesvdr>.traits.repeatable);
}

TEST_F(BadArguments, OfSingularValues) {
  const auto cell = device().submitter().result_cell(64).take();
  const auto put_more = [] { return put(std::vector<double>(16, 1.0)); };
  const auto second = put_more(), third = put_more(), fourth = put_more();
  const Operand s = second.operand(), u = third.operand(), v = fourth.operand();
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const auto refuse_any = [&](const auto& good) {
    refuse(good, [](auto& op) { op.m = -1; });
    refuse(good, [](auto& op) { op.m = op.lda = op.ldu = 5; });
    refuse(good, [](auto& op) { op.lda = 3; });
    refuse(good, [](auto& op) { op.ldu = 3; });
    refuse(good, [](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
    refuse(good, [&](auto& op) { op.s.bytes = 8; });
    refuse(good, [&](auto& op) { op.s = absent; });
    refuse(good, [&](auto& op) { op.u = op.a; });
    refuse(good, [&](auto& op) { op.a = unaligned; });
  };
  const solver::Gesvd gesvd{DType::f64, Columns::all, Columns::all, {}, 0, 4, 4, 4, 4, 4, x, s, u,
                            v,          cell.where};
  refuse_any(gesvd);
  refuse(gesvd, [](auto& op) { op.columns_u = static_cast<Columns>(4); });
  refuse(gesvd, [](auto& op) { op.columns_u = op.columns_v = Columns::overwrite; });
  refuse(gesvd, [](auto& op) { op.columns_u = Columns::none; });
  refuse(gesvd, [](auto& op) { op.m = 3; });
  refuse(gesvd, [](auto& op) { op.ldvt = 3; });
  refuse(gesvd, [&](auto& op) { op.vt = absent; });
  refuse(gesvd, [&](auto& op) { op.info = i; });
  const solver::Gesvdj gesvdj{
      DType::f64, solver::Vectors::yes, {}, {}, 10, 0, 4, 4, 4, 4, 4, x, s, u, v, cell.where};
  refuse_any(gesvdj);
  refuse(gesvdj, [](auto& op) { op.vectors = solver::Vectors::no; });
  refuse(gesvdj, [](auto& op) { op.extent = static_cast<Extent>(2); });
  refuse(gesvdj, [](auto& op) { op.max_sweeps = -1; });
  refuse(gesvdj, [&](auto& op) { op.v = absent; });
  refuse(gesvdj, [&](auto& op) { op.told = i; });
  const solver::Gesvdp gesvdp{
      DType::f64, solver::Vectors::yes, {}, {}, 0, 4, 4, 4, 4, 4, x, s, u, v, cell.where};
  refuse_any(gesvdp);
  refuse(gesvdp, [](auto& op) { op.ldv = 3; });
  const solver::Gesvdr gesvdr{DType::f64, {}, 0, 4, 4, 4, 4, 4, 2, 2, 1, x, s, u, v, cell.where};
  refuse_any(gesvdr);
  refuse(gesvdr, [](auto& op) { op.rank = 0; });
  refuse(gesvdr, [](auto& op) { op.rank = 5; });
  refuse(gesvdr, [](auto& op) { op.oversampling = 3; });
  refuse(gesvdr, [](auto& op) { op.iterations = -1; });
}

}  // namespace
}  // namespace troupe::test::reference
