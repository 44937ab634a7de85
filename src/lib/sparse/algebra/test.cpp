// Sums of sparse matrices, and products whose structure is known.
#include <map>

#include "random_csr.hpp"
#include "real_matrix.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseAlgebra : public ::testing::Test {};
TYPED_TEST_SUITE(SparseAlgebra, NumbersAndIndices);

/// SparseElements by row and column.
using SparseElements = std::map<std::pair<std::int64_t, std::int64_t>, Wide>;

/// A CSR matrix beside the device, with sorted rows.
template <class T, class I>
struct CsrOfElements {
  std::int64_t rows = 0, columns = 0;
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  CsrOfElements(std::int64_t its_rows, std::int64_t its_columns, const SparseElements& elements)
      : rows(its_rows), columns(its_columns) {
    auto next = elements.begin();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (; next != elements.end() && next->first.first == row; ++next) {
        column.push_back(static_cast<I>(next->first.second));
        value.push_back(next->second);
      }
      row_begin.push_back(static_cast<I>(column.size()));
    }
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    return {rows, columns, put(row_begin), put(column), put_numbers<T>(value)};
  }
  /// The same structure on the device, with other values.
  [[nodiscard]] CsrMatrix<T, I> frame(const T& filler) const {
    return {rows, columns, put(row_begin), put(column), put(std::vector<T>(column.size(), filler))};
  }
};

template <class T, class I>
SparseElements sparse_elements_of(const RandomCsr<T, I>& a) {
  SparseElements elements;
  for (std::int64_t row = 0; row < a.dense.rows; ++row) {
    for (auto k = static_cast<std::size_t>(a.row_begin[static_cast<std::size_t>(row)]);
         k < static_cast<std::size_t>(a.row_begin[static_cast<std::size_t>(row) + 1]); ++k)
      elements[{row, static_cast<std::int64_t>(a.column[k])}] = a.value[k];
  }
  return elements;
}
template <class T, class I>
SparseElements random_elements(std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                               Data data) {
  return sparse_elements_of(RandomCsr<T, I>(rows, columns, seed, data));
}

SparseElements sparse_sum_of(const Wide& alpha, const SparseElements& a, const Wide& beta,
                             const SparseElements& b) {
  SparseElements sum;
  for (const auto& [place, value] : a) sum[place] += alpha * value;
  for (const auto& [place, value] : b) sum[place] += beta * value;
  return sum;
}
SparseElements sparse_product_of(const SparseElements& a, const SparseElements& b) {
  SparseElements product;
  for (const auto& [place, value] : a) {
    const auto row_end = b.lower_bound({place.second + 1, 0});
    for (auto next = b.lower_bound({place.second, 0}); next != row_end; ++next)
      product[{place.first, next->first.second}] += value * next->second;
  }
  return product;
}

/// Room for so many elements, which hold a filler.
template <class T, class I>
CsrMatrix<T, I> room_for_sum(std::int64_t rows, std::int64_t columns, std::int64_t capacity) {
  const auto room = static_cast<std::size_t>(capacity);
  return {rows, columns, put(std::vector<I>(static_cast<std::size_t>(rows) + 1, I(-7))),
          put(std::vector<I>(room, I(-7))), put(std::vector<T>(room, kFiller<T>))};
}
/// That the matrix has these elements, and behind them what was there before.
template <class T, class I>
void expect_elements(const CsrMatrix<T, I>& c, const CsrOfElements<T, I>& expected) {
  EXPECT_EQ(device().download(c.row_begin), expected.row_begin);
  auto column = expected.column;
  auto value = expected.value;
  column.resize(static_cast<std::size_t>(c.column.length()), I(-7));
  value.resize(column.size(), widen(kFiller<T>));
  EXPECT_EQ(device().download(c.column), column);
  EXPECT_EQ(got(c.value), value);
}

TYPED_TEST(SparseAlgebra, SumsOfIntegersAreExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const T alpha = number<T>(2, -1), beta = number<T>(-3, 1);
  for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                      {10, 10},
                                      {70, 33},
                                      {33, 700},
                                      {1, 3000},
                                      {600, 1},
                                      {0, 3},
                                      {3, 0}}) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << columns);
    const auto first = random_elements<T, I>(rows, columns, 401, Data::integers),
               second = random_elements<T, I>(rows, columns, 402, Data::integers);
    for (const auto& [a, b] : {std::pair{first, second},
                               {first, first},
                               {first, SparseElements()},
                               {SparseElements(), second},
                               {SparseElements(), SparseElements()}}) {
      const CsrOfElements<T, I> expected(rows, columns,
                                         sparse_sum_of(widen(alpha), a, widen(beta), b));
      const auto count = std::ssize(expected.column);
      const auto on_device_a = CsrOfElements<T, I>(rows, columns, a).on_device(),
                 on_device_b = CsrOfElements<T, I>(rows, columns, b).on_device();
      for (const auto place : kPlaces) {
        const auto c = room_for_sum<T, I>(rows, columns, count + (place == Place::host ? 0 : 5));
        EXPECT_EQ(
            device()
                .sparse()
                .geam(scalar(alpha, place), on_device_a, scalar(beta, Place::host), on_device_b, c)
                .get(),
            count);
        expect_elements(c, expected);
      }
    }
  }
}

