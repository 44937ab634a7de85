// Systems of linear equations whose matrices are sparse and triangular.
#include "real_matrix.hpp"
#include "sparse_formats.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseTriangular : public ::testing::Test {};
TYPED_TEST_SUITE(SparseTriangular, NumbersAndIndices);

constexpr Diagonal kDiagonals[] = {Diagonal::stored, Diagonal::unit};
constexpr std::int64_t kGapOfSides = 2;

/// A sparse square matrix of which either triangle can be solved with: its diagonal has no zeros,
/// and integers can be divided by it.
template <class T, class I>
struct SolvableSquare {
  Dense dense;
  std::vector<std::pair<std::int64_t, std::int64_t>> place;  ///< of its elements, by rows

  SolvableSquare(std::int64_t n, std::uint64_t seed, Data data) : dense{n, n} {
    std::mt19937_64 random(seed);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (i == j || random() % 8 == 0) place.emplace_back(i, j);
      }
    }
    set_values(seed + 1, data);
  }
  void set_values(std::uint64_t seed, Data data) {
    const auto values = numbers<T>(std::ssize(place), seed, data);
    const Wide turn = ComplexElement<T> ? Wide(0, 1) : Wide(1);
    for (std::size_t k = 0; k < place.size(); ++k) {
      const auto [i, j] = place[k];
      // Small beside the diagonal, where they are fractions.
      dense(i, j) = data == Data::integers ? values[k] : widen(to_number<T>(values[k] * 0.125));
      if (i == j) dense(i, j) = (i % 3 == 0 ? turn : i % 3 == 1 ? Wide(-1) : Wide(2));
    }
  }
  /// What counts of it.
  [[nodiscard]] Dense triangle(Uplo uplo, Diagonal diagonal) const {
    Dense result{dense.rows, dense.rows};
    for (std::int64_t i = 0; i < dense.rows; ++i) {
      for (std::int64_t j = 0; j < dense.rows; ++j) {
        if (uplo == Uplo::lower ? j < i : j > i) result(i, j) = dense(i, j);
      }
      result(i, i) = diagonal == Diagonal::unit ? Wide(1) : dense(i, i);
    }
    return result;
  }
  /// By rows, or those of the transpose: the begin of each row, the row and column of each element,
  /// and the values.
  struct Lists {
    std::vector<I> begin{0}, row, column;
    std::vector<Wide> value;
  };
  [[nodiscard]] Lists lists(bool transposed) const {
    Lists result;
    for (std::int64_t i = 0; i < dense.rows; ++i) {
      for (std::int64_t j = 0; j < dense.rows; ++j) {
        const auto at = transposed ? std::pair(j, i) : std::pair(i, j);
        if (!std::binary_search(place.begin(), place.end(), at)) continue;
        result.row.push_back(static_cast<I>(i)), result.column.push_back(static_cast<I>(j));
        result.value.push_back(dense(at.first, at.second));
      }
      result.begin.push_back(static_cast<I>(result.row.size()));
    }
    return result;
  }
  [[nodiscard]] CsrMatrix<T, I> csr() const {
    const auto all = lists(false);
    return {dense.rows, dense.rows, put(all.begin), put(all.column), put_numbers<T>(all.value)};
  }
  [[nodiscard]] CscMatrix<T, I> csc() const {
    const auto all = lists(true);
    return {dense.rows, dense.rows, put(all.begin), put(all.column), put_numbers<T>(all.value)};
  }
  [[nodiscard]] CooMatrix<T, I> coo() const {
    const auto all = lists(false);
    return {dense.rows, dense.rows, put(all.row), put(all.column), put_numbers<T>(all.value)};
  }
  [[nodiscard]] SellMatrix<T, I> sell(std::int64_t slice_rows) const {
    const auto all = lists(false);
    RandomCsr<T, I> by_rows(0, 0, 0, Data::integers);
    by_rows.dense = dense, by_rows.row_begin = all.begin, by_rows.column = all.column;
    by_rows.value = all.value;
    return put_sell(by_rows, slice_rows);
  }
};

