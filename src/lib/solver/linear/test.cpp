// Systems of linear equations.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Diagonal;

template <class T>
class SolverLinear : public Typed<T> {};
TYPED_TEST_SUITE(SolverLinear, Numbers);

/// Whatever the algorithm, these are integers on the way.
TYPED_TEST(SolverLinear, FactorsAndInversesOfIntegersAreExact) {
  using T = TypeParam;
  auto solver = device().solver();
  constexpr std::int64_t n = 8;
  for (const auto uplo : kUplos) {
    for (const auto diagonal : {Diagonal::stored, Diagonal::unit}) {
      const Stored half{Storage::full, uplo, n, 0, n + 2};
      const auto a = triangular_matrix<T>(half, diagonal, 6, Data::integers);
      const MatrixRef inverse(put_numbers<T>(half.spread(a, diagonal)), n, n, n + 2);
      EXPECT_EQ(solver.trtri(uplo, diagonal, inverse).get(), 0);
      const auto found = triangle(fetched<T>(inverse), uplo, n, n, diagonal == Diagonal::unit);
      EXPECT_EQ((a * found).element, identity(n).element);
      if (diagonal == Diagonal::stored) {
        EXPECT_TRUE(rest_untouched(inverse, uplo));
      }
    }
  }
  const auto l = triangular_matrix<T>({Storage::full, Uplo::lower, n, 0, n}, Diagonal::unit, 7,
                                      Data::integers),
             u = triangular_matrix<T>({Storage::full, Uplo::upper, n, 0, n}, Diagonal::stored, 8,
                                      Data::integers);
  const auto factors = put_matrix<T>(l * u, n);
  EXPECT_EQ(solver.getrf(factors).get(), 0);
  EXPECT_EQ(fetched<T>(factors).element, (l + u - identity(n)).element);
}

/// The identity but for zeros in the third row and column.
Dense singular(std::int64_t n) {
  auto a = identity(n);
  a(2, 2) = 0;
  return a;
}

TYPED_TEST(SolverLinear, ASingularMatrixIsANumericFailure) {
  using T = TypeParam;
  auto solver = device().solver();
  const auto a = [] { return put_matrix<T>(singular(5), 6); };
  const auto pivots = device().alloc<std::int64_t>(5),
             more_pivots = device().alloc<std::int64_t>(5),
             other_pivots = device().alloc<std::int64_t>(5);
  const auto expect_third = [](const char* call, const Future<std::int32_t>& failed,
                               const auto& matrix) {
    SCOPED_TRACE(call);
    const auto& outcome = failed.wait();
    ASSERT_EQ(outcome.code(), Errc::numeric);
    EXPECT_EQ(outcome.error().native, 3);
    EXPECT_FALSE(matrix.buffer.valid());
  };
  const auto lu = a(), unpivoted = a(), symmetric = a(), triangular = a(), factor = a();
  expect_third("getrf", solver.getrf(lu, pivots), lu);
  EXPECT_FALSE(pivots.valid());
  expect_third("getrf_unpivoted", solver.getrf(unpivoted), unpivoted);
  expect_third("sytrf", solver.sytrf(Uplo::lower, symmetric, more_pivots), symmetric);
  expect_third("trtri", solver.trtri(Uplo::upper, Diagonal::stored, triangular), triangular);
  expect_third("potri", solver.potri(Uplo::lower, factor), factor);
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
  const auto reported = a();
  EXPECT_EQ(solver.getrf(reported, other_pivots, OnFailure::report).get(), 3);
  EXPECT_EQ(fetched<T>(reported).element, singular(5).element);
  EXPECT_EQ(solver.trtri(Uplo::lower, Diagonal::unit, reported, OnFailure::report).get(), 0);
  EXPECT_TRUE(device().take_error().ok());
}

