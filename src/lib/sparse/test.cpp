#include <troupe/lib/sparse.hpp>

#include <map>
#include <numeric>

#include "conformance.hpp"
#include "csr_matrix.hpp"

namespace troupe::test {
namespace {

template <class Pair>
class SparseOps : public ::testing::Test {};
TYPED_TEST_SUITE(SparseOps, RealsAndIndices);

TYPED_TEST(SparseOps, Spmv) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  struct MatrixShape {
    std::int64_t m, n;
  };
  for (const auto& [m, n] :
       {MatrixShape{1, 1}, MatrixShape{10, 10}, MatrixShape{300, 170}, MatrixShape{64, 1000}}) {
    const Matrix<T, I> matrix(m, n, 21);
    const auto on_device = matrix.on_device();
    const auto x = random_values<T>(n, 22), y = random_values<T>(m, 23);
    const auto dx = put(x);
    const auto product = matrix.times(x);
    for (const auto alpha_at : {Place::host, Place::device}) {
      for (const auto beta_at : {Place::host, Place::device}) {
        SCOPED_TRACE(::testing::Message() << m << "x" << n);
        const auto dy = put(y);
        device().sparse().spmv(on_device, dx, dy, scalar(T(2), alpha_at), scalar(T(-0.5), beta_at));
        std::vector<double> expected;
        for (std::size_t i = 0; i < product.size(); ++i)
          expected.push_back(2 * product[i] - 0.5 * double{y[i]});
        EXPECT_TRUE(close(device().download(dy), expected, static_cast<double>(n), 2));
      }
    }
    const auto undefined =
        put(std::vector<T>(static_cast<std::size_t>(m), std::numeric_limits<T>::quiet_NaN()));
    device().sparse().spmv(on_device, dx, undefined);
    EXPECT_TRUE(close(device().download(undefined), product, static_cast<double>(n), 1))
        << "beta = 0 over NaN";
  }
}

TYPED_TEST(SparseOps, SpmvSeesChangedValues) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Matrix<T, I> matrix(50, 50, 24);
  const auto on_device = matrix.on_device();
  const auto x = random_values<T>(50, 25);
  const auto dx = put(x), dy = device().template alloc<T>(50);
  device().sparse().spmv(on_device, dx, dy);
  device().blas().scal(T(3), on_device.value);
  device().sparse().spmv(on_device, dx, dy);
  auto expected = matrix.times(x);
  for (auto& value : expected) value *= 3;
  EXPECT_TRUE(close(device().download(dy), expected, 50, 3));
}

/// The same buffers, another pattern: what an engine has prepared for the one is void.
TYPED_TEST(SparseOps, SpmvSeesAChangedPattern) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr std::int64_t kRows = 4000;
  const auto x = random_values<T>(kRows, 31);
  // As many elements as rows: one in each row, then all in the last one.
  Matrix<T, I> matrix(1, kRows, 32);
  matrix.rows = kRows;
  matrix.column.resize(kRows);
  std::iota(matrix.column.begin(), matrix.column.end(), I{0});
  matrix.row_begin.resize(kRows + 1);
  std::iota(matrix.row_begin.begin(), matrix.row_begin.end(), I{0});
  matrix.value = random_values<T>(kRows, 33);
  const auto on_device = matrix.on_device();
  const auto dx = put(x), dy = put(x);
  device().sparse().spmv(on_device, dx, dy);
  EXPECT_TRUE(close(device().download(dy), matrix.times(x), 1, 1));
  std::fill(matrix.row_begin.begin(), matrix.row_begin.end() - 1, I{0});
  device().upload(std::span<const I>(matrix.row_begin), on_device.row_begin);
  device().sparse().spmv(on_device, dx, dy);
  EXPECT_TRUE(close(device().download(dy), matrix.times(x), static_cast<double>(kRows), 1));
}

TYPED_TEST(SparseOps, SpmvOfAnEmptyMatrix) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const CsrMatrix<T, I> empty{3, 3, put(std::vector<I>{0, 0, 0, 0}), device().template alloc<I>(0),
                              device().template alloc<T>(0)};
  const auto x = put(std::vector<T>{1, 2, 3}), y = put(std::vector<T>{4, 5, 6});
  device().sparse().spmv(empty, x, y, T(1), T(2));
  EXPECT_EQ(device().download(y), (std::vector<T>{8, 10, 12}));
}

/// The elements of the product by rows and columns, whatever their values.
TYPED_TEST(SparseOps, Gather) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const auto source = random_values<T>(1000, 26);
  std::vector<I> index;
  std::mt19937_64 random(27);
  for (int i = 0; i < 3000; ++i) index.push_back(static_cast<I>(random() % source.size()));
  const auto destination = device().template alloc<T>(std::ssize(index));
  device().sparse().gather(put(source), put(index), destination);
  std::vector<T> expected;
  for (const auto i : index) expected.push_back(source[static_cast<std::size_t>(i)]);
  EXPECT_EQ(device().download(destination), expected);
}

}  // namespace
}  // namespace troupe::test