/// Calls visit(matrix) with the matrix in each form.
template <class T, class I, class Visit>
void in_each_triangular_form(const SolvableSquare<T, I>& a, const Visit& visit) {
  visit(a.csr());
  visit(a.csc());
  visit(a.coo());
  visit(a.sell(4));
}
/// Calls visit(options, whole), where `whole` is the matrix that is solved with.
template <class T, class I, class Visit>
void with_each_option(const SolvableSquare<T, I>& a, const Visit& visit) {
  for (const auto uplo : kUplos) {
    for (const auto diagonal : kDiagonals) {
      for (const auto transpose : kTransposes) {
        SCOPED_TRACE(::testing::Message()
                     << a.dense.rows << " rows, triangle " << static_cast<int>(uplo)
                     << ", diagonal " << static_cast<int>(diagonal) << ", transposed "
                     << static_cast<int>(transpose));
        visit(TriangularOptions{uplo, diagonal, transpose},
              op(a.triangle(uplo, diagonal), transpose));
      }
    }
  }
}

/// In every form and with every option; both sorts of scalars, in place and not.
TYPED_TEST(SparseTriangular, SpsvOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const std::int64_t n : {1, 5, 70}) {
    const SolvableSquare<T, I> a(n, 301, Data::integers);
    in_each_triangular_form(a, [&](const auto& matrix) {
      with_each_option(a, [&](const TriangularOptions& options, const Dense& whole) {
        const auto solution = column(numbers<T>(n, 302, Data::integers));
        const auto b = put_numbers<T>((whole * solution).element);
        const auto x = device().template alloc<T>(n);
        device().sparse().spsv(matrix, b, x, options);
        EXPECT_EQ(got(x), solution.element);
        for (const auto place : kPlaces) {
          const auto alpha = number<T>(2, -1);
          device().sparse().spsv(matrix, b, x, options, scalar(alpha, place));
          EXPECT_EQ(got(x), (widen(alpha) * solution).element);
        }
        device().sparse().spsv(matrix, b, b, options);
        EXPECT_EQ(got(b), solution.element) << "in place";
      });
    });
  }
}

/// Also with other values in between, and where the matrix is met anew, in other buffers.
TYPED_TEST(SparseTriangular, SpsvOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 200;
  const SolvableSquare<T, I> a(kOrder, 303, Data::fractions);
  const auto right = numbers<T>(kOrder, 304, Data::fractions);
  const auto b = put_numbers<T>(right);
  std::vector<std::vector<Wide>> first;
  for (int meeting = 0; meeting < 2; ++meeting) {
    std::size_t system = 0;
    in_each_triangular_form(a, [&](const auto& matrix) {
      const auto values = device().download(matrix.value);
      with_each_option(a, [&](const TriangularOptions& options, const Dense& whole) {
        for (int run = 0; run < 3; ++run) {
          const auto x = device().template alloc<T>(kOrder);
          device().sparse().spsv(matrix, b, x, options);
          const auto solution = got(x);
          expect_solves<T>(whole, solution, right);
          if (first.size() == system) first.push_back(solution);
          EXPECT_EQ(solution, first[system]) << "meeting " << meeting << ", run " << run;
          if (run != 1) continue;
          device().upload(std::span<const T>(std::vector<T>(values.size(), T(1))), matrix.value);
          device().sparse().spsv(matrix, b, x, options);
          device().upload(std::span<const T>(values), matrix.value);
        }
        ++system;
      });
    });
  }
}

template <class T>
MatrixRef<GpuRef<T>> put_sides(blas::Order order, const Dense& a) {
  const auto leading = (order == blas::Order::column ? a.rows : a.columns) + kGapOfSides;
  return {put_numbers<T>(spread_in(order, a, leading)), a.rows, a.columns, leading};
}

