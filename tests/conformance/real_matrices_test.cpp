// Sparse operations with the matrices of real problems that are there: rows of very different
// lengths, and elements of very different sizes.
#include "real_matrix.hpp"
#include "sparse_systems.hpp"

namespace troupe::test::systems {
namespace {

/// In the files of those that take part.
constexpr std::int64_t kMostElements = 200'000;
/// Of matrices that are factorised.
constexpr std::int64_t kMostRows = 5000;

using Elements = std::map<std::pair<std::int64_t, std::int64_t>, Wide>;

/// A matrix as it is stored in T: elements of complex ones have an imaginary part as well.
template <class T, class I>
struct RealCsr {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  bool symmetric = false;
  Elements element;
  std::vector<I> row_begin{0}, column;
  std::vector<Wide> value;

  RealCsr(std::int64_t its_rows, std::int64_t its_columns, Elements elements)
      : rows(its_rows), columns(its_columns), element(std::move(elements)) {
    for (const auto& [place, number] : element) {
      while (std::ssize(row_begin) <= place.first)
        row_begin.push_back(static_cast<I>(value.size()));
      column.push_back(static_cast<I>(place.second));
      value.push_back(number);
    }
    row_begin.resize(static_cast<std::size_t>(rows) + 1, static_cast<I>(value.size()));
  }
  [[nodiscard]] CsrMatrix<T, I> on_device() const {
    return {rows, columns, put(row_begin), put(column), put_numbers<T>(value)};
  }
  /// The elements of the longest row.
  [[nodiscard]] std::int64_t longest() const {
    I most = 0;
    for (std::size_t i = 1; i < row_begin.size(); ++i)
      most = std::max(most, row_begin[i] - row_begin[i - 1]);
    return most;
  }
};

template <class T>
class RealMatrices : public ::testing::Test {
 protected:
  using Number = typename T::first_type;
  using Index = typename T::second_type;
  static constexpr double kEpsilon =
      static_cast<double>(std::numeric_limits<RealOf<Number>>::epsilon());

  void SetUp() override {
    static const auto real = real_matrices(kMostElements);
    for (const auto& [name, matrix] : real) {
      Elements elements;
      for (const auto& [place, number] : matrix.element)
        elements[place] = widen(to_number<Number>(Wide(number, number / 4)));
      auto& made = matrices.emplace_back(matrix.rows, matrix.columns, std::move(elements));
      made.name = name, made.symmetric = matrix.symmetric;
    }
    if (matrices.empty()) GTEST_SKIP() << "there are no matrices in $TROUPE_SHARED/matrices";
  }
  /// Expects numbers that are sums of at most `terms` products, whose sizes add up to `sizes`.
  static void expect_sums(const std::vector<Wide>& actual, const std::vector<Wide>& expected,
                          const std::vector<double>& sizes, std::int64_t terms) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ASSERT_LE(std::abs(actual[i] - expected[i]),
                4 * static_cast<double>(terms + 2) * kEpsilon * sizes[i])
          << "element " << i;
    }
  }

  std::vector<RealCsr<Number, Index>> matrices;
};
TYPED_TEST_SUITE(RealMatrices, SomeNumbersAndIndices);

/// A x or A^T x, and the sum of the sizes of what is added up.
struct Products {
  std::vector<Wide> sum;
  std::vector<double> size;

  Products(const Elements& a, std::int64_t length, const std::vector<Wide>& x, bool transpose)
      : sum(static_cast<std::size_t>(length)), size(sum.size()) {
    for (const auto& [place, number] : a) {
      const auto to = static_cast<std::size_t>(transpose ? place.second : place.first);
      const auto from = static_cast<std::size_t>(transpose ? place.first : place.second);
      sum[to] += number * x[from];
      size[to] += std::abs(number) * std::abs(x[from]);
    }
  }
};

