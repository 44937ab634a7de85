#include <troupe/lib/dnn.hpp>

#include <numbers>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Mode;

/// Whether it is computed: cuDNN may have no product in f32 without tf32.
bool multiplied(const Future<void>& done, DType dtype) {
  if (answered(done, "product")) return true;
  EXPECT_EQ(dtype, DType::f32);
  return false;
}

template <class T>
class DnnMatrices : public OfLayers<T> {};
using MatrixTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnMatrices, MatrixTypes);

/// Sums of products, and what they are when each step is rounded to T.
template <class T>
struct Product {
  std::vector<double> exact;
  std::vector<T> plain;
};
template <class T>
Product<T> product(const DnnMatmulOptions& shape, const std::vector<double>& a,
                   const std::vector<double>& b) {
  Product<T> result;
  const auto m = shape.rows, n = shape.columns, k = shape.inner;
  const auto at = [](bool by_columns, std::int64_t rows, std::int64_t columns, std::int64_t i,
                     std::int64_t j) { return by_columns ? j * rows + i : i * columns + j; };
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    const auto of_a = shape.shared_a ? 0 : batch * m * k, of_b = shape.shared_b ? 0 : batch * k * n;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        T plain = rounded<T>(0);
        for (std::int64_t l = 0; l < k; ++l) {
          const auto term = a[static_cast<std::size_t>(of_a + at(shape.by_columns_a, m, k, i, l))] *
                            b[static_cast<std::size_t>(of_b + at(shape.by_columns_b, k, n, l, j))];
          sum += term;
          plain = rounded<T>(to_float(plain) + to_float(rounded<T>(term)));
        }
        result.exact.push_back(sum);
        result.plain.push_back(plain);
      }
    }
  }
  return result;
}

std::vector<DnnMatmulOptions> products() {
  return {
      {.batch = 1, .rows = 16, .columns = 24, .inner = 32},
      {.batch = 3, .rows = 8, .columns = 16, .inner = 40, .by_columns_a = true},
      {.batch = 2, .rows = 40, .columns = 8, .inner = 16, .by_columns_b = true},
      {.batch = 4, .rows = 16, .columns = 16, .inner = 8, .shared_a = true},
      {.batch = 4,
       .rows = 24,
       .columns = 8,
       .inner = 16,
       .by_columns_a = true,
       .by_columns_b = true,
       .shared_b = true},
  };
}

TYPED_TEST(DnnMatrices, ProductsOfSmallIntegersAreExact) {
  using T = TypeParam;
  std::uint64_t seed = 0;
  for (const auto& shape : products()) {
    const auto a =
        integers((shape.shared_a ? 1 : shape.batch) * shape.rows * shape.inner, 2, ++seed);
    const auto b =
        integers((shape.shared_b ? 1 : shape.batch) * shape.inner * shape.columns, 2, ++seed);
    const auto c = device().template alloc<float>(shape.batch * shape.rows * shape.columns);
    const auto done = dnn::on(device()).matmul(put(narrowed<T>(a)), put(narrowed<T>(b)), c, shape);
    // cuDNN takes wrong elements of such a matrix: the engine has no such product.
    const bool lacking = shape.shared_b && shape.by_columns_b;
    if (lacking ? !answered(done, "shared by columns") : !multiplied(done, dtype_of<T>)) continue;
    EXPECT_EQ(widened(device().download(c)), product<T>(shape, a, b).exact) << "seed " << seed;
  }
}

TYPED_TEST(DnnMatrices, ProductsAreAsExactAsAPlainLoop) {
  using T = TypeParam;
  const DnnMatmulOptions shape{.batch = 2, .rows = 64, .columns = 48, .inner = 128};
  const auto a = uniform<T>(shape.batch * shape.rows * shape.inner, 1);
  const auto b = uniform<T>(shape.batch * shape.inner * shape.columns, 2);
  const auto c = device().template alloc<T>(shape.batch * shape.rows * shape.columns);
  const auto done = dnn::on(device()).matmul(put(narrowed<T>(a)), put(narrowed<T>(b)), c, shape);
  if (!multiplied(done, dtype_of<T>)) return;
  const auto expected = product<T>(shape, a, b);
  EXPECT_TRUE(as_exact_as(expected.plain, device().download(c), expected.exact));
}

