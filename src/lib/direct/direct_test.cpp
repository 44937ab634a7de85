// Systems of linear equations with sparse matrices, by their factors.
#include <troupe/lib/direct.hpp>

#include <algorithm>
#include <limits>

#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

using direct::Kind;
using direct::View;

/// Skips the tests where what the engine needs is not installed.
class DirectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto probed =
        detail::submit(device().submitter(), direct::Release{direct::next_id()}).wait();
    if (probed.ok()) return;
    ASSERT_EQ(probed.code(), Errc::unsupported) << probed.error().message;
    ASSERT_NE(probed.error().message.find("not installed"), std::string::npos)
        << probed.error().message;
    EXPECT_EQ(device().take_error().code(), Errc::unsupported);
    GTEST_SKIP() << probed.error().message;
  }
};
template <class T>
class Direct : public DirectTest {};
using SomeNumbersAndIndices =
    ::testing::Types<std::pair<float, std::int32_t>, std::pair<double, std::int64_t>,
                     std::pair<std::complex<float>, std::int64_t>,
                     std::pair<std::complex<double>, std::int32_t>>;
TYPED_TEST_SUITE(Direct, SomeNumbersAndIndices);
template <class T>
class DirectOfAllTypes : public DirectTest {};
TYPED_TEST_SUITE(DirectOfAllTypes, NumbersAndIndices);

/// A matrix of a kind, its diagonal larger than the rest of its row. Indefinite ones have every
/// third element of the diagonal negative.
template <class T>
Dense dominant(std::int64_t n, Kind kind, std::uint64_t seed) {
  Dense a{n, n};
  std::mt19937_64 random(seed);
  const auto values = numbers<T>(n * n, seed + 1, Data::fractions);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      if (i == j || random() % static_cast<std::uint64_t>(n) >= 3) continue;
      a(i, j) = values[static_cast<std::size_t>(i * n + j)];
      if (kind != Kind::general) a(j, i) = kind == Kind::symmetric ? a(i, j) : std::conj(a(i, j));
    }
  }
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 1;
    for (std::int64_t j = 0; j < n; ++j) sum += std::abs(a(i, j)) + std::abs(a(j, i));
    const bool negative = kind != Kind::positive_definite && i % 3 == 1;
    a(i, i) = widen(to_number<T>(negative ? -sum : sum));
  }
  return a;
}

/// What stands in the half of a matrix that does not count.
enum class Other { absent, filled };

/// A matrix in CSR form: what is not zero, and the diagonal. Of a half only that, or all with
/// fillers in the other one.
template <class T, class I>
struct Stored {
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  Stored(const Dense& a, View view, Other other = Other::absent) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < a.columns; ++j) {
        if (a(i, j) == Wide(0) && i != j) continue;
        const bool counts = view == View::full || (view == View::lower ? j <= i : j >= i);
        if (!counts && other == Other::absent) continue;
        column.push_back(static_cast<I>(j));
        value.push_back(counts ? a(i, j) : kFiller<Wide>);
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    const auto n = std::ssize(row_begin) - 1;
    return {n, n, put(row_begin), put(column), put_numbers<T>(value)};
  }
  void write_to(const CsrMatrix<T, I>& matrix) const {
    device().upload(row_begin, matrix.row_begin);
    device().upload(column, matrix.column);
    device().upload(to_numbers<T>(value), matrix.value);
  }
};

double largest(const Dense& a) {
  double most = 0;
  for (const auto& x : a.element) most = std::max(most, std::abs(x));
  return most;
}
/// The largest sum of a row's magnitudes.
double norm(const Dense& a) {
  double most = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < a.columns; ++j) sum += std::abs(a(i, j));
    most = std::max(most, sum);
  }
  return most;
}

