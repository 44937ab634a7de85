// Schur complements of sparse matrices.
#include "sparse_systems.hpp"

namespace troupe::test::systems {
namespace {

class SchurTest : public DirectTest {
 protected:
  void SetUp() override {
    DirectTest::SetUp();
    if (on_cuda()) GTEST_SKIP() << "only the cpu engine has Schur complements";
  }
};
template <class T>
class DirectSchur : public SchurTest {};
TYPED_TEST_SUITE(DirectSchur, SomeNumbersAndIndices);
template <class T>
class DirectSchurOfAllTypes : public SchurTest {};
TYPED_TEST_SUITE(DirectSchurOfAllTypes, NumbersAndIndices);

using Rows = std::vector<std::int64_t>;

template <class I>
GpuRef<I> put_rows(const Rows& rows) {
  return put(std::vector<I>(rows.begin(), rows.end()));
}

/// What is left of A in these rows and columns when all others have been eliminated.
Dense schur_complement(Dense a, const Rows& rows) {
  const auto is_kept = [&](std::int64_t row) {
    return std::binary_search(rows.begin(), rows.end(), row);
  };
  for (std::int64_t k = 0; k < a.rows; ++k) {
    if (is_kept(k)) continue;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      if (i <= k && !is_kept(i)) continue;
      const auto factor = a(i, k) / a(k, k);
      for (std::int64_t j = 0; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  Dense s{std::ssize(rows), std::ssize(rows)};
  for (std::int64_t j = 0; j < s.columns; ++j) {
    for (std::int64_t i = 0; i < s.rows; ++i)
      s(i, j) = a(rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(j)]);
  }
  return s;
}

/// S, within its tolerance, and its memory.
template <class T, class I>
std::vector<T> expect_schur(DirectSolver<T, I> solver, const Dense& a, const Rows& rows) {
  const auto count = std::ssize(rows);
  const auto s = put_matrix<T>(Dense{count, count}, count + 2);
  EXPECT_EQ(solver.schur(put_rows<I>(rows), s).get(), 0);
  const auto expected = schur_complement(a, rows), got = fetched(s);
  const auto eps = static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
  const double bound = 30 * static_cast<double>(a.rows) * eps * norm(a);
  for (std::size_t i = 0; i < expected.element.size(); ++i)
    EXPECT_LE(std::abs(got.element[i] - expected.element[i]), bound) << "element " << i;
  auto memory = device().download(s.buffer);
  for (std::int64_t j = 0; j + 1 < count; ++j) {
    const auto gap = static_cast<std::size_t>(j * (count + 2) + count);
    EXPECT_EQ(memory[gap], kFiller<T>) << "written beyond a column";
  }
  return memory;
}

/// What is eliminated is a diagonal of powers of four, all else small integers.
TYPED_TEST(DirectSchurOfAllTypes, OfADiagonalIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 12;
  const Rows rows{1, 2, 7, 11};
  Dense whole{kN, kN, numbers<T>(kN * kN, 9, Data::integers)};
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto a = whole;
    for (std::int64_t i = 0; i < kN; ++i) {
      for (std::int64_t j = 0; j < kN; ++j) {
        const bool kept = std::binary_search(rows.begin(), rows.end(), i) ||
                          std::binary_search(rows.begin(), rows.end(), j);
        if (i == j)
          a(i, j) = i % 2 == 0 ? 4.0 : 16.0;
        else if (!kept)
          a(i, j) = 0.0;
        else if (kind != Kind::general && j < i)
          a(i, j) = kind == Kind::symmetric ? a(j, i) : std::conj(a(j, i));
      }
    }
    const auto s = put_matrix<T>(Dense{4, 4}, 4);
    auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device(), {kind});
    EXPECT_EQ(solver.schur(put_rows<I>(rows), s).get(), 0);
    EXPECT_EQ(fetched(s).element, schur_complement(a, rows).element);
  }
}

TYPED_TEST(DirectSchur, FollowsItsMatrixAndItsRows) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto kind : {Kind::general, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    auto a = dominant<T>(40, kind, 5);
    const auto matrix = Stored<T, I>(a, View::full).on_device();
    auto solver = direct::on(device()).solver(matrix, {kind});
    const auto first = expect_schur(solver, a, {3, 17, 30});
    const auto solution = expect_solved(solver, a);
    expect_schur(solver, a, {0, 17, 39});
    EXPECT_EQ(expect_schur(solver, a, {3, 17, 30}), first);
    EXPECT_EQ(expect_solved(solver, a), solution);

    for (std::int64_t i = 0; i < a.rows; ++i) a(i, i) *= 2.0;
    Stored<T, I>(a, View::full).write_to(matrix);
    expect_schur(solver, a, {3, 17, 30});
    // The same list, with other rows in it.
    const auto rows = put_rows<I>({3, 17, 30});
    const auto s = put_matrix<T>(Dense{3, 3}, 3), other = put_matrix<T>(Dense{3, 3}, 3);
    solver.schur(rows, s).get();
    device().upload(std::vector<I>{1, 2, 3}, rows);
    solver.schur(rows, other).get();
    EXPECT_NE(fetched(s).element, fetched(other).element);

    Stored<T, I>(dominant<T>(40, kind, 5), View::full).write_to(matrix);
    EXPECT_EQ(expect_schur(solver, dominant<T>(40, kind, 5), {3, 17, 30}), first);
    solver.release();
    EXPECT_EQ(expect_schur(solver, dominant<T>(40, kind, 5), {3, 17, 30}), first);
  }
}

