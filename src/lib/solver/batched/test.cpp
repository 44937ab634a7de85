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
/// Matrices side by side in one.
Dense beside(const std::vector<Dense>& parts) {
  Dense whole{parts[0].rows, parts[0].columns * std::ssize(parts)};
  auto at = whole.element.begin();
  for (const auto& part : parts) at = std::copy(part.element.begin(), part.element.end(), at);
  return whole;
}
/// The i-th of so many columns.
Dense part_of(const Dense& whole, std::size_t i, std::int64_t columns) {
  Dense part{whole.rows, columns};
  std::copy_n(whole.element.begin() + static_cast<std::int64_t>(i) * whole.rows * columns,
              whole.rows * columns, part.element.begin());
  return part;
}
template <class Real>
Dense diagonal_at(const std::vector<Real>& values, std::size_t i, std::int64_t count,
                  std::int64_t rows, std::int64_t columns) {
  Dense a{rows, columns};
  for (std::int64_t j = 0; j < count; ++j)
    a(j, j) = values[i * static_cast<std::size_t>(count) + static_cast<std::size_t>(j)];
  return a;
}

TYPED_TEST(SolverBatches, CholeskyOfLists) {
  using T = TypeParam;
  auto solver = device().solver();
  for (const std::int64_t n : {1, 6, 33}) {
    for (const auto uplo : kUplos) {
      SCOPED_TRACE(n);
      std::vector<Dense> matrices, sides;
      std::vector<MatrixRef<GpuRef<T>>> a, b;
      for (std::size_t i = 0; i < kBatch; ++i) {
        matrices.push_back(definite_matrix<T>(n, 10 + i));
        sides.push_back(random_matrix<T>(n, 1, 20 + i, Data::fractions));
        a.push_back(put_half<T>(matrices[i], uplo, n + 1));
        b.push_back(put_matrix<T>(sides[i], n + 2));
      }
      const auto info = put_infos();
      solver.potrf_batched(uplo, a, info);
      EXPECT_EQ(device().download(info), Infos(kBatch, 0));
      solver.potrs_batched(uplo, a, b);
      for (std::size_t i = 0; i < kBatch; ++i) {
        EXPECT_TRUE(on_cuda() ? gaps_untouched(a[i]) : rest_untouched(a[i], uplo));
        EXPECT_LE(residual<T>(matrices[i], fetched<T>(b[i]), sides[i]), kMostOfSystems);
        EXPECT_TRUE(gaps_untouched(b[i]));
      }
    }
  }
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

TYPED_TEST(SolverBatches, Eigenvalues) {
  using T = TypeParam;
  auto solver = device().solver();
  for (const std::int64_t n : {1, 8, 20}) {
    for (const auto uplo : kUplos) {
      SCOPED_TRACE(n);
      std::vector<Dense> matrices;
      for (std::size_t i = 0; i < kBatch; ++i) {
        matrices.push_back(symmetric_matrix<T>({Storage::full, uplo, n, 0, n}, Symmetry::hermitian,
                                               30 + i, Data::fractions));
      }
      const auto count = static_cast<std::int64_t>(kBatch);
      for (const auto vectors : {Vectors::no, Vectors::yes}) {
        for (const bool by_jacobi : {false, true}) {
          const auto a = put_matrix<T>(beside(matrices), n + 1);
          const auto w = device().template alloc<RealOf<T>>(n * count);
          const auto info = put_infos();
          if (by_jacobi) {
            solver.syevj_batched(vectors, uplo, count, a, w, info);
          } else {
            solver.syev_batched(vectors, uplo, count, a, w, info);
          }
          EXPECT_EQ(device().download(info), Infos(kBatch, 0));
          EXPECT_TRUE(gaps_untouched(a));
          const auto values = device().download(w);
          const auto all = fetched<T>(a);
          for (std::size_t i = 0; i < kBatch; ++i) {
            const auto s = diagonal_at(values, i, n, n, n);
            Wide trace = 0, sum = 0;
            for (std::int64_t j = 0; j < n; ++j) {
              trace += matrices[i](j, j), sum += s(j, j);
              EXPECT_TRUE(j == 0 || s(j - 1, j - 1).real() <= s(j, j).real());
            }
            EXPECT_LE(std::abs(trace - sum),
                      50.0 * static_cast<double>(n) * norm(matrices[i]) *
                          static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon()));
            if (vectors == Vectors::no) continue;
            const auto v = part_of(all, i, n);
            EXPECT_LE(ratio<T>(matrices[i] * v - v * s, n, norm(matrices[i])), kMostOfEigenvalues);
            EXPECT_LE(orthonormality<T>(v), kMostOfEigenvalues);
          }
        }
      }
    }
  }
}

