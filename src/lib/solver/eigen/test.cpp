// Eigenvalues.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Problem;
using solver::Vectors;

template <class T>
class SolverEigen : public Typed<T> {};
TYPED_TEST_SUITE(SolverEigen, Numbers);

constexpr Vectors kVectors[] = {Vectors::no, Vectors::yes};

template <class T>
Dense random_hermitian(std::int64_t n, std::uint64_t seed) {
  return symmetric_matrix<T>({Storage::full, Uplo::lower, n, 0, n}, Symmetry::hermitian, seed,
                             Data::fractions);
}
Dense diagonal_of(const std::vector<double>& values) {
  const auto n = std::ssize(values);
  Dense a{n, n};
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = values[static_cast<std::size_t>(i)];
  return a;
}
template <class Real>
std::vector<double> fetched_values(const GpuRef<Real>& w) {
  const auto values = device().download(w);
  return {values.begin(), values.end()};
}
Dense first_columns(const Dense& a, std::int64_t columns) {
  Dense part{a.rows, columns};
  std::copy_n(a.element.begin(), a.rows * columns, part.element.begin());
  return part;
}
/// Expects A V = V diag(w) with orthonormal V.
template <class T>
void expect_eigenpairs(const Dense& a, const Dense& v, const std::vector<double>& w) {
  EXPECT_LE(ratio<T>(a * v - v * diagonal_of(w), a.rows, norm(a)), kMostOfEigenvalues);
  EXPECT_LE(orthonormality<T>(v), kMostOfEigenvalues);
}
/// How far eigenvalues of one matrix may be apart by the theorem of Weyl.
template <class T>
double weyl(const Dense& a) {
  return 2 * kMostOfEigenvalues * static_cast<double>(a.rows) * norm(a) *
         static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
}
template <class T>
void expect_same(const std::vector<double>& some, const std::vector<double>& others,
                 const Dense& a) {
  ASSERT_EQ(some.size(), others.size());
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_NEAR(some[i], others[i], weyl<T>(a));
}

TYPED_TEST(SolverEigen, SomeOfTheEigenvalues) {
  using T = TypeParam;
  auto solver = device().solver();
  constexpr std::int64_t n = 30;
  const auto a = random_hermitian<T>(n, 2);
  const auto w = device().alloc<RealOf<T>>(n);
  solver.syevd(Vectors::no, Uplo::lower, put_half<T>(a, Uplo::lower, n), w).get();
  const auto all = fetched_values(w);
  const auto middle = [&](std::size_t i) { return (all[i] + all[i + 1]) / 2; };
  const struct {
    EigenRange range;
    std::size_t first, end;
  } parts[] = {{{}, 0, n},
               {EigenRange::indices(3, 11), 2, 11},
               {EigenRange::values(middle(4), middle(19)), 5, 20},
               {EigenRange::values(all[n - 1] + 1, all[n - 1] + 2), n, n}};
  for (const auto& [range, first, end] : parts) {
    for (const auto uplo : kUplos) {
      for (const auto vectors : kVectors) {
        SCOPED_TRACE(::testing::Message() << first << " to " << end);
        const auto matrix = put_half<T>(a, uplo, n + 1);
        const auto told = solver.syevdx(vectors, range, uplo, matrix, w).get();
        EXPECT_EQ(told.info, 0);
        ASSERT_EQ(told.count, static_cast<std::int64_t>(end - first));
        auto values = fetched_values(w);
        values.resize(end - first);
        expect_same<T>(values,
                       {all.begin() + static_cast<std::ptrdiff_t>(first),
                        all.begin() + static_cast<std::ptrdiff_t>(end)},
                       a);
        if (vectors == Vectors::yes)
          expect_eigenpairs<T>(a, first_columns(fetched<T>(matrix), told.count), values);
      }
    }
  }
}

TYPED_TEST(SolverEigen, BThatIsNotDefiniteIsANumericFailure) {
  using T = TypeParam;
  auto b = identity(4);
  b(1, 1) = -1;
  const auto a = put_matrix<T>(identity(4), 4), factor = put_matrix<T>(b, 4);
  const auto w = device().alloc<RealOf<T>>(4);
  const auto failed =
      device().solver().sygvd(Problem::ax_bx, Vectors::no, Uplo::lower, a, factor, w);
  ASSERT_EQ(failed.wait().code(), Errc::numeric);
  EXPECT_EQ(failed.wait().error().native, 4 + 2);
  EXPECT_NE(failed.wait().error().message.find("order 2 of b"), std::string::npos);
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
}