/// What cancels out stays as an element.
TYPED_TEST(SparseAlgebra, ADifferenceOfEqualsIsAllZeros) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto elements = random_elements<T, I>(40, 50, 403, Data::fractions);
  const auto a = CsrOfElements<T, I>(40, 50, elements).on_device();
  const CsrOfElements<T, I> zeros(40, 50, sparse_sum_of(0, elements, 0, elements));
  const auto c = room_for_sum<T, I>(40, 50, a.value.length());
  EXPECT_EQ(device().sparse().geam(T(1), a, T(-1), a, c).get(), a.value.length());
  expect_elements(c, zeros);
}

TYPED_TEST(SparseAlgebra, SumsOfFractionsAreCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = random_elements<T, I>(300, 200, 404, Data::fractions),
             b = random_elements<T, I>(300, 200, 405, Data::fractions);
  const T alpha = number<T>(0.3, 0.7), beta = number<T>(-0.9, 0.1);
  const CsrOfElements<T, I> expected(300, 200, sparse_sum_of(widen(alpha), a, widen(beta), b));
  const auto on_device_a = CsrOfElements<T, I>(300, 200, a).on_device(),
             on_device_b = CsrOfElements<T, I>(300, 200, b).on_device();
  std::vector<T> first;
  for (int run = 0; run < 3; ++run) {
    const auto c = room_for_sum<T, I>(300, 200, std::ssize(expected.column));
    device().sparse().geam(alpha, on_device_a, beta, on_device_b, c);
    EXPECT_EQ(device().download(c.column), expected.column);
    const auto values = device().download(c.value);
    EXPECT_TRUE(agree(values, expected.value, Data::fractions, 4));
    if (run == 0) first = values;
    EXPECT_EQ(values, first);
  }
}

TYPED_TEST(SparseAlgebra, SumsWithoutRoomFailOrTell) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto a = random_elements<T, I>(30, 20, 406, Data::integers),
             b = random_elements<T, I>(30, 20, 407, Data::integers);
  const CsrOfElements<T, I> expected(30, 20, sparse_sum_of(1, a, 1, b));
  const auto count = std::ssize(expected.column);
  const auto on_device_a = CsrOfElements<T, I>(30, 20, a).on_device(),
             on_device_b = CsrOfElements<T, I>(30, 20, b).on_device();
  const auto sum_into = [&](const CsrMatrix<T, I>& c, OnFailure on_failure) {
    return device().sparse().geam(T(1), on_device_a, T(1), on_device_b, c, on_failure);
  };
  const auto small = room_for_sum<T, I>(30, 20, count - 1);
  EXPECT_EQ(sum_into(small, OnFailure::report).get(), count);
  const auto room = static_cast<std::size_t>(count - 1);
  EXPECT_EQ(device().download(small.row_begin), expected.row_begin);
  EXPECT_EQ(device().download(small.column), std::vector<I>(room, I(-7)));
  EXPECT_EQ(device().download(small.value), std::vector<T>(room, kFiller<T>));
  EXPECT_TRUE(device().take_error().ok());

  const auto failed = sum_into(small, OnFailure::error);
  EXPECT_EQ(failed.wait().code(), Errc::invalid);
  EXPECT_NE(failed.wait().error().message.find("overflow: the result has " + std::to_string(count)),
            std::string::npos)
      << failed.wait().error().message;
  EXPECT_FALSE(small.row_begin.valid());
  EXPECT_FALSE(small.value.valid());
  EXPECT_TRUE(on_device_a.value.valid());
  EXPECT_EQ(device().take_error().code(), Errc::invalid);

  CsrMatrix<T, I> counted{30, 20, device().template alloc<I>(31), {}, {}};
  ASSERT_EQ(sum_into(counted, OnFailure::report).get(), count);
  EXPECT_EQ(device().download(counted.row_begin), expected.row_begin);
  counted.column = device().template alloc<I>(count);
  counted.value = device().template alloc<T>(count);
  EXPECT_EQ(sum_into(counted, OnFailure::error).get(), count);
  expect_elements(counted, expected);
}

