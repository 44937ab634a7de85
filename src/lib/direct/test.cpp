// Systems of linear equations with sparse matrices, by their factors.
#include <numeric>

#include "sparse_systems.hpp"

namespace troupe::test::systems {
namespace {

template <class T>
class Direct : public DirectTest {};
TYPED_TEST_SUITE(Direct, SomeNumbersAndIndices);
template <class T>
class DirectOfAllTypes : public DirectTest {};
TYPED_TEST_SUITE(DirectOfAllTypes, NumbersAndIndices);

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
    const auto solver =
        direct::on(device()).solver(Stored<T, I>(saddle, view).on_device(),
                                    {.kind = Kind::hermitian, .view = view, .matching = true});
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

/// A cross whose first row and column are full: eliminated first, they fill all of the factors.
TYPED_TEST(Direct, EliminatesInTheOrderOfTheCaller) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 60;
  Dense cross{kN, kN};
  for (std::int64_t i = 0; i < kN; ++i) {
    cross(0, i) = cross(i, 0) = 1.0;
    cross(i, i) = 2.0 * kN;
  }
  std::vector<I> forward(kN), backward, mixed;
  std::iota(forward.begin(), forward.end(), I{0});
  backward.assign(forward.rbegin(), forward.rend());
  mixed = forward;
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937_64(5));
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto matrix = Stored<T, I>(cross, View::full).on_device();
    const auto order = put(forward);
    auto solver = direct::on(device()).solver(matrix, {kind}, order);
    const auto filled = solver.factor().get().factor_nonzeros;
    expect_solved(solver, cross);
    device().upload(backward, order);
    const auto sparse = solver.factor().get().factor_nonzeros;
    if (on_cuda()) {
      EXPECT_LT(2 * sparse, filled);
    }
    const auto first = expect_solved(solver, cross);
    device().upload(mixed, order);
    expect_solved(solver, cross, {.refinement = 1});
    device().upload(backward, order);
    EXPECT_EQ(expect_solved(solver, cross), first);
    const auto a = dominant<T>(kN, kind, 15);
    expect_solved(
        direct::on(device()).solver(Stored<T, I>(a, View::full).on_device(), {kind}, put(mixed)),
        a);
  }
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

}  // namespace
}  // namespace troupe::test::systems
