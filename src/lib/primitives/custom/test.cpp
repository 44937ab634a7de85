#include <troupe/lib/primitives/custom.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>

#include "compiled.hpp"

/// Operators of the program's own.
namespace troupe::test {
namespace {

using primitives::CustomOperator;

class PrimitiveCustom : public NeedsKernels {};

/// Around the sizes of tiles and of what one block takes.
constexpr std::int64_t kCustomLengths[] = {0,    1,    2,    3,         4,         255,
                                           1023, 1024, 1025, 1'000'003, 1'048'576, 1'048'577};

/// x -> factor x + addend, modulo 2^32 or 2^64.
template <class U>
struct Affine {
  U factor = 1, addend = 0;
  bool operator==(const Affine&) const = default;
};
/// First a, then b: the order matters, the brackets do not.
template <class U>
Affine<U> followed(Affine<U> a, Affine<U> b) {
  return {b.factor * a.factor, b.factor * a.addend + b.addend};
}
constexpr auto kAffine = R"(
template <class U>
struct Affine {
  U factor, addend;
};
struct Follow {
  template <class U>
  __device__ Affine<U> operator()(const Affine<U>& a, const Affine<U>& b) const {
    return {b.factor * a.factor, b.factor * a.addend + b.addend};
  }
};
)";

/// Elements as what a buffer consists of, and back.
template <class E, class T>
GpuRef<E> put_elements(const std::vector<T>& elements) {
  std::vector<E> parts(elements.size() * sizeof(T) / sizeof(E));
  if (!parts.empty()) std::memcpy(parts.data(), elements.data(), elements.size() * sizeof(T));
  return put(parts);
}
template <class T, class E>
std::vector<T> elements_in(const GpuRef<E>& buffer) {
  const auto parts = device().download(buffer);
  std::vector<T> elements(parts.size() * sizeof(E) / sizeof(T));
  if (!parts.empty())
    std::memcpy(static_cast<void*>(elements.data()), parts.data(), elements.size() * sizeof(T));
  return elements;
}

template <class U>
std::vector<Affine<U>> random_maps(std::int64_t n) {
  std::mt19937_64 random(111);
  std::vector<Affine<U>> maps(static_cast<std::size_t>(n));
  for (auto& map : maps) map = {static_cast<U>(random() | 1), static_cast<U>(random())};
  return maps;
}

template <class U>
void check_affine_maps(const std::string& type) {
  using T = Affine<U>;
  const auto follow =
      primitives::compile_reduction<T>(device(), {"Follow{}", kAffine, {type}}).get();
  const T initial{3, 5};
  for (const auto n : kCustomLengths) {
    SCOPED_TRACE(n);
    const auto maps = random_maps<U>(n);
    std::vector<T> inclusive(maps.size()), exclusive(maps.size());
    std::partial_sum(maps.begin(), maps.end(), inclusive.begin(), followed<U>);
    T all = initial;
    for (std::size_t i = 0; i < maps.size(); ++i) {
      exclusive[i] = all;
      all = followed(all, maps[i]);
    }
    const auto x = put_elements<U>(maps);
    const auto result = device().alloc<std::uint8_t>(sizeof(T));
    follow.reduce(x, result, initial);
    EXPECT_EQ(elements_in<T>(result), std::vector<T>{all});

    const auto around = put_elements<U>(std::vector<T>(maps.size() + 2));
    const auto y = around.slice(2, 2 * n);
    follow.inclusive_scan(x, y).get();
    EXPECT_EQ(elements_in<T>(y), inclusive);
    follow.exclusive_scan(x, y, initial);
    EXPECT_EQ(elements_in<T>(y), exclusive);
    EXPECT_EQ(elements_in<T>(around.slice(0, 2)), std::vector<T>(1));
    EXPECT_EQ(elements_in<T>(around.slice(2 * n + 2, 2)), std::vector<T>(1));
    EXPECT_EQ(elements_in<T>(x), maps) << "the input has changed";

    follow.exclusive_scan(x, x, initial);
    EXPECT_EQ(elements_in<T>(x), exclusive);
  }
}

TEST_F(PrimitiveCustom, OperatorsThatDoNotCommute) {
  check_affine_maps<std::uint32_t>("Affine<unsigned>");
}

TEST_F(PrimitiveCustom, ElementsOf16Bytes) {
  check_affine_maps<std::uint64_t>("Affine<unsigned long long>");
}

/// Numbers need no names.
TEST_F(PrimitiveCustom, ALambdaOfNumbers) {
  const auto larger = primitives::compile_reduction<float>(
                          device(), {"[](float a, float b) { return a > b ? a : b; }"})
                          .get();
  std::vector<float> values(50'000);
  std::mt19937_64 random(112);
  for (auto& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  const auto x = put(values), y = device().alloc<float>(50'000), result = device().alloc<float>(1);
  larger.reduce(x, result, -2.0f);
  EXPECT_EQ(device().download(result)[0], *std::max_element(values.begin(), values.end()));
  larger.inclusive_scan(x, y);
  std::partial_sum(values.begin(), values.end(), values.begin(),
                   [](float a, float b) { return a > b ? a : b; });
  EXPECT_EQ(device().download(y), values);
  larger.inclusive_scan(x, x);
  EXPECT_EQ(device().download(x), values);
}

/// Sums of numbers that are rounded are the same in each run.
TEST_F(PrimitiveCustom, RoundedSumsHaveTheSameBitsInEachRun) {
  const auto sum =
      primitives::compile_reduction<double>(device(), {"[](double a, double b) { return a + b; }"})
          .get();
  std::vector<double> values(300'001);
  std::mt19937_64 random(113);
  for (auto& value : values) value = std::uniform_real_distribution<double>(0, 1)(random);
  const auto x = put(values), y = device().alloc<double>(300'001), again = y.slice(0, 1);
  const auto result = device().alloc<double>(2);
  sum.reduce(x, result.slice(0, 1), 0.0);
  sum.reduce(x, result.slice(1, 1), 0.0);
  const auto sums = device().download(result);
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_NEAR(sums[0], std::accumulate(values.begin(), values.end(), 0.0), 1e-6);
  sum.inclusive_scan(x, y);
  const auto first = device().download(y);
  sum.inclusive_scan(x, y);
  EXPECT_EQ(device().download(y), first);
}

struct Found {
  float value;
  std::int32_t index;
};
constexpr auto kFound = R"(
struct Found {
  float value;
  int index;
};
struct Positive {
  __device__ bool operator()(const Found& found) const { return found.value > 0; }
};
)";

TEST_F(PrimitiveCustom, SelectIf) {
  const auto positive =
      primitives::compile_selection<Found>(device(), {"Positive{}", kFound, {"Found"}}).get();
  for (const auto n : kCustomLengths) {
    for (const std::int64_t missing : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << n << ", " << missing << " without room");
      std::mt19937_64 random(114);
      std::vector<Found> all(static_cast<std::size_t>(n));
      std::vector<std::int32_t> expected;
      for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = {static_cast<float>(random() % 3) - 1, static_cast<std::int32_t>(i)};
        if (all[i].value > 0) expected.push_back(all[i].index);
      }
      const auto found = std::ssize(expected), room = std::max<std::int64_t>(0, found - missing);
      expected.resize(static_cast<std::size_t>(room));
      expected.push_back(7);
      const auto selected = put_elements<float>(std::vector<Found>(expected.size(), {1, 7}));
      const auto count = device().alloc<std::int64_t>(1);
      positive.select_if(put_elements<float>(all), selected.slice(0, 2 * room), count);
      EXPECT_EQ(device().download(count)[0], found);
      std::vector<std::int32_t> indices;
      for (const auto& one : elements_in<Found>(selected)) indices.push_back(one.index);
      EXPECT_EQ(indices, expected);
    }
  }
}

TEST_F(PrimitiveCustom, TransformsFromOneTypeToAnother) {
  const auto rounded = primitives::compile_transform<float, std::int64_t>(
                           device(), {"[](float x) { return (long long)(x) + 1; }"})
                           .get();
  const auto doubled =
      primitives::compile_transform<float, float>(device(), {"[](float x) { return 2 * x; }"})
          .get();
  for (const auto n : kCustomLengths) {
    SCOPED_TRACE(n);
    std::vector<float> values(static_cast<std::size_t>(n)), twice;
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<std::int64_t> expected;
    for (const auto value : values) {
      expected.push_back(static_cast<std::int64_t>(value) + 1);
      twice.push_back(2 * value);
    }
    const auto x = put(values);
    const auto y = device().alloc<std::int64_t>(n);
    rounded(x, y).get();
    EXPECT_EQ(device().download(y), expected);
    doubled(x, x).get();
    EXPECT_EQ(device().download(x), twice);
  }
}

TEST_F(PrimitiveCustom, TransformsOfPairs) {
  const auto located =
      primitives::compile_pair_transform<float, std::int32_t, Found>(
          device(),
          {"[](float x, int i) { return Found{x, i}; }", kFound, {"float", "int", "Found"}})
          .get();
  const auto z = device().alloc<std::uint8_t>(3 * sizeof(Found));
  located(put(std::vector<float>{1, 2, 3}), put(std::vector<std::int32_t>{7, 8, 9}), z).get();
  const auto found = elements_in<Found>(z);
  ASSERT_EQ(found.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found[i].value, static_cast<float>(i + 1));
    EXPECT_EQ(found[i].index, static_cast<std::int32_t>(i + 7));
  }
}

TEST_F(PrimitiveCustom, WhatDoesNotCompileIsOneErrorWithTheCompilersWords) {
  const auto wrong = primitives::compile_transform<float, float>(
      device(), {"[](float x) { return x + missing; }"});
  ASSERT_EQ(wrong.wait().code(), Errc::invalid);
  EXPECT_NE(wrong.wait().error().message.find("missing"), std::string::npos)
      << wrong.wait().error().message;
  EXPECT_NE(wrong.wait().error().message.find("operator"), std::string::npos);
  (void)device().take_error();
  const auto other_size = primitives::compile_reduction<Found>(
      device(), {"[](double a, double) { return a; }", {}, {"short"}});
  ASSERT_EQ(other_size.wait().code(), Errc::invalid);
  EXPECT_NE(other_size.wait().error().message.find("another size"), std::string::npos)
      << other_size.wait().error().message;
  (void)device().take_error();
  const auto no_name = primitives::compile_reduction<Found>(device(), {"Positive{}", kFound});
  ASSERT_TRUE(no_name.ready());
  EXPECT_EQ(no_name.wait().code(), Errc::invalid);
  (void)device().take_error();
}

TEST_F(PrimitiveCustom, RangesThatDoNotFit) {
  const auto positive =
      primitives::compile_selection<Found>(device(), {"Positive{}", kFound, {"Found"}}).get();
  const auto larger = primitives::compile_reduction<float>(
                          device(), {"[](float a, float b) { return a > b ? a : b; }"})
                          .get();
  const auto count = device().alloc<std::int64_t>(2);
  const auto one = put(std::vector<float>(9, 1.0f)), other = put(std::vector<float>(9, 1.0f));
  const Future<void> answers[] = {
      positive.select_if(one, other.slice(0, 8), count.slice(0, 1)),  // half an element
      positive.select_if(one.slice(0, 8), other.slice(0, 8), count),
      positive.select_if(one.slice(0, 8), one.slice(2, 4), count.slice(0, 1)),  // overlaps
      larger.reduce(one, other, 0.0f),
      larger.inclusive_scan(one, other.slice(0, 8)),
      larger.inclusive_scan(one.slice(0, 8), one.slice(1, 8))};
  for (const auto& answer : answers) EXPECT_EQ(answer.wait().code(), Errc::invalid);
  (void)device().take_error();
  EXPECT_EQ(device().download(one), std::vector<float>(9, 1.0f));
  EXPECT_EQ(device().download(other), std::vector<float>(9, 1.0f));
}

}  // namespace
}  // namespace troupe::test