/// The cuda engine does not look: see sparse::Geam.
TYPED_TEST(SparseAlgebra, SumsOfWhatIsNoMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  const CsrOfElements<T, I> good(20, 20, random_elements<T, I>(20, 20, 408, Data::integers));
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    for (const bool left : {true, false}) {
      const auto a = (left ? bad : good).on_device(), b = (left ? good : bad).on_device();
      const auto failed = device().sparse().geam(T(1), a, T(1), b, room_for_sum<T, I>(20, 20, 400));
      EXPECT_EQ(failed.wait().code(), Errc::invalid);
      EXPECT_NE(failed.wait().error().message.find("not a CSR matrix with ascending columns"),
                std::string::npos);
      EXPECT_EQ(device().take_error().code(), Errc::invalid);
    }
  };
  const auto full = static_cast<std::size_t>(good.row_begin[10]);  // the row with all columns
  refused([&](auto& m) { std::swap(m.column[full], m.column[full + 1]); });
  refused([&](auto& m) { m.column[full] = m.column[full + 1]; });
  refused([](auto& m) { m.column[3] = 20; });
  refused([](auto& m) { m.column[3] = -1; });
  refused([](auto& m) { m.row_begin[0] = 1; });
  refused([](auto& m) { m.row_begin[5] = m.row_begin[4] - 1; });
  refused([](auto& m) { m.row_begin[20] -= 1; });
}

/// Where C has fewer elements than the product, and where it has more.
TYPED_TEST(SparseAlgebra, KnownProductsOfIntegersAreExact) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  struct Extents {
    std::int64_t rows, inner, columns;
  };
  for (const auto& [rows, inner, columns] :
       {Extents{1, 1, 1}, Extents{10, 10, 10}, Extents{60, 45, 90}, Extents{3, 400, 300},
        Extents{200, 4, 3}, Extents{0, 3, 4}, Extents{3, 0, 4}, Extents{3, 4, 0}}) {
    SCOPED_TRACE(::testing::Message() << rows << "x" << inner << "x" << columns);
    const RandomCsr<T, I> a(rows, inner, 411, Data::integers),
        b(inner, columns, 412, Data::integers);
    const auto product = sparse_product_of(sparse_elements_of(a), sparse_elements_of(b));
    auto fewer = product, more = product;
    for (auto next = fewer.begin(); next != fewer.end();)
      next =
          (next->first.first + next->first.second) % 3 == 0 ? fewer.erase(next) : std::next(next);
    for (const auto& [place, unused] : random_elements<T, I>(rows, columns, 413, Data::integers))
      more.try_emplace(place);
    const auto on_device_a = a.on_device(), on_device_b = b.on_device();
    for (const auto& elements : {product, fewer, more, SparseElements()}) {
      const CsrOfElements<T, I> expected(rows, columns, elements);
      const auto c = expected.frame(kFiller<T>);
      device().sparse().spgemm_reuse(on_device_a, on_device_b, c);
      expect_elements(c, expected);
    }
  }
}

TYPED_TEST(SparseAlgebra, KnownProductsOfFractionsAreCloseAndTheSameEachTime) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  RandomCsr<T, I> a(150, 200, 414, Data::fractions);
  const RandomCsr<T, I> b(200, 120, 415, Data::fractions);
  const CsrOfElements<T, I> frame(150, 120,
                                  sparse_product_of(sparse_elements_of(a), sparse_elements_of(b)));
  const auto on_device_a = a.on_device(), on_device_b = b.on_device();
  const auto c = frame.frame(kFiller<T>);
  for (const std::uint64_t seed : {416u, 417u}) {
    a.set_values(numbers<T>(std::ssize(a.column), seed, Data::fractions));
    device().upload(std::span<const T>(to_numbers<T>(a.value)), on_device_a.value);
    const CsrOfElements<T, I> expected(
        150, 120, sparse_product_of(sparse_elements_of(a), sparse_elements_of(b)));
    std::vector<T> first;
    for (int run = 0; run < 3; ++run) {
      device().sparse().spgemm_reuse(on_device_a, on_device_b, c);
      const auto values = device().download(c.value);
      EXPECT_TRUE(agree(values, expected.value, Data::fractions, 200));
      if (run == 0) first = values;
      EXPECT_EQ(values, first);
    }
  }
}

/// The cuda engine does not look: see sparse::SpgemmReuse.
TYPED_TEST(SparseAlgebra, KnownProductsOfWhatIsNoMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if (on_cuda()) GTEST_SKIP() << "what the indices say is checked by the cpu engine only";
  const CsrOfElements<T, I> good(20, 20, random_elements<T, I>(20, 20, 418, Data::integers));
  const auto refused = [&](auto change) {
    auto bad = good;
    change(bad);
    for (int which = 0; which < 3; ++which) {
      const auto a = (which == 0 ? bad : good).on_device(),
                 b = (which == 1 ? bad : good).on_device(),
                 c = (which == 2 ? bad : good).on_device();
      EXPECT_TRUE(device().sparse().spgemm_reuse(a, b, c).wait().ok());
      for (const auto& value : got(c.value)) EXPECT_TRUE(std::isnan(value.real()));
    }
  };
  refused([](auto& m) { m.column[3] = 20; });
  refused([](auto& m) { m.column[3] = -1; });
  refused([](auto& m) { m.row_begin[5] = std::numeric_limits<I>::max(); });
  refused([](auto& m) { m.row_begin[20] += 1; });
}