TYPED_TEST(RealMatrices, TimesAVectorInEveryFormat) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  auto sparse = device().sparse();
  for (const auto& a : this->matrices) {
    SCOPED_TRACE(a.name);
    const auto csr = a.on_device();
    const auto count = std::ssize(a.value);
    const auto x = numbers<T>(a.columns, 31, Data::fractions);
    const Products expected(a.element, a.rows, x, false);
    const auto expect_product = [&](const auto& matrix, std::int64_t rows, std::int64_t columns) {
      auto padded = x;
      padded.resize(static_cast<std::size_t>(columns));
      const auto y = device().alloc<T>(rows);
      ASSERT_TRUE(sparse.spmv(matrix, put_numbers<T>(padded), y).wait().ok());
      auto result = got(y);
      for (auto i = expected.sum.size(); i < result.size(); ++i) ASSERT_EQ(result[i], Wide(0));
      result.resize(expected.sum.size());
      this->expect_sums(result, expected.sum, expected.size, a.longest());
    };
    expect_product(csr, a.rows, a.columns);

    const CooMatrix<T, I> coo{a.rows, a.columns, device().alloc<I>(count), csr.column, csr.value};
    sparse.csr2coo(csr.row_begin, coo.row);
    expect_product(coo, a.rows, a.columns);

    for (const std::int64_t block : {2, 5}) {
      BsrMatrix<T, I> bsr;
      bsr.block_rows = (a.rows + block - 1) / block;
      bsr.block_columns = (a.columns + block - 1) / block;
      bsr.block = block, bsr.order = BlockOrder::row;
      bsr.row_begin = device().alloc<I>(bsr.block_rows + 1);
      const auto blocks = sparse.csr2bsr(csr, bsr).get();
      bsr.column = device().alloc<I>(blocks);
      bsr.value = device().alloc<T>(blocks * block * block);
      EXPECT_EQ(sparse.csr2bsr(csr, bsr).get(), blocks);
      expect_product(bsr, bsr.block_rows * block, bsr.block_columns * block);
    }

    SellMatrix<T, I> sell;
    sell.rows = a.rows, sell.columns = a.columns, sell.nonzeros = count, sell.slice_rows = 32;
    sell.slice_begin = device().alloc<I>((a.rows + 31) / 32 + 1);
    const auto stored = sparse.csr2sell(csr, sell).get();
    sell.column = device().alloc<I>(stored), sell.value = device().alloc<T>(stored);
    EXPECT_EQ(sparse.csr2sell(csr, sell).get(), stored);
    expect_product(sell, a.rows, a.columns);
  }
}

TYPED_TEST(RealMatrices, TimesColumns) {
  using T = typename TypeParam::first_type;
  constexpr std::int64_t kColumns = 5;
  for (const auto& a : this->matrices) {
    SCOPED_TRACE(a.name);
    for (const auto transpose : {Transpose::no, Transpose::yes}) {
      const bool turned = transpose == Transpose::yes;
      const auto from = turned ? a.rows : a.columns, to = turned ? a.columns : a.rows;
      const Dense b{from, kColumns, numbers<T>(from * kColumns, 32, Data::fractions)};
      const auto c = put_matrix<T>(Dense{to, kColumns}, to);
      device().sparse().spmm(a.on_device(), put_matrix<T>(b, from), c, {.transpose_a = transpose});
      const auto result = fetched(c);
      for (std::int64_t j = 0; j < kColumns; ++j) {
        const auto column = [&](const Dense& matrix) {
          const auto begin = matrix.element.begin() + j * matrix.rows;
          return std::vector<Wide>(begin, begin + matrix.rows);
        };
        const Products expected(a.element, to, column(b), turned);
        this->expect_sums(column(result), expected.sum, expected.size,
                          turned ? a.rows : a.longest());
      }
    }
  }
}

template <class T, class I>
CsrMatrix<T, I> room_for(std::int64_t rows, std::int64_t columns, std::int64_t count) {
  return {rows, columns, device().alloc<I>(rows + 1), device().alloc<I>(count),
          device().alloc<T>(count)};
}

TYPED_TEST(RealMatrices, Transposed) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& a : this->matrices) {
    SCOPED_TRACE(a.name);
    Elements turned;
    for (const auto& [place, number] : a.element) turned[{place.second, place.first}] = number;
    const RealCsr<T, I> expected(a.columns, a.rows, std::move(turned));
    const auto to = room_for<T, I>(a.columns, a.rows, std::ssize(a.value));
    device().sparse().transpose(a.on_device(), to);
    EXPECT_EQ(device().download(to.row_begin), expected.row_begin);
    EXPECT_EQ(device().download(to.column), expected.column);
    EXPECT_EQ(got(to.value), expected.value);
  }
}

/// 2 A - B, where B has the elements of A that many columns further to the left.
TYPED_TEST(RealMatrices, Added) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  for (const auto& a : this->matrices) {
    SCOPED_TRACE(a.name);
    Elements shifted, sum;
    std::map<std::pair<std::int64_t, std::int64_t>, double> sizes;
    for (const auto& [place, number] : a.element) {
      const std::pair to(place.first, (place.second + a.columns - 3) % a.columns);
      shifted[to] = number;
      sum[place] += 2.0 * number, sum[to] -= number;
      sizes[place] += 2 * std::abs(number), sizes[to] += std::abs(number);
    }
    const RealCsr<T, I> b(a.rows, a.columns, std::move(shifted)),
        expected(a.rows, a.columns, std::move(sum));
    auto to = room_for<T, I>(a.rows, a.columns, 0);
    to.column = {}, to.value = {};
    const auto from = a.on_device(), minus = b.on_device();
    const auto count = device().sparse().geam(T(2), from, T(-1), minus, to).get();
    ASSERT_EQ(count, std::ssize(expected.value));
    to = room_for<T, I>(a.rows, a.columns, count);
    EXPECT_EQ(device().sparse().geam(T(2), from, T(-1), minus, to).get(), count);
    EXPECT_EQ(device().download(to.row_begin), expected.row_begin);
    EXPECT_EQ(device().download(to.column), expected.column);
    std::vector<double> size;
    for (const auto& [place, number] : sizes) size.push_back(number);
    this->expect_sums(got(to.value), expected.value, size, 2);
  }
}

