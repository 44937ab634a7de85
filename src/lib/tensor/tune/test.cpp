#include "tensor_values.hpp"

// Kernels of contractions: which ones a call names, and which one measurements find.

namespace troupe::test {
namespace {

using tensor::Algorithm;
using tensor::Method;

const PerLetter kTuned{{'m', 24}, {'n', 17}, {'k', 40}, {'b', 3}};

template <class T>
class TensorTuning : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }

  reference::Tensor x = draw<T>("bmk", kTuned, 1), y = draw<T>("kbn", kTuned, 2),
                    z = draw<T>("nbm", kTuned, 3);
  reference::Tensor product = reference::sum_of_products("nbm", {x, y});
};
using TunedTypes = ::testing::Types<float, BFloat16, double, std::complex<float>>;
TYPED_TEST_SUITE(TensorTuning, TunedTypes);

TYPED_TEST(TensorTuning, ChoosesAndLeavesTheResultAlone) {
  using T = TypeParam;
  const auto in_a = place<T>(this->x), in_b = place<T>(this->y), in_d = place<T>(this->z);
  auto on_device = tensor::on(device());
  const auto tune = [&](bool again) {
    return on_device
        .tune_contract(in_a(), in_b(), in_d(), {}, {.candidates = 8, .repeats = 2, .again = again})
        .get();
  };
  const auto tuning = tune(true);
  EXPECT_TRUE(holds(in_d, this->z));
  const auto known = tune(false);
  EXPECT_EQ(known.algorithm, tuning.algorithm);
  EXPECT_EQ(known.seconds, tuning.seconds) << "measured a second time";
  if (device().info().engine == "cpu") {
    EXPECT_EQ(tuning.candidates, 0);
    EXPECT_EQ(tuning.algorithm, Algorithm{});
  } else {
    EXPECT_GE(tuning.candidates, 1);
    EXPECT_LE(tuning.candidates, 8);
    EXPECT_GT(tuning.seconds, 0);
    EXPECT_LE(tuning.seconds, tuning.seconds_before);
  }
  on_device.contract(in_a(), in_b(), in_d(), {.algorithm = tuning.algorithm});
  EXPECT_TRUE(holds(in_d, this->product));
  EXPECT_EQ(not_working(device()), "");
}

/// cuTENSOR need not have each of them.
TYPED_TEST(TensorTuning, EachAlgorithmIsRightOrUnsupported) {
  using T = TypeParam;
  const auto in_a = place<T>(this->x), in_b = place<T>(this->y);
  for (const Algorithm algorithm :
       {Algorithm{}, Algorithm{.method = Method::patient}, Algorithm{.method = Method::gett},
        Algorithm{.method = Method::tgett}, Algorithm{.method = Method::ttgt},
        Algorithm{.method = Method::gett, .rank = 1}, Algorithm{.method = Method::ttgt, .rank = 63},
        Algorithm{.compiled = 1}}) {
    SCOPED_TRACE(::testing::Message() << static_cast<int>(algorithm.method) << ", "
                                      << algorithm.rank << ", " << algorithm.compiled);
    const auto in_d = place<T>(this->z);
    const auto done =
        tensor::on(device()).contract(in_a(), in_b(), in_d(), {.algorithm = algorithm}).wait();
    if (done.ok()) {
      EXPECT_TRUE(holds(in_d, this->product));
    } else {
      EXPECT_NE(device().info().engine, "cpu");
      EXPECT_EQ(done.code(), Errc::unsupported) << done.error().message;
      (void)device().take_error();
    }
  }
}

TEST(TensorTuningOf, WhatIsNoSumHasNothingToChoose) {
  if (skip_unless_tensors(); ::testing::Test::IsSkipped()) return;
  const auto in_a = place<float>(draw<float>("mk", kTuned, 1)),
             in_b = place<float>(draw<float>("mk", kTuned, 2));
  const auto in_d = place<float>(reference::tensor_of("km", kTuned));
  const auto tuning = tensor::on(device()).tune_contract(in_a(), in_b(), in_d()).get();
  EXPECT_EQ(tuning.candidates, 0);
  EXPECT_EQ(tuning.algorithm, Algorithm{});
}

TEST_F(BadArguments, OfTuneContract) {
  using namespace tensor;
  const View<double> a(ref, {2, 3}), b(ref, {3, 4}), d(ref, {2, 4});
  auto good = tuning(*contraction(a("mk"), b("kn"), d("mn"), d("mn")));
  good.candidates = good.repeats = 1;
  good.outcome = {kPinnedRegion | 1, 0, 0, 0, 0, sizeof(ContractTuning)};
  const auto refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = good;
    change(op);
    expect_refused(op, code);
  };
  refused([](auto& op) { op.dtype = DType::f32; });
  refused([](auto& op) { op.dtype = op.product.dtype = DType::i32; }, Errc::unsupported);
  refused([](auto& op) { op.candidates = 0; });
  refused([](auto& op) { op.candidates = 257; });
  refused([](auto& op) { op.repeats = 1001; });
  refused([](auto& op) { op.again = 2; });
  refused([](auto& op) { op.alignment_d = 3; });
  refused([](auto& op) { op.alignment_d = 512; });
  refused([](auto& op) { op.outcome.bytes = 8; });
  refused([&](auto& op) { op.a = absent; });
  refused([](auto& op) { op.product.loops.extents[0] = 9; });
  refused([](auto& op) { op.product.algorithm.method = static_cast<Method>(5); });
  refused([](auto& op) { op.product.algorithm.rank = kMostRanks; });
  refused([](auto& op) { op.product.algorithm.compiled = 2; });
  const auto with_algorithm = [&](Algorithm algorithm) {
    auto op = *contraction(a("mk"), b("kn"), d("mn"), d("mn"));
    op.c = {}, op.algorithm = algorithm;
    expect_refused(op);
  };
  with_algorithm({.method = static_cast<Method>(9)});
  with_algorithm({.rank = 64});
  with_algorithm({.compiled = 2});
}

}  // namespace
}  // namespace troupe::test