TYPED_TEST(SolverLinear, NothingToSolve) {
  using T = TypeParam;
  auto solver = device().solver();
  const auto empty = put(std::vector<T>());
  const MatrixRef none(empty, 0, 0), a(put(std::vector<T>(4, T(1))), 2, 2);
  const MatrixRef no_sides(empty, 2, 0);
  const auto pivots = put(std::vector<std::int64_t>{1, 2}), no_pivots = pivots.slice(0, 0);
  EXPECT_EQ(solver.potri(Uplo::lower, none).get(), 0);
  EXPECT_EQ(solver.trtri(Uplo::lower, Diagonal::stored, none).get(), 0);
  EXPECT_EQ(solver.getrf(none, no_pivots).get(), 0);
  EXPECT_EQ(solver.sytrf(Uplo::lower, none, no_pivots).get(), 0);
  solver.potrs(Uplo::lower, a, no_sides).get();
  solver.getrs(Transpose::no, a, pivots, no_sides).get();
  solver.sytrs(Uplo::lower, a, pivots, no_sides).get();
  EXPECT_EQ(device().download(a.buffer), std::vector<T>(4, T(1)));
}

/// The block that is told is the first in the order of elimination: upper begins at the end.
TYPED_TEST(SolverLinear, WhichBlockOfASymmetricMatrixIsZero) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 2, 5, 70}) {
    for (const auto uplo : kUplos) {
      for (const std::int64_t zero : {std::int64_t{1}, (n + 1) / 2, n}) {
        SCOPED_TRACE(::testing::Message() << n << " " << static_cast<int>(uplo) << " " << zero);
        auto a = identity(n);
        a(zero - 1, zero - 1) = 0;
        a(0, 0) = zero == n ? 0.0 : a(0, 0);
        const auto first = zero == n && uplo == Uplo::lower ? 1 : zero;
        const auto factors = put_half<T>(a, uplo, n);
        const auto pivots = device().alloc<std::int64_t>(n);
        EXPECT_EQ(device().solver().sytrf(uplo, factors, pivots, OnFailure::report).get(), first);
      }
    }
  }
}

/// What is not a pivot exchanges nothing; no memory beside the operands is touched.
TYPED_TEST(SolverLinear, PivotsOutsideOfTheMatrix) {
  using T = TypeParam;
  const auto a = put_matrix<T>(identity(3), 3);
  const auto b = random_matrix<T>(3, 2, 12, Data::integers);
  for (const auto wrong : {std::int64_t{0}, std::int64_t{4}, -std::int64_t{1} << 40}) {
    const auto x = put_matrix<T>(b, 4);
    device().solver().getrs(Transpose::no, a, put(std::vector<std::int64_t>(3, wrong)), x);
    EXPECT_EQ(fetched<T>(x).element, b.element);
    EXPECT_TRUE(gaps_untouched(x));
  }
}

class SolverLinearArguments : public BadArguments {
 protected:
  detail::ResultCell cell = device().submitter().result_cell(sizeof(std::int32_t)).take();
  GpuRef<std::int64_t> rows = put(std::vector<std::int64_t>(4, 1));
  Operand pivots = rows.operand();
  GpuRef<double> other = put(std::vector<double>(16, 1.0));
  Operand b = other.operand();