/// The Schur complement gives the kept part of the solution.
TYPED_TEST(DirectSchur, SolvesForWhatIsKept) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kN = 30;
  const Rows rows{2, 3, 29};
  const auto a = dominant<T>(kN, Kind::general, 12);
  auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device());
  const auto s = put_matrix<T>(Dense{3, 3}, 3);
  solver.schur(put_rows<I>(rows), s).get();
  // With b = 0 wherever a row is eliminated, S times the kept part of the solution is b.
  Dense b{kN, 1}, kept{3, 1}, right{3, 1};
  for (std::int64_t i = 0; i < 3; ++i)
    b(rows[static_cast<std::size_t>(i)], 0) = right(i, 0) = static_cast<double>(i + 1);
  const auto x = put_matrix<T>(Dense{kN, 1}, kN);
  solver.solve(put_matrix<T>(b, kN), x).get();
  const auto solution = fetched(x);
  for (std::int64_t i = 0; i < 3; ++i) kept(i, 0) = solution(rows[static_cast<std::size_t>(i)], 0);
  EXPECT_TRUE(solves<T>(fetched(s), kept, right));
}

TYPED_TEST(DirectSchur, OfNothing) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto none = device().alloc<T>(0);
  const auto no_rows = device().alloc<I>(0);
  auto empty = direct::on(device()).solver(
      CsrMatrix<T, I>{0, 0, put(std::vector<I>{0}), device().alloc<I>(0), none});
  EXPECT_EQ(empty.schur(no_rows, MatrixRef(none, 0, 0)).get(), 0);
  const auto a = dominant<T>(4, Kind::general, 1);
  auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device());
  EXPECT_EQ(solver.schur(no_rows, MatrixRef(none, 0, 0)).get(), 0);
}

TYPED_TEST(DirectSchur, WithoutFactorsIsANumericFailure) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  Dense a{4, 4};
  for (std::int64_t i = 0; i < 4; ++i) a(i, i) = 2.0;
  a(0, 1) = a(1, 0) = 1.0;
  a(2, 2) = 0.0;
  for (const auto kind : {Kind::general, Kind::symmetric, Kind::positive_definite}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const auto matrix = Stored<T, I>(a, View::full).on_device();
    auto solver = direct::on(device()).solver(matrix, {kind});
    const auto s = put_matrix<T>(Dense{2, 2}, 2);
    const auto rows = put_rows<I>({1, 3});
    EXPECT_EQ(solver.schur(rows, s).wait().code(), Errc::numeric);
    EXPECT_FALSE(s.buffer.valid());
    EXPECT_EQ(device().take_error().code(), Errc::numeric);
    const auto other = put_matrix<T>(Dense{2, 2}, 2);
    const auto told = solver.schur(rows, other, OnFailure::report).get();
    EXPECT_NE(told, 0);
    if (told == direct::no_factors) {
      for (const auto& value : got(other.buffer)) EXPECT_TRUE(std::isnan(value.real()));
    }
    EXPECT_TRUE(device().take_error().ok());
    // A is singular, but what is eliminated is not.
    expect_schur(solver, a, {1, 2});
  }
}