/// Whether X solves A X = B but for a residual of 30 n eps (|A| |X| + |B|), in norm.
template <class T>
::testing::AssertionResult solves(const Dense& a, const Dense& x, const Dense& b) {
  const auto missing = b + Wide(-1) * (a * x);
  const auto eps = static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
  const double bound = 30 * static_cast<double>(a.rows) * eps * (norm(a) * largest(x) + largest(b));
  for (const auto& residual : missing.element) {
    if (!(std::abs(residual) <= bound))
      return ::testing::AssertionFailure() << "a residual of " << residual << " above " << bound;
  }
  return ::testing::AssertionSuccess();
}

template <class T>
Dense random_columns(std::int64_t n, std::int64_t columns, std::uint64_t seed) {
  return {n, columns, numbers<T>(n * columns, seed, Data::fractions)};
}

/// Expects that the solver solves A X = B with three columns, and gives X's memory.
template <class T, class I>
std::vector<T> expect_solved(DirectSolver<T, I> solver, const Dense& a,
                             const direct::SolveOptions& options = {}) {
  const auto b = random_columns<T>(a.rows, 3, 77);
  const auto on_device = put_matrix<T>(b, a.rows + 2), x = put_matrix<T>(b, a.rows + 1);
  EXPECT_EQ(solver.solve(on_device, x, options).get(), 0);
  EXPECT_TRUE(solves<T>(op(a, options.transpose), fetched(x), b));
  const auto memory = device().download(x.buffer);
  for (const auto at : {a.rows, 2 * a.rows + 1})
    EXPECT_EQ(memory[static_cast<std::size_t>(at)], kFiller<T>) << "written beyond a column";
  return memory;
}

TYPED_TEST(Direct, SolvesSystemsOfEveryKind) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto kind :
       {Kind::general, Kind::symmetric, Kind::hermitian, Kind::positive_definite}) {
    for (const auto view : {View::full, View::lower, View::upper}) {
      if (kind == Kind::general && view != View::full) continue;
      for (const std::int64_t n : {1, 2, 7, 90}) {
        SCOPED_TRACE(::testing::Message() << "kind " << static_cast<int>(kind) << " view "
                                          << static_cast<int>(view) << " n " << n);
        const auto a = dominant<T>(n, kind, static_cast<std::uint64_t>(n));
        for (const auto other : {Other::absent, Other::filled}) {
          const Stored<T, I> stored(a, view, other);
          const auto solver =
              direct::on(device()).solver(stored.on_device(), {.kind = kind, .view = view});
          for (const auto transpose : kTransposes) {
            const bool adjoint = kind == Kind::hermitian || kind == Kind::positive_definite;
            if (ComplexElement<T> && adjoint && transpose == Transpose::yes) continue;
            if (ComplexElement<T> && kind == Kind::symmetric && transpose == Transpose::conjugate)
              continue;
            for (const int steps : {0, 2})
              expect_solved(solver, a, {.transpose = transpose, .refinement = steps});
          }
        }
      }
    }
  }
}

/// Of a power of four the inverse and the root are exact.
TYPED_TEST(DirectOfAllTypes, SolvesADiagonalExactly) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 9;
  Dense a{kN, kN}, x = {kN, 2, numbers<T>(2 * kN, 5, Data::integers)};
  for (std::int64_t i = 0; i < kN; ++i) a(i, i) = i % 2 == 0 ? 4.0 : 0.25;
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    const auto b = put_matrix<T>(a * x, kN), result = put_matrix<T>(a * x, kN);
    auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device(), {kind});
    EXPECT_EQ(solver.solve(b, result).get(), 0);
    EXPECT_EQ(fetched(result).element, x.element);
  }
}