TYPED_TEST(SolverEigen, OfNothing) {
  using T = TypeParam;
  const MatrixRef none(put(std::vector<T>()), 0, 0);
  const auto w = put(std::vector<RealOf<T>>());
  const auto complex = put(std::vector<std::complex<RealOf<T>>>());
  auto solver = device().solver();
  EXPECT_EQ(solver.syevd(Vectors::yes, Uplo::lower, none, w).get(), 0);
  EXPECT_EQ(solver.syevj(Vectors::yes, Uplo::lower, none, w).get().info, 0);
  EXPECT_EQ(solver.syevdx(Vectors::yes, {}, Uplo::lower, none, w).get().count, 0);
  EXPECT_EQ(solver.sygvd(Problem::abx, Vectors::yes, Uplo::lower, none, none, w).get(), 0);
  EXPECT_EQ(solver.geev(none, complex).get(), 0);
}

TEST_F(BadArguments, OfEigenvalues) {
  const auto cell = device().submitter().result_cell(64).take();
  const auto second = put(std::vector<double>(16, 1.0)), third = put(std::vector<double>(16, 1.0));
  const Operand y = second.operand(), z = third.operand();
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const auto refuse_hermitian = [&](const auto& good) {
    refuse(good, [](auto& op) { op.n = 5; });
    refuse(good, [](auto& op) { op.n = -1; });
    refuse(good, [](auto& op) { op.lda = 3; });
    refuse(good, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
    refuse(good, [](auto& op) { op.vectors = static_cast<Vectors>(2); });
    refuse(good, [](auto& op) { op.on_failure = static_cast<OnFailure>(2); });
    refuse(good, [&](auto& op) { op.a = unaligned; });
    refuse(good, [&](auto& op) { op.w = op.a; });
    refuse(good, [&](auto& op) { op.w.bytes = 24; });
  };
  const solver::Syevj syevj{DType::f64, Vectors::yes, Uplo::lower, {}, 10, 0, 4, 4, x,
                            y,          cell.where};
  refuse_hermitian(syevj);
  refuse(syevj, [](auto& op) { op.max_sweeps = 0; });
  refuse(syevj, [](auto& op) { op.tolerance = -1; });
  refuse(syevj, [](auto& op) { op.tolerance = std::nan(""); });
  refuse(syevj, [&](auto& op) { op.told = i; });
  const solver::Syevdx syevdx{DType::f64, Vectors::no, {}, Uplo::lower, {}, 0, 0,
                              0,          0,           4,  4,           x,  y, cell.where};
  refuse_hermitian(syevdx);
  refuse(syevdx, [](auto& op) { op.range = static_cast<solver::Range>(3); });
  refuse(syevdx, [](auto& op) { op.range = solver::Range::values, op.from = op.to = 1; });
  refuse(syevdx, [](auto& op) { op.range = solver::Range::indices, op.first = 0, op.last = 2; });
  refuse(syevdx, [](auto& op) { op.range = solver::Range::indices, op.first = 3, op.last = 2; });
  refuse(syevdx, [](auto& op) { op.range = solver::Range::indices, op.first = 3, op.last = 5; });
  const solver::Sygvd sygvd{DType::f64, Problem::abx, Vectors::no, Uplo::lower, {}, 4, 4, 4, x, y,
                            z,          cell.where};
  refuse_hermitian(sygvd);
  refuse(sygvd, [](auto& op) { op.problem = static_cast<Problem>(0); });
  refuse(sygvd, [](auto& op) { op.problem = static_cast<Problem>(4); });
  refuse(sygvd, [](auto& op) { op.ldb = 3; });
  refuse(sygvd, [&](auto& op) { op.b = x; });
  const solver::Sygvj sygvj{
      DType::f64, Problem::abx, Vectors::no, Uplo::lower, {}, 10, 0, 0, 4, 4, 4, x, y,
      z,          cell.where};
  refuse_hermitian(sygvj);
  refuse(sygvj, [](auto& op) { op.max_sweeps = 0; });
  refuse(sygvj, [&](auto& op) { op.b = absent; });
  const solver::Sygvdx sygvdx{
      DType::f64, Problem::abx, Vectors::no, {}, Uplo::lower, {}, 0, 0, 0, 0, 0, 4, 4, 4, x, y,
      z,          cell.where};
  refuse_hermitian(sygvdx);
  refuse(sygvdx, [](auto& op) { op.range = solver::Range::indices, op.first = 3, op.last = 5; });
  refuse(sygvdx, [](auto& op) { op.ldb = 3; });
  const solver::Geev geev{DType::f64, {}, 0, 4, 4, 4, x, y, z, cell.where};
  refuse(geev, [](auto& op) { op.n = 5; });
  refuse(geev, [](auto& op) { op.lda = 3; });
  refuse(geev, [](auto& op) { op.ldvr = 5; });
  refuse(geev, [&](auto& op) { op.w = absent; });
  refuse(geev, [&](auto& op) { op.w.bytes = 32; });  // it is complex
  refuse(geev, [&](auto& op) { op.vr = x; });
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