/// The same for several right sides in both orders. What lies between the columns stays as it was.
TYPED_TEST(SparseTriangular, SpsmOfIntegersIsExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr auto kColumn = blas::Order::column, kRow = blas::Order::row;
  for (const auto& [n, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 130}, {6, 40}, {50, 3}}) {
    const SolvableSquare<T, I> a(n, 305, Data::integers);
    const auto solution = random_matrix<T>(n, columns, 306, Data::integers);
    const auto before = random_matrix<T>(n, columns, 307, Data::integers);
    in_each_triangular_form(a, [&](const auto& matrix) {
      with_each_option(a, [&](TriangularOptions options, const Dense& whole) {
        const auto alpha = number<T>(-1, 2);
        for (const auto& [order_b, order_x] :
             {std::pair{kColumn, kColumn}, {kColumn, kRow}, {kRow, kColumn}, {kRow, kRow}}) {
          options.order_b = order_b, options.order_x = order_x;
          const auto b = put_sides<T>(order_b, whole * solution), x = put_sides<T>(order_x, before);
          device().sparse().spsm(matrix, b, x, options, alpha);
          EXPECT_EQ(got(x.buffer), spread_in(order_x, widen(alpha) * solution, x.leading));
          if (order_b != order_x) continue;
          device().sparse().spsm(matrix, b, b, options);
          EXPECT_EQ(got(b.buffer), spread_in(order_b, solution, b.leading)) << "in place";
        }
      });
    });
  }
}

TYPED_TEST(SparseTriangular, SpsmOfFractionsIsCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 150, kColumns = 4;
  const SolvableSquare<T, I> a(kOrder, 308, Data::fractions);
  const auto right = random_matrix<T>(kOrder, kColumns, 309, Data::fractions);
  const auto b = put_matrix<T>(right, kOrder);
  in_each_triangular_form(a, [&](const auto& matrix) {
    with_each_option(a, [&](const TriangularOptions& options, const Dense& whole) {
      Dense first;
      for (int run = 0; run < 3; ++run) {
        const MatrixRef x(device().template alloc<T>(kOrder * kColumns), kOrder, kColumns);
        device().sparse().spsm(matrix, b, x, options);
        const auto solution = fetched(x);
        for (std::int64_t j = 0; j < kColumns; ++j) {
          const auto column_of = [&](const Dense& sides) {
            const auto begin = sides.element.begin() + j * kOrder;
            return std::vector<Wide>(begin, begin + kOrder);
          };
          expect_solves<T>(whole, column_of(solution), column_of(right));
        }
        if (run == 0) first = solution;
        EXPECT_EQ(solution.element, first.element) << "run " << run;
      }
    });
  });
}

/// What is known of a matrix holds for other right sides, is brought up to date where its values
/// have changed, and is void where its structure has.
TYPED_TEST(SparseTriangular, SolutionsAreThoseOfTheMatrixAsItIs) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 40;
  SolvableSquare<T, I> a(kOrder, 310, Data::integers);
  const auto matrix = a.csr();
  const auto expect_solutions = [&](const char* what) {
    with_each_option(a, [&](const TriangularOptions& options, const Dense& whole) {
      for (const std::uint64_t seed : {311u, 312u}) {
        const auto solution = random_matrix<T>(kOrder, 2, seed, Data::integers);
        const auto b = put_matrix<T>(whole * solution, kOrder);
        const MatrixRef x(device().template alloc<T>(2 * kOrder), kOrder, 2);
        device().sparse().spsm(matrix, b, x, options);
        EXPECT_EQ(got(x.buffer), solution.element) << what;
        const auto one = x.buffer.slice(0, kOrder);
        device().sparse().spsv(matrix, b.buffer.slice(kOrder, kOrder), one, options);
        EXPECT_EQ(got(one), got(x.buffer.slice(kOrder, kOrder))) << what;
      }
    });
  };
  expect_solutions("at first");
  a.set_values(313, Data::integers);
  device().upload(std::span<const T>(to_numbers<T>(a.lists(false).value)), matrix.value);
  expect_solutions("with other values");
  // Turned by half: as many elements, at other places.
  const auto turned = [&](std::int64_t i) { return kOrder - 1 - i; };
  for (auto& [i, j] : a.place) i = turned(i), j = turned(j);
  std::sort(a.place.begin(), a.place.end());
  a.dense = Dense{kOrder, kOrder};
  a.set_values(314, Data::integers);
  const auto lists = a.lists(false);
  device().upload(std::span<const I>(lists.begin), matrix.row_begin);
  device().upload(std::span<const I>(lists.column), matrix.column);
  device().upload(std::span<const T>(to_numbers<T>(lists.value)), matrix.value);
  expect_solutions("with another structure");
}

