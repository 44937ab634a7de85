// Places that occur more than once, and scalars of 0 before what is not a number.
#include "random_csr.hpp"

namespace troupe::test::reference {
namespace {

template <class Pair>
class SparseRepeated : public ::testing::Test {};
TYPED_TEST_SUITE(SparseRepeated, NumbersAndIndices);

/// 4 x 4, with some places twice and thrice: the dense matrix, column by column, has their sums.
template <class T, class I>
struct Repeating {
  std::vector<I> row{0, 1, 1, 1, 3, 3, 3, 3}, column{0, 1, 0, 1, 2, 2, 3, 2}, begin{0, 1, 4, 4, 8};
  std::vector<T> value{T(1), T(3), T(2), T(10), T(4), T(5), T(1), T(6)};
  std::vector<T> dense{T(1), T(2), T(0), T(0),  T(0), T(13), T(0), T(0),
                       T(0), T(0), T(0), T(15), T(0), T(0),  T(0), T(1)};

  [[nodiscard]] CsrMatrix<T, I> csr() const { return {4, 4, put(begin), put(column), put(value)}; }
};
template <class T>
MatrixRef<GpuRef<T>> four_by_four(double value = -7) {
  const auto buffer = device().alloc<T>(16);
  device().fill(buffer, T(static_cast<RealOf<T>>(value)));
  return {buffer, 4, 4};
}

TYPED_TEST(SparseRepeated, AreSummedInDenseMatrices) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Repeating<T, I> a;
  auto sparse = device().sparse();
  const auto c = four_by_four<T>();
  sparse.sparse_to_dense(a.csr(), c);
  EXPECT_EQ(device().download(c.buffer), a.dense);
  sparse.sparse_to_dense(CooMatrix<T, I>{4, 4, put(a.row), put(a.column), put(a.value)}, c);
  EXPECT_EQ(device().download(c.buffer), a.dense);
  // The same elements by columns are those of the transpose.
  sparse.sparse_to_dense(CscMatrix<T, I>{4, 4, put(a.begin), put(a.column), put(a.value)}, c);
  const auto transposed = device().download(c.buffer);
  for (std::size_t k = 0; k < 16; ++k) EXPECT_EQ(transposed[k % 4 * 4 + k / 4], a.dense[k]);
  // Longer than a warp, and all at one place.
  constexpr std::int64_t kMany = 100;
  const CsrMatrix<T, I> one{1, 2, put(std::vector<I>{0, I(kMany)}), put(std::vector<I>(kMany, 1)),
                            put(std::vector<T>(kMany, T(1)))};
  const auto d = device().alloc<T>(2);
  sparse.sparse_to_dense(one, MatrixRef(d, 1, 2));
  EXPECT_EQ(device().download(d), (std::vector<T>{T(0), T(kMany)}));
}

TYPED_TEST(SparseRepeated, AreSummedInBlocks) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Repeating<T, I> a;
  auto sparse = device().sparse();
  for (const auto order : {BlockOrder::row, BlockOrder::column}) {
    const BsrMatrix<T, I> blocks{
        2, 2, 2, order, device().alloc<I>(3), device().alloc<I>(2), device().alloc<T>(8)};
    EXPECT_EQ(sparse.csr2bsr(a.csr(), blocks).get(), 2);
    const CsrMatrix<T, I> back{4, 4, device().alloc<I>(5), device().alloc<I>(8),
                               device().alloc<T>(8)};
    sparse.bsr2csr(blocks, back);
    const auto c = four_by_four<T>();
    sparse.sparse_to_dense(back, c);
    EXPECT_EQ(device().download(c.buffer), a.dense);
  }
  const BlockedEllMatrix<T, I> ell{4, 4, 2, 1, device().alloc<I>(2), device().alloc<T>(8)};
  EXPECT_EQ(sparse.csr2blocked_ell(a.csr(), ell).get(), 1);
  const auto c = four_by_four<T>();
  sparse.sparse_to_dense(ell, c);
  EXPECT_EQ(device().download(c.buffer), a.dense);
  // A block column twice in a row of blocks.
  const BlockedEllMatrix<T, I> twice{
      2, 2, 1, 2, put(std::vector<I>{1, 1, 0, -1}), put(std::vector<T>{T(2), T(3), T(4), T(0)})};
  const auto d = device().alloc<T>(4);
  sparse.sparse_to_dense(twice, MatrixRef(d, 2, 2));
  EXPECT_EQ(device().download(d), (std::vector<T>{T(0), T(4), T(5), T(0)}));
}

TYPED_TEST(SparseRepeated, AreSummedInProducts) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  const Repeating<T, I> a;
  const auto x = put(std::vector<T>(4, T(1))), y = put(std::vector<T>(4, T(-7)));
  device().sparse().spmv(a.csr(), x, y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(1), T(15), T(0), T(16)}));
}

/// With alpha = 0 nothing is added, whatever A holds; with beta = 0 what stood there is not read.
TYPED_TEST(SparseRepeated, ScalarsOfZeroCount) {
  using T = typename TypeParam::first_type;
  using I = typename TypeParam::second_type;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const T nan(static_cast<RealOf<T>>(kNaN));
  Repeating<T, I> a;
  const auto good = a.csr();
  std::fill(a.value.begin(), a.value.end(), nan);
  const auto bad = a.csr();
  auto sparse = device().sparse();
  const auto x = put(std::vector<T>(4, T(1)));
  for (const T beta : {T(0), T(2)}) {
    const T before = beta == T(0) ? nan : T(3);
    const std::vector<T> expected(4, T(3) * beta);
    for (const auto place : {Place::host, Place::device}) {
      const auto y = put(std::vector<T>(4, before));
      sparse.spmm(scalar(T(0), place), bad, MatrixRef(x, 4, 1), scalar(beta, place),
                  MatrixRef(y, 4, 1));
      EXPECT_EQ(device().download(y), expected);
    }
    const auto y = put(std::vector<T>(4, before));
    sparse.axpby(T(0), put(std::vector<T>{nan, nan}), put(std::vector<I>{0, 2}), beta, y);
    EXPECT_EQ(device().download(y), expected);
    // No column at all.
    const CsrMatrix<T, I> empty{4, 0, put(std::vector<I>(5, 0)), device().alloc<I>(0),
                                device().alloc<T>(0)};
    const auto z = put(std::vector<T>(4, before));
    sparse.spmv(Transpose::no, T(1), empty, device().alloc<T>(0), beta, z);
    EXPECT_EQ(device().download(z), expected);
  }
  const auto y = put(std::vector<T>(4, nan));
  sparse.spmv(Transpose::no, T(1), good, x, T(0), y);
  EXPECT_EQ(device().download(y), (std::vector<T>{T(1), T(15), T(0), T(16)}));
}

}  // namespace
}  // namespace troupe::test::reference
