#include "tensor_values.hpp"

// Contractions and sums along modes.

namespace troupe::test {
namespace {

using reference::Data;
using tensor::Binary;
using tensor::Compute;
using tensor::Unary;

const PerLetter kExtents{{'a', 3}, {'b', 4}, {'c', 2}, {'d', 5}, {'i', 3},
                         {'j', 2}, {'k', 6}, {'l', 4}, {'m', 5}, {'n', 7}};

/// The modes of a contraction: as they are named, and in which order they lie.
struct Product {
  std::string a, b, d;
  std::string order_a = {}, order_b = {}, order_d = {};
};
const Product kProducts[] = {{"mk", "kn", "mn"},       {"mk", "kn", "mn", "km", "nk", "nm"},
                             {"bmk", "bkn", "bmn"},    {"mkb", "bkn", "nmb", "kmb", "nbk", "bnm"},
                             {"ijab", "abkl", "ijkl"}, {"akbc", "dk", "abcd", "kcba"},
                             {"iajb", "bkal", "klij"}, {"mkl", "lkm", "m"},
                             {"k", "k", ""},           {"mn", "", "nm"},
                             {"i", "j", "ij"},         {"ij", "ji", "ij"}};

template <class T>
class TensorContract : public Typed<T> {
 protected:
  void SetUp() override { skip_unless_tensors(); }
};
TYPED_TEST_SUITE(TensorContract, TensorTypes);

template <class T>
class TensorReduce : public TensorContract<T> {};
TYPED_TEST_SUITE(TensorReduce, TensorTypes);

TYPED_TEST(TensorContract, OfSmallIntegersIsExact) {
  using T = TypeParam;
  using S = ScalarTypeOf<T>;
  std::uint64_t seed = 1;
  for (const auto& [a, b, d, order_a, order_b, order_d] : kProducts) {
    for (const std::int64_t gap : {0, 1}) {
      SCOPED_TRACE(a + "," + b + "->" + d + ", gap " + std::to_string(gap));
      const auto x = draw<T>(a, kExtents, seed++), y = draw<T>(b, kExtents, seed++),
                 z = draw<T>(d, kExtents, seed++);
      const auto in_a = place<T>(x, order_a, gap), in_b = place<T>(y, order_b, gap),
                 in_d = place<T>(z, order_d, gap), other = place<T>(z, order_d, gap);
      const auto product = reference::sum_of_products(d, {x, y});
      tensor::on(device()).contract<T>(S(2), in_a(), in_b(), S(-1), in_d());
      EXPECT_TRUE(holds(in_d, sum(2, product, -1, z)));
      tensor::on(device()).contract<T>(S(1), in_a(), in_b(), S(3), in_d(), other());
      EXPECT_TRUE(holds(other, sum(1, product, 3, sum(2, product, -1, z))));
    }
  }
  EXPECT_EQ(not_working(device()), "");
}

TYPED_TEST(TensorContract, IsCloseToTheDefinition) {
  using T = TypeParam;
  std::uint64_t seed = 1000;
  for (const auto& [a, b, d, order_a, order_b, order_d] : kProducts) {
    SCOPED_TRACE(a + "," + b + "->" + d);
    const auto x = draw<T>(a, kExtents, seed++, Data::fractions),
               y = draw<T>(b, kExtents, seed++, Data::fractions);
    const auto in_a = place<T>(x, order_a), in_b = place<T>(y, order_b),
               in_d = place<T>(draw<T>(d, kExtents, seed++), order_d);
    tensor::on(device()).contract(in_a(), in_b(), in_d());
    const auto scale =
        reference::sum_of_products(d, {reference::magnitudes(x), reference::magnitudes(y)});
    double most = 0;
    for (const auto& value : scale.values) most = std::max(most, value.real());
    const auto terms = static_cast<double>(reference::sum_length(d, {x, y}));
    EXPECT_TRUE(holds(in_d, reference::sum_of_products(d, {x, y}),
                      2 * (terms + 2) * kComputeEpsilon<T> * most));
  }
}

TYPED_TEST(TensorContract, ReadsNothingThatIsNotAdded) {
  using T = TypeParam;
  const auto x = draw<T>("mk", kExtents, 1), y = draw<T>("kn", kExtents, 2);
  const auto in_a = place<T>(x), in_b = place<T>(y);
  auto nan = reference::tensor_of("mn", kExtents);
  for (auto& value : nan.values) value = std::numeric_limits<double>::quiet_NaN();
  const auto in_d = place<T>(nan);
  tensor::on(device()).contract(in_a(), in_b(), in_d());
  EXPECT_TRUE(holds(in_d, reference::sum_of_products("mn", {x, y})));
}

TYPED_TEST(TensorContract, OfThreeIsExact) {
  using T = TypeParam;
  using S = ScalarTypeOf<T>;
  struct Chain {
    std::string a, b, c, e;
  };
  std::uint64_t seed = 1;
  for (const auto& [a, b, c, e] : {Chain{"ij", "jk", "kl", "il"}, Chain{"ia", "ja", "ak", "ijk"},
                                   Chain{"bij", "bjk", "bkl", "lbi"}, Chain{"ai", "bj", "ab", "ij"},
                                   Chain{"i", "ij", "j", ""}}) {
    SCOPED_TRACE(a + "," + b + "," + c + "->" + e);
    const auto x = draw<T>(a, kExtents, seed++), y = draw<T>(b, kExtents, seed++),
               z = draw<T>(c, kExtents, seed++), w = draw<T>(e, kExtents, seed++);
    const auto in_a = place<T>(x), in_b = place<T>(y), in_c = place<T>(z), in_e = place<T>(w);
    const auto product = reference::sum_of_products(e, {x, y, z});
    tensor::on(device()).contract_trinary<T>(S(2), in_a(), in_b(), in_c(), S(-1), in_e(), in_e());
    EXPECT_TRUE(holds(in_e, sum(2, product, -1, w)));
    tensor::on(device()).contract_trinary(in_a(), in_b(), in_c(), in_e());
    EXPECT_TRUE(holds(in_e, product));
  }
  EXPECT_EQ(not_working(device()), "");
}

TYPED_TEST(TensorContract, RepeatsTheSameBits) {
  using T = TypeParam;
  const PerLetter extents{{'m', 67}, {'n', 33}, {'k', 129}, {'b', 3}};
  const auto in_a = place<T>(draw<T>("bmk", extents, 1, Data::fractions)),
             in_b = place<T>(draw<T>("kbn", extents, 2, Data::fractions)),
             in_d = place<T>(reference::tensor_of("nbm", extents));
  std::vector<std::vector<T>> results;
  for (int i = 0; i < 3; ++i) {
    tensor::on(device()).contract(in_a(), in_b(), in_d());
    results.push_back(device().download(in_d.view.buffer));
  }
  for (const auto& one : results)
    EXPECT_EQ(std::memcmp(one.data(), results[0].data(), one.size() * sizeof(T)), 0);
}

/// A number in a tensor of one element, whatever its modes are.
TYPED_TEST(TensorContract, ModesOfOneElementCountForNothing) {
  using T = TypeParam;
  const PerLetter extents{{'a', 1}, {'b', 1}, {'c', 1}, {'m', 4}, {'k', 1}};
  const auto x = draw<T>("amkb", extents, 1), y = draw<T>("kc", extents, 2);
  const auto in_a = place<T>(x), in_b = place<T>(y),
             in_d = place<T>(reference::tensor_of("cmab", extents));
  tensor::on(device()).contract(in_a(), in_b(), in_d());
  EXPECT_TRUE(holds(in_d, reference::sum_of_products("cmab", {x, y})));
}

template <class T>
class TensorConjugates : public TensorContract<T> {};
using ComplexTypes = ::testing::Types<std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TensorConjugates, ComplexTypes);

TYPED_TEST(TensorConjugates, EachFactor) {
  using T = TypeParam;
  const auto x = draw<T>("mk", kExtents, 1), y = draw<T>("kn", kExtents, 2);
  const auto in_a = place<T>(x), in_b = place<T>(y),
             in_d = place<T>(reference::tensor_of("mn", kExtents));
  for (const auto unary_a : {Unary::identity, Unary::conj}) {
    for (const auto unary_b : {Unary::identity, Unary::conj}) {
      tensor::on(device()).contract<T>(T(1, 2), in_a(unary_a), in_b(unary_b), T(0), in_d());
      const auto product =
          reference::sum_of_products("mn", {unary_a == Unary::conj ? reference::conjugated(x) : x,
                                            unary_b == Unary::conj ? reference::conjugated(y) : y});
      EXPECT_TRUE(holds(in_d, sum({1, 2}, product, 0, product)));
    }
  }
  const auto in_s = place<T>(reference::tensor_of("m", kExtents));
  tensor::on(device()).reduce(Binary::add, in_a(Unary::conj), in_s());
  EXPECT_TRUE(holds(in_s, reference::sum_of_products("m", {reference::conjugated(x)})));
}

template <class T>
class TensorPrecision : public TensorContract<T> {};
TYPED_TEST_SUITE(TensorPrecision, TensorTypes);

/// Factors are rounded to fewer bits, and numbers with few bits are not. No GPU has all of them.
TYPED_TEST(TensorPrecision, OfFewBitsIsExactInEach) {
  using T = TypeParam;
  const auto x = draw<T>("mk", kExtents, 1), y = draw<T>("kn", kExtents, 2);
  const auto in_a = place<T>(x), in_b = place<T>(y);
  for (std::uint32_t i = 0; i < tensor::kComputeCount; ++i) {
    const auto compute = static_cast<Compute>(i);
    if (!tensor::computes(dtype_of<T>, compute)) continue;
    SCOPED_TRACE(i);
    const auto in_d = place<T>(reference::tensor_of("mn", kExtents));
    const auto done =
        tensor::on(device()).contract(in_a(), in_b(), in_d(), {.compute = compute}).wait();
    if (done.ok()) {
      EXPECT_TRUE(holds(in_d, reference::sum_of_products("mn", {x, y})));
      continue;
    }
    EXPECT_TRUE(compute > Compute::f32 && device().info().engine != "cpu") << done.error().message;
    EXPECT_EQ(done.code(), Errc::unsupported) << done.error().message;
    (void)device().take_error();
  }
}

/// A product that adds nothing up cuTENSOR need not have.
TEST(TensorMixed, ARealFactorAndAComplexOneAreExact) {
  if (skip_unless_tensors(); ::testing::Test::IsSkipped()) return;
  using Complex = std::complex<double>;
  std::uint64_t seed = 1;
  for (const auto& [a, b, d, order_a, order_b, order_d] : kProducts) {
    SCOPED_TRACE(a + "," + b + "->" + d);
    const auto real_a = draw<double>(a, kExtents, seed++),
               real_b = draw<double>(b, kExtents, seed++);
    const auto x = draw<Complex>(a, kExtents, seed++), y = draw<Complex>(b, kExtents, seed++),
               z = draw<Complex>(d, kExtents, seed++);
    const auto in_d = place<Complex>(z, order_d);
    auto on_device = tensor::on(device());
    const auto in_a = place<double>(real_a, order_a);
    const auto in_b = place<Complex>(y, order_b);
    const Result<void> first =
        on_device.contract(Complex(0, 1), in_a(), in_b(Unary::conj), Complex(2), in_d()).wait();
    if (!first.ok()) {
      EXPECT_EQ(first.code(), Errc::unsupported) << first.error().message;
      EXPECT_TRUE(device().info().engine != "cpu" && reference::sum_length(d, {real_a, y}) == 1)
          << first.error().message;
      (void)device().take_error();
      continue;
    }
    const auto product = reference::sum_of_products(d, {real_a, reference::conjugated(y)});
    EXPECT_TRUE(holds(in_d, sum({0, 1}, product, 2, z)));
    on_device.contract(place<Complex>(x, order_a)(), place<double>(real_b, order_b)(), in_d());
    EXPECT_TRUE(holds(in_d, reference::sum_of_products(d, {x, real_b})));
  }
  EXPECT_EQ(not_working(device()), "");
}

TYPED_TEST(TensorReduce, OfSmallIntegersIsExact) {
  using T = TypeParam;
  using S = ScalarTypeOf<T>;
  std::uint64_t seed = 1;
  for (const auto& [a, d, order] : {std::array<std::string, 3>{"ijk", "i", ""},
                                    {"ijk", "ki", "jki"},
                                    {"ijk", "", ""},
                                    {"mn", "nm", ""},
                                    {"abcd", "bd", "dcba"}}) {
    for (const std::int64_t gap : {0, 2}) {
      SCOPED_TRACE(a + "->" + d + ", gap " + std::to_string(gap));
      const auto x = draw<T>(a, kExtents, seed++), z = draw<T>(d, kExtents, seed++);
      const auto in_a = place<T>(x, order, gap), in_d = place<T>(z, {}, gap),
                 other = place<T>(z, {}, gap);
      const auto total = reference::sum_of_products(d, {x});
      tensor::on(device()).reduce<T>(Binary::add, S(2), in_a(), S(3), in_d(), other());
      EXPECT_TRUE(holds(other, sum(2, total, 3, z)));
      tensor::on(device()).reduce(Binary::add, in_a(), in_d());
      EXPECT_TRUE(holds(in_d, total));
    }
  }
  EXPECT_EQ(not_working(device()), "");
}

TYPED_TEST(TensorReduce, Multiplies) {
  using T = TypeParam;
  const PerLetter extents{{'i', 5}, {'j', 4}};
  const auto x = draw<T>("ij", extents, 3);
  const auto in_a = place<T>(x), in_d = place<T>(reference::tensor_of("i", extents));
  auto expected = reference::tensor_of("i", extents);
  for (auto& value : expected.values) value = 1;
  reference::for_each_index(extents,
                            [&](const PerLetter& index) { expected.at(index) *= x.at(index); });
  tensor::on(device()).reduce(Binary::mul, in_a(), in_d());
  EXPECT_TRUE(holds(in_d, expected));
}

template <class T>
class TensorReals : public TensorContract<T> {};
using RealTypes = ::testing::Types<float, Half, BFloat16, double>;
TYPED_TEST_SUITE(TensorReals, RealTypes);

TYPED_TEST(TensorReals, HaveALargestAndASmallest) {
  using T = TypeParam;
  const auto x = draw<T>("ijk", kExtents, 3, Data::fractions);
  const auto in_a = place<T>(x, "kij");
  for (const auto which : {Binary::max, Binary::min}) {
    const auto in_d = place<T>(reference::tensor_of("j", kExtents));
    auto expected = reference::tensor_of("j", kExtents);
    for (auto& value : expected.values) value = which == Binary::max ? -9 : 9;
    reference::for_each_index({{'i', 3}, {'j', 2}, {'k', 6}}, [&](const PerLetter& index) {
      auto& best = expected.at(index);
      const auto& one = x.at(index);
      best = which == Binary::max ? std::max(best.real(), one.real())
                                  : std::min(best.real(), one.real());
    });
    tensor::on(device()).reduce(which, in_a(), in_d());
    EXPECT_TRUE(holds(in_d, expected));
  }
}

TEST(TensorAccess, OfWhatHasNoGapsAllIsWritten) {
  const auto buffer = put(std::vector<float>(64));
  const auto written = [&](const tensor::Numbers& extents, const tensor::Numbers& strides) {
    const tensor::View view(buffer, extents, strides);
    const auto op = tensor::permutation(view("ij"), view("ij"));
    EXPECT_EQ(op->access(op->b, Access::update),
              op->written(op->b) > 0 ? Access::write : Access::update);
    return op->written(op->b);
  };
  EXPECT_EQ(written({3, 4}, {}), 48u);
  EXPECT_EQ(written({3, 4}, {1, 3}), 48u);
  EXPECT_EQ(written({1, 4}, {17, 1}), 16u);
  EXPECT_EQ(written({3, 4}, {5, 1}), 0u);
  EXPECT_EQ(written({3, 4}, {8, 2}), 0u);
}

}  // namespace
}  // namespace troupe::test
