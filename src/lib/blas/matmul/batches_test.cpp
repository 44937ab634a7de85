// Products of many matrices at once.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

using blas::Epilogue;

TEST(BlasMatmulBatches, WithFactorsOnTheDevice) {
  constexpr std::int64_t m = 32, n = 48, k = 32, batch = 3;
  const auto a = random_matrix<float>(m, k * batch, 1, Data::integers),
             b = random_matrix<float>(k, n, 2, Data::integers);
  const auto bias = random_matrix<float>(m, 1, 3, Data::integers),
             c = random_matrix<float>(m, n * batch, 4, Data::integers);
  const auto x = put_any<float>(a.element);
  const auto z = put_any<float>(c.element), there = put_any<float>(bias.element);
  const auto two = put(std::vector<float>{2});
  MatmulOptions options{.epilogue = Epilogue::relu_bias, .bias = there, .batch = batch};
  std::vector<Wide> bs;
  for (std::int64_t i = 0; i < batch; ++i) bs.insert(bs.end(), b.element.begin(), b.element.end());
  const auto all_b = put_any<float>(bs);
  const auto done = device().blas().matmul<float, float, float, float>(
      two, MatrixRef(x, m, k), MatrixRef(all_b, k, n), 1.0f, MatrixRef(z, m, n), MatrixRef(z, m, n),
      options);
  ASSERT_TRUE(done.wait().ok()) << done.wait().error().message;
  const auto actual = got(z);
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto part = [i](const Dense& all, std::int64_t columns) {
      Dense one{all.rows, columns};
      std::copy_n(all.element.begin() + i * all.rows * columns, all.rows * columns,
                  one.element.begin());
      return one;
    };
    auto expected = Wide(2) * (part(a, k) * b) + part(c, n);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t row = 0; row < m; ++row)
        expected(row, j) = std::max(0.0, (expected(row, j) + bias(row, 0)).real());
    }
    EXPECT_TRUE(
        std::equal(expected.element.begin(), expected.element.end(), actual.begin() + i * m * n))
        << "matrix " << i;
  }
}

}  // namespace
}  // namespace troupe::test::reference
