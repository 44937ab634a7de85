// Steps of factorisations and eigenvalue problems.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Order;

template <class T>
class SolverReductions : public Typed<T> {};
TYPED_TEST_SUITE(SolverReductions, Numbers);

/// A matrix with `d` on its diagonal and `e` beside it, on both sides if it is symmetric.
template <class Real>
Dense band(const GpuRef<Real>& d, const GpuRef<Real>& e, bool symmetric) {
  const auto diagonal = device().download(d), beside = device().download(e);
  const auto n = std::ssize(diagonal);
  Dense a{n, n};
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = diagonal[static_cast<std::size_t>(i)];
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    a(i, i + 1) = beside[static_cast<std::size_t>(i)];
    if (symmetric) a(i + 1, i) = a(i, i + 1);
  }
  return a;
}

TYPED_TEST(SolverReductions, ToTridiagonalForm) {
  using T = TypeParam;
  auto solver = device().solver();
  for (const std::int64_t n : {1, 2, 17, 50}) {
    for (const auto uplo : kUplos) {
      SCOPED_TRACE(::testing::Message() << n << " " << static_cast<int>(uplo));
      const auto a = symmetric_matrix<T>({Storage::full, uplo, n, 0, n}, Symmetry::hermitian, 1,
                                         Data::fractions);
      const auto reflectors = put_half<T>(a, uplo, n + 1);
      const auto d = device().alloc<RealOf<T>>(n), e = device().alloc<RealOf<T>>(n - 1);
      const auto tau = device().alloc<T>(n - 1);
      solver.sytrd(uplo, reflectors, d, e, tau);
      EXPECT_TRUE(rest_untouched(reflectors, uplo));
      const auto whole = put_matrix<T>(identity(n), n + 2);
      solver.ormtr(Side::left, uplo, Transpose::no, reflectors, tau, whole);
      EXPECT_TRUE(gaps_untouched(whole));
      const auto q = fetched<T>(whole), t = band(d, e, true);
      EXPECT_LE(orthonormality<T>(q), kMostOfEigenvalues);
      EXPECT_LE(ratio<T>(q * t * op(q, Transpose::conjugate) - a, n, norm(a)), kMostOfEigenvalues);
      const auto c = random_matrix<T>(4, n, 2, Data::fractions);
      const auto product = put_matrix<T>(c, 5);
      solver.ormtr(Side::right, uplo, Transpose::conjugate, reflectors, tau, product);
      EXPECT_LE(ratio<T>(fetched<T>(product) - c * op(q, Transpose::conjugate), n, norm(c)),
                kMostOfEigenvalues);
      solver.orgtr(uplo, reflectors, tau);
      EXPECT_LE(ratio<T>(fetched<T>(reflectors) - q, n, 1), kMostOfEigenvalues);
      EXPECT_TRUE(gaps_untouched(reflectors));
    }
  }
}

TYPED_TEST(SolverReductions, ToBidiagonalForm) {
  using T = TypeParam;
  auto solver = device().solver();
  for (const auto& [m, n] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {6, 6}, {30, 12}, {40, 40}}) {
    SCOPED_TRACE(::testing::Message() << m << " x " << n);
    const auto a = random_matrix<T>(m, n, 3, Data::fractions);
    const auto left = put_matrix<T>(a, m + 1);
    const auto d = device().alloc<RealOf<T>>(n), e = device().alloc<RealOf<T>>(n - 1);
    const auto tau_q = device().alloc<T>(n), tau_p = device().alloc<T>(n);
    solver.gebrd(left, d, e, tau_q, tau_p);
    EXPECT_TRUE(gaps_untouched(left));
    const auto right = put_matrix<T>(fetched<T>(left), m + 2);
    solver.orgbr(Side::left, left, tau_q);
    solver.orgbr(Side::right, right, tau_p);
    EXPECT_TRUE(gaps_untouched(left));
    const auto q = fetched<T>(left);
    const auto both = fetched<T>(right);
    Dense ph{n, n};
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) ph(i, j) = both(i, j);
    }
    EXPECT_LE(orthonormality<T>(q), kMostOfSingularValues);
    EXPECT_LE(orthonormality<T>(op(ph, Transpose::conjugate)), kMostOfSingularValues);
    EXPECT_LE(ratio<T>(q * band(d, e, false) * ph - a, m, norm(a)), kMostOfSingularValues);
  }
}

TYPED_TEST(SolverReductions, ReflectorsAsOneBlock) {
  using T = TypeParam;
  constexpr std::int64_t m = 20, k = 6;
  auto solver = device().solver();
  const auto v = put_matrix<T>(random_matrix<T>(m, k, 4, Data::fractions), m + 1);
  const auto tau = device().template alloc<T>(k);
  solver.geqrf(v, tau);
  const auto t = put_matrix<T>(Dense{k, k}, k + 1);
  solver.larft(v, tau, t);
  const auto whole = put_matrix<T>(identity(m), m);
  if constexpr (ComplexElement<T>) {
    solver.unmqr(Side::left, Transpose::no, v, tau, whole);
  } else {
    solver.ormqr(Side::left, Transpose::no, v, tau, whole);
  }
  const auto vectors = triangle(fetched<T>(v), Uplo::lower, m, k, true);
  const auto block = triangle(fetched<T>(t), Uplo::upper, k, k);
  const auto q = identity(m) - vectors * block * op(vectors, Transpose::conjugate);
  EXPECT_LE(ratio<T>(q - fetched<T>(whole), m, 1), kMostOfSystems);
  EXPECT_TRUE(gaps_untouched(t));
}