TYPED_TEST(DirectSchur, WhatIsNoListOfRowsIsRefused) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = dominant<T>(8, Kind::general, 2);
  auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device());
  for (const Rows& rows :
       {Rows{3, 3}, Rows{4, 3}, Rows{-1, 3}, Rows{3, 8}, Rows{3, std::numeric_limits<I>::max()}}) {
    const auto s = put_matrix<T>(Dense{2, 2}, 2);
    const auto failed = solver.schur(put_rows<I>(rows), s, OnFailure::report);
    EXPECT_EQ(failed.wait().code(), Errc::invalid);
    EXPECT_NE(failed.wait().error().message.find("do not ascend"), std::string::npos);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  }
  expect_schur(solver, a, {3, 7});
}

TEST_F(BadArguments, OfSchurComplements) {
  using namespace direct;
  const auto told = device().submitter().result_cell(sizeof(std::int64_t));
  ASSERT_TRUE(told.ok());
  const auto result = put(std::vector<double>(16));
  const Schur good{DType::f64, DType::i32,       {},         {}, 0, {}, 1, 4, 5, 3, 4, i, i, x,
                   i,          result.operand(), told->where};
  const auto changed = [&](auto change, Errc code = Errc::invalid) {
    auto bad = good;
    change(bad);
    expect_refused(bad, code);
  };
  changed([](auto& bad) { bad.index_dtype = DType::u32; });
  changed([](auto& bad) { bad.kind = static_cast<Kind>(4); });
  changed([](auto& bad) { bad.view = View::lower; });  // of a general matrix
  changed([](auto& bad) { bad.matching = 1; });
  changed([](auto& bad) { bad.on_failure = static_cast<OnFailure>(2); });
  changed([](auto& bad) { bad.n = 3; });  // no row is eliminated
  changed([](auto& bad) { bad.count = -1; });
  changed([](auto& bad) { bad.count = 4; });
  changed([](auto& bad) { bad.nonzeros = 17; });
  changed([](auto& bad) { bad.lds = 2; });
  changed([](auto& bad) { bad.lds = 7; });  // S has no room for it
  changed([&](auto& bad) { bad.rows = absent; });
  changed([&](auto& bad) { bad.s = unaligned; });
  changed([&](auto& bad) { bad.s = bad.value; });
  changed([&](auto& bad) { bad.told = absent; });
  changed([](auto& bad) { bad.dtype = DType::bf16; }, Errc::unsupported);

  const CsrMatrix<double, std::int32_t> matrix{4, 4, index.slice(0, 5), index.slice(0, 6),
                                               ref.slice(0, 6)};
  const auto outcome =
      on(device()).solver(matrix).schur(index.slice(0, 2), MatrixRef(result, 3, 3)).wait();
  EXPECT_EQ(outcome.code(), Errc::invalid);
  EXPECT_NE(outcome.error().message.find("S, in rows"), std::string::npos);
  EXPECT_EQ(on(device())
                .solver(matrix, {.matching = true})
                .schur(index.slice(0, 2), MatrixRef(result, 2, 2))
                .wait()
                .code(),
            Errc::invalid);
  if (on_cuda()) {
    EXPECT_EQ(
        on(device()).solver(matrix).schur(index.slice(0, 2), MatrixRef(result, 2, 2)).wait().code(),
        Errc::unsupported);
  } else {
    EXPECT_EQ(device().download(result), std::vector<double>(16));
  }
}

}  // namespace
}  // namespace troupe::test::systems
