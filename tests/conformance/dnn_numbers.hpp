#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <troupe/lib/dnn.hpp>

#include "common/core/narrow.hpp"
#include "conformance.hpp"
#include "reference/differences.hpp"

/// Numbers for tests of the library dnn.
namespace troupe::test {

/// Skips the test where an operation is unsupported because what the engine needs is not installed.
inline void skip_unless_installed(const Future<void>& probe) {
  const Result<void> probed = probe.wait();
  if (probed.ok()) return;
  (void)device().take_error();
  ASSERT_EQ(probed.code(), Errc::unsupported) << probed.error().message;
  ASSERT_NE(probed.error().message.find("not installed"), std::string::npos)
      << probed.error().message;
  GTEST_SKIP() << probed.error().message;
}

/// Tests of layers for a type of elements.
template <class T>
class OfLayers : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<Half>(8)), y = put(std::vector<Half>(8));
    skip_unless_installed(dnn::on(device()).pointwise(dnn::Mode::identity, x, y));
  }
};

/// The spacing of numbers of type T at 1, as std::numeric_limits has it.
template <class T>
inline constexpr double kEpsilon = std::is_same_v<T, Half>       ? 0x1p-10
                                   : std::is_same_v<T, BFloat16> ? 0x1p-7
                                                                 : 0x1p-23;

template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  std::vector<T> result;
  for (const auto value : values) result.push_back(from_float<T>(static_cast<float>(value)));
  return result;
}
template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  std::vector<double> result;
  for (const auto value : values) result.push_back(static_cast<double>(to_float(value)));
  return result;
}
template <class T>
T rounded(double value) {
  return from_float<T>(static_cast<float>(value));
}

/// Integers from -limit to limit.
inline std::vector<double> integers(std::int64_t count, int limit, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (auto& value : values)
    value = static_cast<int>(random() % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
  return values;
}
/// Uniform numbers that T represents.
template <class T>
std::vector<double> uniform(std::int64_t count, std::uint64_t seed) {
  return widened(narrowed<T>(random_values<double>(count, seed)));
}

/// The largest difference of two arrays, and how large the numbers of the second are.
struct Difference {
  double largest = 0, magnitude = 0;
};
template <class T>
Difference difference(const std::vector<T>& actual, const std::vector<double>& exact) {
  Difference found;
  EXPECT_EQ(actual.size(), exact.size());
  for (std::size_t i = 0; i < std::min(actual.size(), exact.size()); ++i) {
    const auto apart = std::abs(static_cast<double>(to_float(actual[i])) - exact[i]);
    if (!(apart <= found.largest)) found.largest = apart;  // NaN too
    found.magnitude = std::max(found.magnitude, std::abs(exact[i]));
  }
  return found;
}
/// Whether `actual` is at most twice as far from the exact result as `plain`, what a plain
/// implementation makes whose steps are all rounded to T; and one rounding of the result more. It
/// is the rule of FlashAttention's tests (Dao et al., 2022).
template <class T>
::testing::AssertionResult as_exact_as(const std::vector<T>& plain, const std::vector<T>& actual,
                                       const std::vector<double>& exact) {
  const auto of_actual = difference(actual, exact), of_plain = difference(plain, exact);
  const auto allowed = 2 * of_plain.largest + kEpsilon<T> * of_actual.magnitude;
  if (of_actual.largest <= allowed) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "it is " << of_actual.largest << " from the exact result, "
         << "a plain implementation " << of_plain.largest;
}

/// Whether each element is as close to the exact one as PyTorch's assert_close demands of T.
template <class T>
::testing::AssertionResult close_to(const std::vector<T>& actual,
                                    const std::vector<double>& exact) {
  constexpr double kRelative = std::is_same_v<T, Half>       ? 1e-3
                               : std::is_same_v<T, BFloat16> ? 1.6e-2
                                                             : 1.3e-6;
  if (actual.size() != exact.size())
    return ::testing::AssertionFailure() << actual.size() << " elements, not " << exact.size();
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const auto value = static_cast<double>(to_float(actual[i]));
    const auto allowed = 1e-5 + kRelative * std::abs(exact[i]);
    if (value == exact[i] || std::abs(value - exact[i]) <= allowed) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " is " << value << ", not " << exact[i] << " within " << allowed;
  }
  return ::testing::AssertionSuccess();
}
/// Memory that is to be written: each element is 7 before.
template <class T>
GpuRef<T> put_sevens(std::int64_t elements) {
  return put(std::vector<T>(static_cast<std::size_t>(elements), rounded<T>(7)));
}
/// Whether nobody has written it.
template <class T>
bool still_sevens(const std::vector<T>& elements) {
  return std::all_of(elements.begin(), elements.end(),
                     [](const T& element) { return to_float(element) == 7; });
}

/// Whether an operation is computed. Where cuDNN does not have the case, that is printed with the
/// reason; the cpu engine has all cases.
inline bool answered(const Future<void>& done, const std::string& what) {
  const Result<void> result = done.wait();
  if (result.ok()) return true;
  EXPECT_EQ(result.code(), Errc::unsupported) << what << ": " << result.error().message;
  EXPECT_EQ(device().info().engine, "cuda") << what << ": " << result.error().message;
  std::printf("%s: %s\n", what.c_str(), result.error().message.c_str());
  (void)device().take_error();
  return false;
}
/// The same of what cuDNN has not: there the error says `why`.
inline bool answered_by_cpu(const Future<void>& done, const std::string& why) {
  if (device().info().engine != "cuda") {
    done.get();
    return true;
  }
  const Result<void> result = done.wait();
  EXPECT_EQ(result.code(), Errc::unsupported);
  if (result.ok()) return false;
  EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  (void)device().take_error();
  return false;
}

}  // namespace troupe::test