TYPED_TEST(SparseAlgebra, MatricesThatDoNotFit) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto matrix = [](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    return CsrOfElements<T, I>(rows, columns,
                               random_elements<T, I>(rows, columns, seed, Data::integers))
        .on_device();
  };
  const auto a = matrix(5, 4, 419), b = matrix(5, 4, 420), other = matrix(4, 5, 421);
  const auto room = room_for_sum<T, I>(5, 4, 20), square = room_for_sum<T, I>(5, 5, 25);
  const auto refused = [&](const auto& future) {
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), Errc::invalid);
    EXPECT_EQ(device().take_error().code(), Errc::invalid);
  };
  const auto with = [&](auto change) {
    auto left = a, c = room, product = square;
    change(left);
    refused(device().sparse().geam(T(1), left, T(1), b, c));
    refused(device().sparse().geam(T(1), b, T(1), left, c));
    refused(device().sparse().spgemm_reuse(left, other, product));
    change(c);
    refused(device().sparse().geam(T(1), a, T(1), b, c));
    change(product);
    refused(device().sparse().spgemm_reuse(a, other, product));
  };
  with([](auto& bad) { bad.rows = 4; });
  with([](auto& bad) { bad.columns = 3; });
  with([](auto& bad) { bad.row_begin = bad.row_begin.slice(0, 5); });
  with([](auto& bad) { bad.column = bad.column.slice(1, bad.column.length() - 1); });
  refused(device().sparse().geam(T(1), a, T(1), other, room));
  refused(device().sparse().geam(T(1), a, T(1), b, a));  // which is read as well
  refused(device().sparse().spgemm_reuse(a, b, square));
  EXPECT_TRUE(device().sparse().geam(T(1), a, T(1), b, room).wait().ok());
}

/// The square of a matrix of a power network, again with other values; and that it is symmetric.
TEST(SparseAlgebraReal, SquareAndDifference) {
  const auto real = real_matrix("494_bus.mtx");
  if (real.rows == 0) GTEST_SKIP() << "494_bus.mtx is not in $TROUPE_SHARED/matrices";
  const auto n = real.rows;
  const SparseElements elements(real.element.begin(), real.element.end());
  const CsrOfElements<double, std::int64_t> matrix(n, n, elements);
  const auto a = matrix.on_device();
  const CsrOfElements<double, std::int64_t> square(n, n, sparse_product_of(elements, elements));
  const auto c = room_for_sum<double, std::int64_t>(n, n, std::ssize(square.column));
  EXPECT_EQ(device().sparse().spgemm(a, a, c).get(), std::ssize(square.column));
  EXPECT_EQ(device().download(c.column), square.column);
  const auto multiplied = device().download(c.value);
  device().fill(c.value, 0.0);
  device().sparse().spgemm_reuse(a, a, c);
  const auto again = device().download(c.value);
  double largest = 0;
  for (const auto& value : square.value) largest = std::max(largest, std::abs(value));
  for (std::size_t k = 0; k < again.size(); ++k) {
    ASSERT_NEAR(again[k], square.value[k].real(), 1e-14 * largest) << k;
    ASSERT_NEAR(again[k], multiplied[k], 1e-14 * largest) << k;
  }
  device().blas().scal(2.0, a.value);
  device().sparse().spgemm_reuse(a, a, c);
  auto fourfold = again;
  for (auto& value : fourfold) value *= 4;
  EXPECT_EQ(device().download(c.value), fourfold);

  const auto count = a.value.length();
  const CsrMatrix<double, std::int64_t> transposed{n, n, device().alloc<std::int64_t>(n + 1),
                                                   device().alloc<std::int64_t>(count),
                                                   device().alloc<double>(count)};
  device().sparse().transpose(a, transposed);
  const auto difference = room_for_sum<double, std::int64_t>(n, n, count);
  EXPECT_EQ(device().sparse().geam(1.0, a, -1.0, transposed, difference).get(), count);
  EXPECT_EQ(device().download(difference.column), matrix.column);
  EXPECT_EQ(got(difference.value), std::vector<Wide>(static_cast<std::size_t>(count)));
}

}  // namespace
}  // namespace troupe::test::reference
