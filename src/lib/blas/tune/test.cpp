// Measurements of products.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

class BlasTune : public ::testing::Test {};

TEST_F(BlasTune, ChoosesAndLeavesTheProductAlone) {
  constexpr std::int64_t m = 64, n = 48, k = 32;
  const auto a = random_matrix<float>(m, k, 1, Data::integers);
  const auto b = random_matrix<float>(k, n, 2, Data::integers);
  const auto x = put_matrix<float>(a, m), y = put_matrix<float>(b, k);
  const auto d = put_matrix<float>(Dense{m, n}, m);
  const auto bias = put(std::vector<float>(m, 1.0f));
  const MatmulOptions options{.epilogue = blas::Epilogue::bias, .bias = bias};
  const auto outcome =
      device().blas().tune_matmul<float, float, float>(x, y, d, options, {.repeats = 2}).get();
  EXPECT_EQ(got(d.buffer), Dense({m, n}).element);
  if (device().info().engine == "cpu") {
    EXPECT_EQ(outcome.candidates, 0);
    EXPECT_EQ(outcome.name(), "nothing to choose");
  } else {
    EXPECT_GE(outcome.candidates, 1);
    EXPECT_GT(outcome.seconds, 0);
    EXPECT_LE(outcome.seconds, outcome.seconds_before);
    EXPECT_FALSE(outcome.name().empty());
  }
  device().blas().matmul<float, float, float>(x, y, d, options).get();
  auto expected = a * b;
  for (auto& value : expected.element) value += 1;
  EXPECT_EQ(got(d.buffer), expected.element);
}

TEST_F(BlasTune, OfEightBitsAndOfProductsInPlace) {
  constexpr std::int64_t n = 32;
  const auto x = MatrixRef(put(std::vector<Float8E4M3>(n * n)), n, n);
  const auto c = MatrixRef(put(std::vector<BFloat16>(n * n)), n, n);
  const auto one = put(std::vector<float>{1});
  const auto outcome =
      device()
          .blas()
          .tune_matmul<Float8E4M3, Float8E4M3, BFloat16, BFloat16>(
              2.0f, x, x, 1.0f, c, c, {.transpose_a = Transpose::yes, .scale_a = one},
              {.candidates = 4, .repeats = 1})
          .get();
  EXPECT_EQ(outcome.candidates == 0, device().info().engine == "cpu");
}

TEST_F(BadArguments, OfTuneMatmul) {
  using namespace blas;
  TuneMatmul good;
  good.dtype = good.product.dtype = good.product.b_dtype = DType::f64;
  good.product.c_dtype = good.product.d_dtype = DType::f64;
  good.product.compute = Compute::f64;
  good.product.m = good.product.n = good.product.k = 4;
  good.product.lda = good.product.ldb = good.product.ldc = good.product.ldd = 4;
  good.candidates = good.repeats = 1;
  good.alignments = {256, 256, 256, 256, 256, 256, 0, 0};
  good.alpha = one, good.beta = Scalar::of(0.0);
  good.a = good.b = x;
  good.outcome = {kPinnedRegion | 1, 0, 0, 0, 0, sizeof(MatmulTuning)};
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  refused([](auto& op) { op.dtype = DType::f32; });
  refused([](auto& op) { op.dtype = DType::f4e2m1x2; }, Errc::unsupported);
  refused([](auto& op) { op.product.b_dtype = static_cast<DType>(99); });
  refused([](auto& op) { op.product.d_dtype = DType::f32; }, Errc::unsupported);
  refused([](auto& op) { op.candidates = 0; });
  refused([](auto& op) { op.candidates = 65; });
  refused([](auto& op) { op.repeats = 1001; });
  refused([](auto& op) { op.given = 1u << TuneMatmul::kInPlaceC; });
  refused([](auto& op) { op.given = 1u << Matmul::scale_a; });  // of f64
  refused([](auto& op) { op.alignments[2] = 3; });
  refused([](auto& op) { op.product.lda = 3; });
  refused([](auto& op) { op.product.k = 64; });
  refused([](auto& op) { op.beta = Scalar::of(1.0); });  // without c
  refused([](auto& op) { op.outcome.bytes = 8; });
}

}  // namespace
}  // namespace troupe::test::reference