TYPED_TEST(Direct, NewValuesAndNewPatternsMakeNewFactors) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto kind : {Kind::general, Kind::hermitian, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto a = dominant<T>(40, kind, 3);
    const auto matrix = Stored<T, I>(a, View::full).on_device();
    const auto solver = direct::on(device()).solver(matrix, {kind});
    const auto first = expect_solved(solver, a);
    for (auto& x : a.element) x *= 0.5;
    for (std::int64_t i = 0; i < a.rows; ++i) a(i, i) *= 4.0;
    Stored<T, I>(a, View::full).write_to(matrix);
    expect_solved(solver, a);
    device().blas().scal(T(2), matrix.value);  // by another operation
    const auto twice = Wide(2) * a;
    expect_solved(solver, twice);

    // As many elements elsewhere: row and column i become n - 1 - i.
    auto turned = dominant<T>(40, kind, 3);
    std::reverse(turned.element.begin(), turned.element.end());
    Stored<T, I>(turned, View::full).write_to(matrix);
    expect_solved(solver, turned);
    // What was there at first gives what it gave, whatever has been there since.
    Stored<T, I>(dominant<T>(40, kind, 3), View::full).write_to(matrix);
    EXPECT_EQ(expect_solved(solver, dominant<T>(40, kind, 3)), first);
  }
}

TYPED_TEST(Direct, TheSameMatrixGivesTheSameBits) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = dominant<T>(120, Kind::general, 8);
  const auto matrix = Stored<T, I>(a, View::full).on_device();
  auto solver = direct::on(device()).solver(matrix);
  const direct::SolveOptions options{.refinement = 1};
  const auto first = expect_solved(solver, a, options);
  EXPECT_EQ(expect_solved(solver, a, options), first);
  solver.release();
  EXPECT_EQ(expect_solved(solver, a, options), first);
  auto other = direct::on(device()).solver(matrix);
  other.analyse().get();
  other.factor().get();
  EXPECT_EQ(expect_solved(other, a, options), first);
}

TYPED_TEST(Direct, TellsOfItsFactors) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 60;
  for (const auto kind :
       {Kind::general, Kind::symmetric, Kind::hermitian, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto a = dominant<T>(kN, kind, 4);
    const Stored<T, I> lower(a, kind == Kind::general ? View::full : View::lower);
    auto solver = direct::on(device()).solver(
        lower.on_device(), {kind, kind == Kind::general ? View::full : View::lower});
    const auto analysis = solver.analyse().get();
    EXPECT_EQ(analysis.outcome, direct::ready);
    const auto factors = solver.factor().get();
    EXPECT_EQ(factors.outcome, direct::ready);
    EXPECT_GE(factors.factor_nonzeros, std::ssize(lower.value));
    EXPECT_LE(factors.factor_nonzeros, 2 * kN * kN);
    if (on_cuda()) {
      EXPECT_EQ(analysis.factor_nonzeros, factors.factor_nonzeros);
      EXPECT_GT(analysis.device_bytes, 0);
    }
    // Eigenvalues have the signs of a diagonal that is dominant.
    const bool known = kind != Kind::general && (kind != Kind::symmetric || !ComplexElement<T>);
    const std::int64_t negative = kind == Kind::positive_definite ? 0 : kN / 3;
    EXPECT_EQ(factors.negative, known ? negative : -1);
    EXPECT_EQ(factors.positive, known ? kN - negative : -1);
    expect_solved(solver, a);
  }
}

/// Its diagonal is zero in places: rows have to be exchanged.
TYPED_TEST(Direct, SolvesWhatNeedsPivots) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 50;
  const auto rows = dominant<T>(kN, Kind::general, 6);
  Dense shifted{kN, kN};
  for (std::int64_t j = 0; j < kN; ++j) {
    for (std::int64_t i = 0; i < kN; ++i) shifted((i + 7) % kN, j) = rows(i, j);
  }
  expect_solved(direct::on(device()).solver(Stored<T, I>(shifted, View::full).on_device(),
                                            {.matching = true}),
                shifted, {.refinement = 2});

  // [0 B^H; B 0] with a dominant B; half of its eigenvalues are negative.
  Dense saddle{2 * kN, 2 * kN};
  for (std::int64_t j = 0; j < kN; ++j) {
    for (std::int64_t i = 0; i < kN; ++i) {
      saddle(kN + i, j) = rows(i, j);
      saddle(j, kN + i) = std::conj(rows(i, j));
    }
  }
  for (const auto view : {View::full, View::lower, View::upper}) {
    SCOPED_TRACE(static_cast<int>(view));
    const auto solver = direct::on(device()).solver(Stored<T, I>(saddle, view).on_device(),
                                                    {.kind = Kind::hermitian, .view = view});
    expect_solved(solver, saddle, {.refinement = 2});
  }
}