TYPED_TEST(RealMatrices, Squared) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  if constexpr (RealElement<T>) {
    for (const auto& a : this->matrices) {
      if (a.rows != a.columns) continue;
      SCOPED_TRACE(a.name);
      // Row by row, with a place for each column.
      std::vector<I> begins{0}, columns;
      std::vector<Wide> values;
      std::vector<double> sizes;
      std::vector<std::pair<double, double>> row(static_cast<std::size_t>(a.columns));
      std::vector<bool> there(row.size());
      for (std::size_t i = 0; i + 1 < a.row_begin.size(); ++i) {
        for (auto k = a.row_begin[i]; k < a.row_begin[i + 1]; ++k) {
          const auto left = static_cast<std::size_t>(k);
          const auto middle = static_cast<std::size_t>(a.column[left]);
          for (auto l = a.row_begin[middle]; l < a.row_begin[middle + 1]; ++l) {
            const auto right = static_cast<std::size_t>(l);
            const auto column = static_cast<std::size_t>(a.column[right]);
            const auto product = a.value[left].real() * a.value[right].real();
            row[column].first += product, row[column].second += std::abs(product);
            there[column] = true;
          }
        }
        for (std::size_t j = 0; j < row.size(); ++j) {
          if (!there[j]) continue;
          columns.push_back(static_cast<I>(j));
          values.emplace_back(row[j].first), sizes.push_back(row[j].second);
          there[j] = false, row[j] = {};
        }
        begins.push_back(static_cast<I>(columns.size()));
      }
      const auto matrix = a.on_device();
      const auto to = room_for<T, I>(a.rows, a.columns, std::ssize(columns));
      EXPECT_EQ(device().sparse().spgemm(matrix, matrix, to).get(), std::ssize(columns));
      EXPECT_EQ(device().download(to.row_begin), begins);
      EXPECT_EQ(device().download(to.column), columns);
      this->expect_sums(got(to.value), values, sizes, a.longest());
    }
  }
}

template <class T>
class RealSystems : public RealMatrices<T> {
 protected:
  void SetUp() override {
    RealMatrices<T>::SetUp();
    if (!this->IsSkipped()) skip_without_direct();
  }
};
TYPED_TEST_SUITE(RealSystems, SomeNumbersAndIndices);

/// B - A X is at most 30 n eps (|A| |X| + |B|), in the norm of the largest sum of a row.
TYPED_TEST(RealSystems, Solved) {
  using T = typename TypeParam::first_type;
  for (const auto& a : this->matrices) {
    if (a.rows != a.columns || a.rows > kMostRows) continue;
    std::vector<direct::Options> options{{.matching = true}};
    if (a.symmetric) {
      options.push_back({.kind = Kind::symmetric});
      options.push_back({.kind = Kind::symmetric, .view = View::upper, .matching = true});
    }
    for (const auto& how : options) {
      SCOPED_TRACE(a.name + ", kind " + std::to_string(static_cast<int>(how.kind)));
      auto solver = direct::on(device()).solver(a.on_device(), how);
      const auto right = numbers<T>(a.rows, 33, Data::fractions);
      const auto b = put_numbers<T>(right);
      const auto x = device().alloc<T>(a.rows);
      // Pivots that are replaced are repaired by the refinement.
      ASSERT_GE(solver.solve(b, x, {.refinement = 2, .on_failure = OnFailure::report}).get(), 0);
      const auto solution = got(x);
      const Products product(a.element, a.rows, solution, false);
      double norm = 0, largest_x = 0, largest_b = 0;
      for (const auto size :
           Products(a.element, a.rows, std::vector<Wide>(solution.size(), 1.0), false).size)
        norm = std::max(norm, size);
      for (std::size_t i = 0; i < right.size(); ++i) {
        largest_x = std::max(largest_x, std::abs(solution[i]));
        largest_b = std::max(largest_b, std::abs(right[i]));
      }
      const auto bound =
          30 * static_cast<double>(a.rows) * this->kEpsilon * (norm * largest_x + largest_b);
      for (std::size_t i = 0; i < right.size(); ++i)
        ASSERT_LE(std::abs(right[i] - product.sum[i]), bound) << "row " << i;
      solver.release();
    }
  }
}

}  // namespace
}  // namespace troupe::test::systems