/// gelu(a b + bias) in one graph, where one b serves all of the batch.
TYPED_TEST(DnnMatrices, BiasAndGeluAreComputedWithIt) {
  using T = TypeParam;
  const DnnMatmulOptions shape{
      .batch = 2, .rows = 32, .columns = 64, .inner = 64, .shared_b = true};
  const auto a = uniform<T>(shape.batch * shape.rows * shape.inner, 3);
  const auto b = uniform<T>(shape.inner * shape.columns, 4);
  const auto bias = uniform<T>(shape.columns, 5);
  auto expected = product<T>(shape, a, b);
  for (std::size_t i = 0; i < expected.exact.size(); ++i) {
    const auto added = bias[i % bias.size()];
    const auto gelu = [](double x) { return x / 2 * (1 + std::erf(x / std::numbers::sqrt2)); };
    expected.exact[i] = gelu(expected.exact[i] + added);
    expected.plain[i] = rounded<T>(gelu(to_float(rounded<T>(to_float(expected.plain[i]) + added))));
  }
  dnn::Graph graph;
  const auto in_a = graph.input(dtype_of<T>, {shape.batch, shape.rows, shape.inner});
  const auto in_b = graph.input(dtype_of<T>, {1, shape.inner, shape.columns});
  const auto in_bias = graph.input(dtype_of<T>, {1, 1, shape.columns});
  const auto sum = dnn::pointwise(graph, Mode::add, dnn::matmul(graph, in_a, in_b), in_bias);
  const auto out = dnn::pointwise(graph, Mode::gelu, sum);
  graph.output(out, dtype_of<T>);
  const auto c = device().template alloc<T>(shape.batch * shape.rows * shape.columns);
  const auto done = dnn::on(device()).run(graph, {{in_a, put(narrowed<T>(a))},
                                                  {in_b, put(narrowed<T>(b))},
                                                  {in_bias, put(narrowed<T>(bias))},
                                                  {out, c}});
  if (!multiplied(done, dtype_of<T>)) return;
  EXPECT_TRUE(as_exact_as(expected.plain, device().download(c), expected.exact));
}

TEST(DnnMatricesRefused, WhatCannotBe) {
  const auto a = device().alloc<float>(64), b = device().alloc<float>(64),
             c = device().alloc<float>(64);
  const auto refuses = [&](const std::string& why, const dnn::Layout& of_a,
                           const dnn::Layout& of_b) {
    dnn::Graph graph;
    const auto in_a = graph.input(DType::f32, of_a), in_b = graph.input(DType::f32, of_b);
    const auto out = dnn::matmul(graph, in_a, in_b);
    if (out.present()) graph.output(out, DType::f32);
    const Result<void> refused =
        dnn::on(device()).run(graph, {{in_a, a}, {in_b, b}, {out, c}}).wait();
    ASSERT_EQ(refused.code(), Errc::invalid) << why;
    EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
    (void)device().take_error();
  };
  refuses("the same number of dimensions, at least 3", {4, 4}, {4, 4});
  refuses("the same number of dimensions, at least 3", {1, 4, 4}, {1, 1, 4, 4});
  refuses("as many columns as b has rows", {1, 4, 5}, {1, 4, 4});
  refuses("a batch has another extent than the result", {2, 4, 4}, {3, 4, 4});
}

TEST(DnnMatricesRefused, ABatchOfOneProduct) {
  const auto a = device().alloc<float>(16), c = device().alloc<float>(48);
  DnnMatmulOptions shape{
      .batch = 3, .rows = 4, .columns = 4, .inner = 4, .shared_a = true, .shared_b = true};
  const Result<void> refused = dnn::on(device()).matmul(a, a, c, shape).wait();
  ASSERT_EQ(refused.code(), Errc::invalid);
  EXPECT_NE(refused.error().message.find("a and b are shared"), std::string::npos);
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