/// More of them than are kept.
TYPED_TEST(Direct, ForgottenFactorsAreMadeAgain) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  std::vector<Dense> matrices;
  std::vector<DirectSolver<T, I>> solvers;
  for (std::size_t i = 0; i <= direct::kKept; ++i) {
    matrices.push_back(dominant<T>(12, Kind::positive_definite, i));
    solvers.push_back(
        direct::on(device()).solver(Stored<T, I>(matrices.back(), View::upper).on_device(),
                                    {.kind = Kind::positive_definite, .view = View::upper}));
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < solvers.size(); ++i) expect_solved(solvers[i], matrices[i]);
  }
}

TYPED_TEST(Direct, AMatrixWithoutFactorsIsANumericFailure) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 5;
  Dense zero_inside{kN, kN}, negative{kN, kN};
  for (std::int64_t i = 0; i < kN; ++i) zero_inside(i, i) = negative(i, i) = 1.0;
  zero_inside(2, 2) = 0.0;
  negative(3, 3) = -1.0;
  const auto expect_numeric = [&](const Dense& a, Kind kind) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto matrix = Stored<T, I>(a, View::full).on_device();
    auto solver = direct::on(device()).solver(matrix, {kind});
    const auto b = put_matrix<T>(random_columns<T>(kN, 2, 1), kN),
               x = put_matrix<T>(Dense{kN, 2}, kN);
    EXPECT_EQ(solver.factor().wait().code(), Errc::numeric);
    const auto failed = solver.solve(b, x);
    EXPECT_EQ(failed.wait().code(), Errc::numeric);
    EXPECT_NE(failed.wait().error().native, 0);
    EXPECT_FALSE(x.buffer.valid());
    EXPECT_EQ(device().take_error().code(), Errc::numeric);

    const auto other = put_matrix<T>(Dense{kN, 2}, kN);
    const auto told = solver.solve(b, other, {.on_failure = OnFailure::report}).get();
    EXPECT_NE(told, 0);
    EXPECT_EQ(solver.factor(OnFailure::report).get().outcome, told);
    if (told == direct::no_factors) {
      for (const auto& value : got(other.buffer)) EXPECT_TRUE(std::isnan(value.real()));
    }
    EXPECT_TRUE(device().take_error().ok());
    // Other values are not hurt by those before.
    Dense good{kN, kN};
    for (std::int64_t i = 0; i < kN; ++i) good(i, i) = 2.0;
    Stored<T, I>(good, View::full).write_to(matrix);
    expect_solved(solver, good);
  };
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite})
    expect_numeric(zero_inside, kind);
  expect_numeric(negative, Kind::positive_definite);
}

TYPED_TEST(Direct, ARowWithoutElementsIsANumericFailure) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    const CsrMatrix<T, I> matrix{3, 3, put(std::vector<I>{0, 1, 1, 2}), put(std::vector<I>{0, 2}),
                                 put(std::vector<T>{T(1), T(1)})};
    auto solver = direct::on(device()).solver(matrix, {kind});
    const auto b = put(std::vector<T>(3, T(1))), x = put(std::vector<T>(3));
    EXPECT_EQ(solver.solve(b, x, {.on_failure = OnFailure::report}).get(), direct::no_factors);
    for (const auto& value : got(x)) EXPECT_TRUE(std::isnan(value.real()));
  }
}