  /// What is refused of any operation with a square matrix a of order 4.
  template <class Op>
  void refuses_squares(const Op& good) {
    const auto with = [&](auto change) {
      auto op = good;
      change(op);
      expect_refused(op);
    };
    with([](auto& op) { op.n = -1; });
    with([](auto& op) { op.n = 5; });
    with([](auto& op) { op.lda = 3; });
    with([](auto& op) { op.lda = 5; });
    with([](auto& op) { op.n = op.lda = std::int64_t{1} << 40; });
    with([&](auto& op) { op.a = unaligned; });
    with([&](auto& op) { op.a = absent; });
    auto wrong_type = good;
    wrong_type.dtype = DType::i32;
    expect_refused(wrong_type, Errc::unsupported);
  }
  template <class Op>
  void refuses_pivots(Op op) {
    op.pivots.bytes = 24;
    expect_refused(op);
    op.pivots = unaligned;
    expect_refused(op);
  }
  template <class Op>
  void refuses_info(Op op) {
    op.on_failure = static_cast<OnFailure>(2);
    expect_refused(op);
    op.on_failure = OnFailure::error, op.info = absent;
    expect_refused(op);
    op.info = i;  // not pinned
    expect_refused(op);
  }
  template <class Op>
  void refuses_right_sides(Op op) {
    const auto with = [&](auto change) {
      auto wrong = op;
      change(wrong);
      expect_refused(wrong);
    };
    with([](auto& wrong) { wrong.nrhs = -1; });
    with([](auto& wrong) { wrong.nrhs = 5; });
    with([](auto& wrong) { wrong.ldb = 3; });
    with([&](auto& wrong) { wrong.b = absent; });
    with([&](auto& wrong) { wrong.b = x; });
  }
};

TEST_F(SolverLinearArguments, AreRefused) {
  constexpr auto kWrongUplo = static_cast<Uplo>(2);
  const solver::Potrs potrs{DType::f64, Uplo::lower, 0, 4, 4, 4, 4, x, b};
  const solver::Potri potri{DType::f64, Uplo::lower, OnFailure::error, 4, 4, x, cell.where};
  const solver::Trtri trtri{DType::f64, Uplo::lower, {}, {}, 0, 4, 4, x, cell.where};
  const solver::Getrf getrf{DType::f64, {}, 0, 4, 4, 4, x, pivots, cell.where};
  const solver::Getrs getrs{DType::f64, {}, 0, 4, 4, 4, 4, x, pivots, b};
  const solver::Sytrf sytrf{DType::f64, Uplo::lower, {}, 4, 4, x, pivots, cell.where};
  const solver::Sytri sytri{DType::f64, Uplo::lower, {}, 4, 4, x, pivots, cell.where};
  const solver::Sytrs sytrs{DType::f64, Uplo::lower, 0, 4, 4, 4, 4, x, pivots, b};
  refuses_squares(potrs), refuses_squares(potri), refuses_squares(trtri);
  refuses_squares(getrf), refuses_squares(getrs), refuses_squares(sytrf), refuses_squares(sytrs);
  refuses_squares(sytri), refuses_info(sytri), refuses_pivots(sytri);
  refuses_right_sides(potrs), refuses_right_sides(getrs), refuses_right_sides(sytrs);
  refuses_info(potri), refuses_info(trtri), refuses_info(getrf), refuses_info(sytrf);
  refuses_pivots(getrf), refuses_pivots(getrs), refuses_pivots(sytrf), refuses_pivots(sytrs);
  const auto refuses_uplo = [](auto op) {
    op.uplo = kWrongUplo;
    expect_refused(op);
  };
  refuses_uplo(potrs), refuses_uplo(potri), refuses_uplo(trtri);
  refuses_uplo(sytrf), refuses_uplo(sytrs), refuses_uplo(sytri);
  auto shared = getrf;
  shared.pivots = x;
  expect_refused(shared);
  auto no_pivots = sytrf;
  no_pivots.pivots = absent;
  expect_refused(no_pivots);
  auto diagonal = trtri;
  diagonal.diagonal = static_cast<Diagonal>(2);
  expect_refused(diagonal);
  auto transpose = getrs;
  transpose.transpose = static_cast<Transpose>(3);
  expect_refused(transpose);
  // What the typed calls find.
  const MatrixRef square(ref, 4, 4), wide(ref, 3, 4), sides(other, 3, 2);
  auto solver = device().solver();
  EXPECT_EQ(solver.potrf(Uplo::lower, wide).wait().code(), Errc::invalid);
  EXPECT_EQ(solver.potrs(Uplo::lower, square, sides).wait().code(), Errc::invalid);
  EXPECT_EQ(solver.getrs(Transpose::no, square, sides).wait().code(), Errc::invalid);
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