TYPED_TEST(SolverReductions, RowsAreExchangedAndBack) {
  using T = TypeParam;
  auto solver = device().solver();
  constexpr std::int64_t m = 6, n = 4;
  const auto a = random_matrix<T>(m, n, 5, Data::integers);
  const std::vector<std::int64_t> rows{3, 2, 6, 5, 7, 0};  // the last ones are no rows
  const auto matrix = put_matrix<T>(a, m + 1);
  const auto pivots = put(rows);
  solver.laswp(matrix, 2, 6, pivots);
  auto expected = a;
  for (std::int64_t i = 1; i < 4; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      std::swap(expected(i, j), expected(rows[static_cast<std::size_t>(i)] - 1, j));
  }
  EXPECT_EQ(fetched<T>(matrix).element, expected.element);
  EXPECT_TRUE(gaps_untouched(matrix));
  solver.laswp(matrix, 2, 6, pivots, Order::backward);
  EXPECT_EQ(fetched<T>(matrix).element, a.element);
}

TYPED_TEST(SolverReductions, ATriangleTimesItself) {
  using T = TypeParam;
  constexpr std::int64_t n = 9;
  for (const auto uplo : kUplos) {
    const Stored half{Storage::full, uplo, n, 0, n + 2};
    const auto a = triangular_matrix<T>(half, Diagonal::stored, 6, Data::integers);
    auto real = a;  // LAPACK takes the diagonal to be real
    for (std::int64_t i = 0; i < n; ++i) real(i, i) = i % 2 == 0 ? 1 : -1;
    const auto matrix = put_half<T>(real, uplo, n + 2);
    device().solver().lauum(uplo, matrix);
    EXPECT_TRUE(rest_untouched(matrix, uplo));
    const auto h = op(real, Transpose::conjugate);
    const auto product = uplo == Uplo::lower ? h * real : real * h;
    EXPECT_EQ(triangle(fetched<T>(matrix), uplo, n, n).element,
              triangle(product, uplo, n, n).element);
  }
}

TEST_F(BadArguments, OfReductions) {
  const auto put_more = [] { return put(std::vector<double>(16, 1.0)); };
  const auto second = put_more(), third = put_more(), fourth = put_more(), fifth = put_more();
  const Operand d = second.operand(), e = third.operand(), tau = fourth.operand(),
                tau_p = fifth.operand();
  const auto rows = put(std::vector<std::int64_t>(4, 1));
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const auto refuse_squares = [&](const auto& good) {
    refuse(good, [](auto& op) { op.n = 5; });
    refuse(good, [](auto& op) { op.n = -1; });
    refuse(good, [](auto& op) { op.lda = 3; });
    refuse(good, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
    refuse(good, [&](auto& op) { op.a = unaligned; });
  };
  const solver::Sytrd sytrd{DType::f64, Uplo::lower, 0, 4, 4, x, d, e, tau};
  refuse_squares(sytrd);
  refuse(sytrd, [](auto& op) { op.d.bytes = 24; });
  refuse(sytrd, [](auto& op) { op.e.bytes = 16; });
  refuse(sytrd, [](auto& op) { op.tau.bytes = 16; });
  refuse(sytrd, [](auto& op) { op.tau = op.a; });
  const solver::Orgtr orgtr{DType::f64, Uplo::lower, 0, 4, 4, x, tau};
  refuse_squares(orgtr);
  refuse(orgtr, [&](auto& op) { op.tau = absent; });
  const solver::Ormtr ormtr{DType::f64, Side::left, Uplo::lower, {}, 0, 4, 4, 4, 4, x, tau, d};
  refuse_squares(ormtr);
  refuse(ormtr, [](auto& op) { op.side = static_cast<Side>(2); });
  refuse(ormtr, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refuse(ormtr, [](auto& op) { op.ldc = 3; });
  refuse(ormtr, [&](auto& op) { op.c = x; });
  const solver::Gebrd gebrd{DType::f64, 4, 4, 4, x, d, e, tau, tau_p};
  refuse(gebrd, [](auto& op) { op.m = 3; });
  refuse(gebrd, [](auto& op) { op.n = -1; });
  refuse(gebrd, [](auto& op) { op.lda = 5; });
  refuse(gebrd, [](auto& op) { op.tau_p = op.tau_q; });
  const solver::Orgbr orgbr{DType::f64, Side::right, 0, 4, 4, 4, x, tau};
  refuse(orgbr, [](auto& op) { op.m = 3; });
  refuse(orgbr, [](auto& op) { op.side = static_cast<Side>(2); });
  refuse(orgbr, [](auto& op) { op.tau.bytes = 24; });
  const solver::Larft larft{DType::f64, 4, 4, 4, 4, x, tau, d};
  refuse(larft, [](auto& op) { op.k = 5; });
  refuse(larft, [](auto& op) { op.ldt = 3; });
  refuse(larft, [&](auto& op) { op.t = x; });
  const solver::Laswp laswp{DType::f64, {}, 0, 4, 4, 4, 1, 4, x, rows.operand()};
  refuse(laswp, [](auto& op) { op.order = static_cast<Order>(2); });
  refuse(laswp, [](auto& op) { op.first = 0; });
  refuse(laswp, [](auto& op) { op.last = 5; });
  refuse(laswp, [](auto& op) { op.first = 4, op.last = 2; });
  refuse(laswp, [&](auto& op) { op.pivots = absent; });
  refuse_squares(solver::Lauum{DType::f64, Uplo::lower, 0, 4, 4, x});
}

}  // namespace
}  // namespace troupe::test::reference