TYPED_TEST(Direct, WhatIsNoCsrMatrixIsRefused) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Stored<T, I> good(dominant<T>(8, Kind::general, 2), View::full);
  const auto matrix = good.on_device();
  auto solver = direct::on(device()).solver(matrix);
  const auto refused = [&](auto&& change) {
    auto bad = good;
    change(bad);
    bad.write_to(matrix);
    const auto b = put(std::vector<T>(8, T(1))), x = put(std::vector<T>(8));
    EXPECT_EQ(solver.analyse().wait().code(), Errc::invalid);
    const auto failed = solver.solve(b, x, {.on_failure = OnFailure::report});
    EXPECT_EQ(failed.wait().code(), Errc::invalid);
    EXPECT_NE(failed.wait().error().message.find("not a CSR matrix"), std::string::npos);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  refused([](auto& m) { m.column[1] = m.column[0]; });
  refused([](auto& m) { m.column.back() = 8; });
  refused([](auto& m) { m.column[0] = -1; });
  refused([](auto& m) { m.column[2] = std::numeric_limits<I>::max(); });
  refused([](auto& m) { m.row_begin[0] = 1; });
  refused([](auto& m) { m.row_begin[3] = std::numeric_limits<I>::max(); });
  refused([](auto& m) { m.row_begin[3] = std::numeric_limits<I>::min(); });
  refused([](auto& m) { --m.row_begin.back(); });
  good.write_to(matrix);
  expect_solved(solver, dominant<T>(8, Kind::general, 2));
}

TYPED_TEST(Direct, NothingToSolve) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto none = device().alloc<T>(0);
  auto empty = direct::on(device()).solver(
      CsrMatrix<T, I>{0, 0, put(std::vector<I>{0}), device().alloc<I>(0), none});
  EXPECT_EQ(empty.analyse().get().outcome, direct::ready);
  EXPECT_EQ(empty.factor().get().outcome, direct::ready);
  EXPECT_EQ(empty.solve(none, none).get(), 0);
  const auto a = dominant<T>(4, Kind::general, 1);
  auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device());
  EXPECT_EQ(solver.solve(MatrixRef(none, 4, 0), MatrixRef(none, 4, 0)).get(), 0);
  solver.release();
  solver.release();  // there is nothing by now
  expect_solved(solver, a);
}

/// The five-point stencil on a square, which fills in much more than the other matrices here do.
TYPED_TEST(Direct, SolvesALaplacian) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kSide = 17, kN = kSide * kSide;
  Dense a{kN, kN};
  for (std::int64_t i = 0; i < kN; ++i) {
    a(i, i) = 4.0;
    if (i % kSide != 0) a(i, i - 1) = a(i - 1, i) = -1.0;
    if (i >= kSide) a(i, i - kSide) = a(i - kSide, i) = -1.0;
  }
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    const auto view = kind == Kind::general ? View::full : View::lower;
    const auto solver =
        direct::on(device()).solver(Stored<T, I>(a, view).on_device(), {kind, view});
    expect_solved(solver, a);
    expect_solved(solver, a, {.refinement = 3});
  }
}