/// Random matrices of m x n, side by side.
template <class T>
std::vector<Dense> random_batch(std::int64_t m, std::int64_t n) {
  std::vector<Dense> matrices;
  for (std::size_t i = 0; i < kBatch; ++i)
    matrices.push_back(random_matrix<T>(m, n, 40 + i, Data::fractions));
  return matrices;
}

TYPED_TEST(SolverBatches, SingularValuesByJacobi) {
  using T = TypeParam;
  auto solver = device().solver();
  const auto count = static_cast<std::int64_t>(kBatch);
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {8, 8}, {32, 5}, {6, 20}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto k = std::min(m, n);
    const auto matrices = random_batch<T>(m, n);
    const auto s = device().template alloc<RealOf<T>>(k * count);
    const auto u = put_matrix<T>(Dense{m, m * count}, m + 1),
               v = put_matrix<T>(Dense{n, n * count}, n + 2);
    const auto info = put_infos();
    solver.gesvdj_batched(count, put_matrix<T>(beside(matrices), m + 1), s, u, v, info);
    EXPECT_EQ(device().download(info), Infos(kBatch, 0));
    EXPECT_TRUE(gaps_untouched(u));
    EXPECT_TRUE(gaps_untouched(v));
    const auto values = device().download(s);
    const auto left = fetched<T>(u), right = fetched<T>(v);
    for (std::size_t i = 0; i < kBatch; ++i) {
      const auto ui = part_of(left, i, m), vi = part_of(right, i, n);
      const auto product = ui * diagonal_at(values, i, k, m, n) * op(vi, Transpose::conjugate);
      EXPECT_LE(ratio<T>(product - matrices[i], std::max(m, n), norm(matrices[i])),
                kMostOfSingularValues);
      EXPECT_LE(orthonormality<T>(ui), kMostOfSingularValues);
      EXPECT_LE(orthonormality<T>(vi), kMostOfSingularValues);
    }
    const auto alone = device().template alloc<RealOf<T>>(k * count);
    const MatrixRef<GpuRef<T>> none;
    solver.gesvdj_batched(count, put_matrix<T>(beside(matrices), m), alone, none, none, info);
    EXPECT_EQ(device().download(info), Infos(kBatch, 0));
    const auto again = device().download(alone);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(again[i], values[i],
                  70.0 * static_cast<double>(std::max(m, n)) * norm(matrices[0]) *
                      static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon()));
    }
  }
}

TYPED_TEST(SolverBatches, SingularValuesOfTallMatrices) {
  using T = TypeParam;
  using Real = RealOf<T>;
  constexpr std::int64_t m = 50, n = 6, rank = 6;
  const auto count = static_cast<std::int64_t>(kBatch);
  const auto matrices = random_batch<T>(m, n);
  const auto a = put_matrix<T>(beside(matrices), m + 1);
  const auto s = device().template alloc<Real>(rank * count);
  const auto u = put_matrix<T>(Dense{m, rank * count}, m + 2),
             v = put_matrix<T>(Dense{n, rank * count}, n + 1);
  const auto info = put_infos();
  device().solver().gesvda_batched(count, rank, a, s, u, v, info);
  EXPECT_EQ(device().download(info), Infos(kBatch, 0));
  EXPECT_EQ(fetched<T>(a).element, beside(matrices).element);
  EXPECT_TRUE(gaps_untouched(u));
  EXPECT_TRUE(gaps_untouched(v));
  const auto values = device().download(s);
  const auto left = fetched<T>(u), right = fetched<T>(v);
  // It squares the matrix: half of the digits are sure.
  const double sure = std::sqrt(static_cast<double>(std::numeric_limits<Real>::epsilon()));
  for (std::size_t i = 0; i < kBatch; ++i) {
    const auto product = part_of(left, i, rank) * diagonal_at(values, i, rank, rank, rank) *
                         op(part_of(right, i, rank), Transpose::conjugate);
    EXPECT_LE(norm(product - matrices[i]), 10 * sure * norm(matrices[i]));
  }
  // The first two only.
  const auto first = device().template alloc<Real>(2 * count);
  const MatrixRef<GpuRef<T>> none;
  device().solver().gesvda_batched(count, 2, a, first, none, none, info);
  const auto two = device().download(first);
  for (std::size_t i = 0; i < two.size(); ++i)
    EXPECT_NEAR(two[i], values[i / 2 * rank + i % 2], 10 * sure * norm(matrices[0]));
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