/// More of them than analyses are kept.
TYPED_TEST(SparseTriangular, ManyMatricesInTurn) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kOrder = 30;
  std::vector<SolvableSquare<T, I>> all;
  std::vector<CsrMatrix<T, I>> on_device;
  for (std::uint64_t i = 0; i < 12; ++i) {
    all.emplace_back(kOrder, 320 + i, Data::integers);
    on_device.push_back(all.back().csr());
  }
  const auto solution = column(numbers<T>(kOrder, 340, Data::integers));
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto whole = all[i].triangle(Uplo::lower, Diagonal::stored);
      const auto x = put_numbers<T>((whole * solution).element);
      device().sparse().spsv(on_device[i], x, x);
      EXPECT_EQ(got(x), solution.element) << "matrix " << i;
    }
  }
}

TYPED_TEST(SparseTriangular, WithoutElementsOrEquations) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> ones{3, 3, put(std::vector<I>(4)), device().template alloc<I>(0),
                             device().template alloc<T>(0)};
  const auto b = random_matrix<T>(3, 2, 341, Data::integers);
  const auto sides = put_matrix<T>(b, 3);
  const auto x = put_matrix<T>(Dense{3, 2}, 3);
  for (const auto transpose : kTransposes) {
    const TriangularOptions unit{Uplo::upper, Diagonal::unit, transpose};
    device().sparse().spsm(ones, sides, x, unit, T(2));
    EXPECT_EQ(got(x.buffer), (Wide(2) * b).element);
    device().sparse().spsv(ones, sides.buffer.slice(3, 3), x.buffer.slice(0, 3), unit, T(-1));
    EXPECT_EQ(got(x.buffer.slice(0, 3)),
              (Wide(-1) * column(got(sides.buffer.slice(3, 3)))).element);
  }
  const auto none = device().template alloc<T>(0);
  const CsrMatrix<T, I> empty{0, 0, put(std::vector<I>(1)), ones.column, none};
  EXPECT_TRUE(device().sparse().spsv(empty, none, none).wait().ok());
  const auto a = SolvableSquare<T, I>(3, 342, Data::integers).csr();
  const MatrixRef no_columns(none, 3, 0);
  EXPECT_TRUE(device().sparse().spsm(a, no_columns, no_columns).wait().ok());
}

TYPED_TEST(SparseTriangular, WhatDoesNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const SolvableSquare<T, I> square(4, 343, Data::integers);
  const auto csr = square.csr();
  const auto coo = square.coo();
  const auto vector = device().template alloc<T>(4), sides = device().template alloc<T>(64);
  const auto refused = [&](const Future<void>& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const auto with = [&](auto matrix, auto change) {
    change(matrix);
    refused(device().sparse().spsv(matrix, vector, vector));
    refused(device().sparse().spsm(matrix, MatrixRef(sides, 4, 2), MatrixRef(sides, 4, 2)));
  };
  with(csr, [](auto& bad) { bad.columns = 5; });
  with(square.sell(2), [](auto& bad) { bad.slice_rows = 4; });
  with(csr, [](auto& bad) { bad.row_begin = bad.row_begin.slice(0, 4); });
  with(csr, [](auto& bad) { bad.column = bad.column.slice(1, bad.column.length() - 1); });
  with(coo, [](auto& bad) { bad.row = bad.row.slice(1, bad.row.length() - 1); });
  with(coo, [](auto& bad) { bad.column = bad.column.slice(1, bad.column.length() - 1); });
  refused(device().sparse().spsv(csr, vector, sides));
  refused(device().sparse().spsv(csr, sides, vector));
  const MatrixRef x(sides.slice(0, 8), 4, 2);
  refused(device().sparse().spsm(csr, MatrixRef(sides.slice(8, 8), 2, 4), x));
  refused(device().sparse().spsm(csr, MatrixRef(sides.slice(8, 12), 4, 3), x));
  refused(device().sparse().spsm(csr, x, MatrixRef(sides.slice(8, 10), 5, 2)));
  EXPECT_TRUE(device().sparse().spsm(csr, x, x).wait().ok());
}

}  // namespace
}  // namespace troupe::test::reference