TEST_F(BadArguments, OfDirectSolvers) {
  using namespace direct;
  const auto told = device().submitter().result_cell(sizeof(Factors));
  ASSERT_TRUE(told.ok());
  const auto cell = told->where;
  const auto result = put(std::vector<double>(16));
  const auto to = result.operand();
  const auto changed = [&](auto good, auto change, Errc code = Errc::invalid) {
    change(good);
    expect_refused(good, code);
  };
  const auto of_matrices = [&](const auto& good) {
    changed(good, [](auto& bad) { bad.index_dtype = DType::u32; });
    changed(good, [](auto& bad) { bad.kind = static_cast<Kind>(4); });
    changed(good, [](auto& bad) { bad.view = static_cast<View>(3); });
    changed(good, [](auto& bad) { bad.view = View::lower; });  // of a general matrix
    changed(good, [](auto& bad) { bad.matching = 2; });
    changed(good, [](auto& bad) { bad.kind = Kind::symmetric, bad.matching = 1; });
    changed(good, [](auto& bad) { bad.n = -1; });
    changed(good, [](auto& bad) { bad.n = 16; });
    changed(good, [](auto& bad) { bad.n = std::int64_t{1} << 31; });
    changed(good, [](auto& bad) { bad.nonzeros = -1; });
    changed(good, [](auto& bad) { bad.nonzeros = 17; });
    changed(good, [&](auto& bad) { bad.row_begin = absent; });
    changed(good, [&](auto& bad) { bad.column = absent; });
    changed(good, [&](auto& bad) { bad.value = unaligned; });
    changed(good, [&](auto& bad) { bad.told = absent; });
    changed(
        good, [](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);
  };
  of_matrices(Analyse{DType::f64, DType::i32, {}, {}, 0, 0, 1, 4, 5, i, i, x, cell});
  const Factor factor{DType::f64, DType::i32, {}, {}, 0, {}, 1, 4, 5, i, i, x, cell};
  of_matrices(factor);
  changed(factor, [](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  const Solve solve{DType::f64, DType::i32, {}, {}, 0, {}, {}, 0, 1,  4,
                    5,          3,          4,  5,  i, i,  x,  x, to, cell};
  of_matrices(solve);
  changed(solve, [](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  changed(solve, [](auto& bad) { bad.transpose = static_cast<Transpose>(3); });
  changed(solve, [](auto& bad) { bad.refinement = Solve::kMostRefinement + 1; });
  changed(solve, [](auto& bad) { bad.nrhs = -1; });
  changed(solve, [](auto& bad) { bad.nrhs = 4; });  // X has room for three
  changed(solve, [](auto& bad) { bad.ldb = 3; });
  changed(solve, [](auto& bad) { bad.ldx = 3; });
  changed(solve, [&](auto& bad) { bad.b = absent; });
  changed(solve, [&](auto& bad) { bad.x = unaligned; });
  changed(solve, [&](auto& bad) { bad.x = bad.b; });
  changed(solve, [&](auto& bad) { bad.x = bad.value; });

  const auto wide = put(std::vector<std::complex<double>>(16, 1.0));
  const auto wide_result = put(std::vector<std::complex<double>>(16));
  auto hermitian = solve;
  hermitian.dtype = DType::c128, hermitian.kind = Kind::hermitian;
  hermitian.value = hermitian.b = wide.operand(), hermitian.x = wide_result.operand();
  changed(hermitian, [](auto& bad) { bad.transpose = Transpose::yes; });
  changed(hermitian,
          [](auto& bad) { bad.kind = Kind::symmetric, bad.transpose = Transpose::conjugate; });

  const CsrMatrix<double, std::int32_t> matrix{4, 4, index.slice(0, 5), index.slice(0, 6),
                                               ref.slice(0, 6)};
  const auto expect_invalid = [](const auto& outcome, std::string_view what) {
    EXPECT_EQ(outcome.code(), Errc::invalid);
    if (!outcome.ok()) {
      EXPECT_NE(outcome.error().message.find(what), std::string::npos) << outcome.error().message;
    }
  };
  auto wrong = matrix;
  wrong.columns = 5;
  expect_invalid(on(device()).solver(wrong).analyse().wait(), "A, in columns");
  wrong = matrix;
  wrong.column = index.slice(0, 7);
  expect_invalid(on(device()).solver(wrong).factor().wait(), "column");
  const auto short_result = result.slice(0, 3);
  expect_invalid(on(device()).solver(matrix).solve(ref.slice(8, 4), short_result).wait(),
                 "X, in rows");
  expect_invalid(on(device())
                     .solver(matrix)
                     .solve(ref.slice(8, 4), result.slice(0, 4), {.refinement = -1})
                     .wait(),
                 "refinement");
  EXPECT_EQ(device().download(result), std::vector<double>(16));
}

}  // namespace
}  // namespace troupe::test::reference
