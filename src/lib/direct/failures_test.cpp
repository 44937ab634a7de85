// Sparse matrices without factors, what is no matrix, and wrong arguments.
#include "sparse_systems.hpp"

namespace troupe::test::systems {
namespace {

template <class T>
class DirectFailures : public DirectTest {};
TYPED_TEST_SUITE(DirectFailures, SomeNumbersAndIndices);

TYPED_TEST(DirectFailures, AMatrixWithoutFactorsIsANumericFailure) {
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

TYPED_TEST(DirectFailures, ARowWithoutElementsIsANumericFailure) {
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

/// Two rows have elements in one column alone.
TYPED_TEST(DirectFailures, ASingularPatternIsANumericFailure) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const bool matching : {false, true}) {
    SCOPED_TRACE(matching);
    const CsrMatrix<T, I> matrix{3, 3, put(std::vector<I>{0, 1, 2, 4}),
                                 put(std::vector<I>{0, 0, 1, 2}), put(std::vector<T>(4, T(1)))};
    auto solver = direct::on(device()).solver(matrix, {.matching = matching});
    const auto b = put(std::vector<T>(3, T(1))), x = put(std::vector<T>(3));
    EXPECT_EQ(solver.solve(b, x).wait().code(), Errc::numeric);
    EXPECT_EQ(device().take_error().code(), Errc::numeric);
  }
}

TYPED_TEST(DirectFailures, WhatIsNoCsrMatrixIsRefused) {
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

TYPED_TEST(DirectFailures, WhatIsNoOrderIsRefused) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = dominant<T>(4, Kind::general, 2);
  const auto order = put(std::vector<I>{3, 1, 0, 2});
  auto solver = direct::on(device()).solver(Stored<T, I>(a, View::full).on_device(), {}, order);
  expect_solved(solver, a);
  for (const auto& bad :
       {std::vector<I>{3, 1, 0, 3}, std::vector<I>{4, 1, 0, 2}, std::vector<I>{3, -1, 0, 2}}) {
    device().upload(bad, order);
    EXPECT_EQ(solver.analyse().wait().code(), Errc::invalid);
    EXPECT_EQ(solver.factor(OnFailure::report).wait().code(), Errc::invalid);
    const auto x = put(std::vector<T>(4));
    const auto failed = solver.solve(put(std::vector<T>(4)), x, {.on_failure = OnFailure::report});
    EXPECT_EQ(failed.wait().code(), Errc::invalid);
    EXPECT_NE(failed.wait().error().message.find("no permutation"), std::string::npos);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  }
  device().upload(std::vector<I>{0, 1, 2, 3}, order);
  expect_solved(solver, a);
}

TYPED_TEST(DirectFailures, NothingToSolve) {
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
    changed(good, [](auto& bad) { bad.kind = Kind::positive_definite, bad.matching = 1; });
    changed(good, [](auto& bad) { bad.n = -1; });
    changed(good, [](auto& bad) { bad.n = 16; });
    changed(good, [](auto& bad) { bad.n = std::int64_t{1} << 31; });
    changed(good, [](auto& bad) { bad.nonzeros = -1; });
    changed(good, [](auto& bad) { bad.nonzeros = 17; });
    changed(good, [&](auto& bad) { bad.row_begin = absent; });
    changed(good, [&](auto& bad) { bad.column = absent; });
    changed(good, [&](auto& bad) { bad.value = unaligned; });
    changed(good, [&](auto& bad) { bad.told = absent; });
    changed(good, [&](auto& bad) {
      bad.order = bad.column;
      bad.order.bytes = 12;  // of three rows
    });
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
  expect_invalid(on(device()).solver(matrix, {}, index.slice(0, 5)).factor().wait(), "order");
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
}  // namespace troupe::test::systems
