#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "device_rig.hpp"

/// What every engine must do, through the public Device API, against references computed here.
/// Which engine runs is TROUPE_TEST_BACKEND's business.
namespace troupe::test {

/// The device of this program: made on first use, one for all its tests.
Device& device();

template <class T>
class Typed : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
/// What all four kinds of BLAS and LAPACK are tried on. Brief tests have one real and one complex
/// type, of either precision: netlib's programs then try the other two, and the judges all four.
#ifdef TROUPE_BRIEF_TESTS
using NumberTypes = ::testing::Types<std::complex<float>, double>;
#else
using NumberTypes = ::testing::Types<float, std::complex<float>, std::complex<double>, double>;
#endif

/// Of vectors that operations are tried on.
inline constexpr std::int64_t kLengths[] = {0, 1, 3, 64, 1000, 65'537};

/// Uniform in [-1, 1); the same numbers for the same seed.
template <class T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = static_cast<T>(uniform(random));
  return values;
}

template <Element T>
GpuRef<T> put(const std::vector<T>& values) {
  auto ref = device().alloc<T>(std::ssize(values));
  device().upload<T>(values, ref).get();
  return ref;
}

/// |actual - expected| <= slack * eps(T) * scale, where `scale` bounds what was added up: the
/// dtype's own rounding, `terms` of them.
template <class T>
::testing::AssertionResult close(const std::vector<T>& actual, const std::vector<double>& expected,
                                 double terms, double scale = 1) {
  if (actual.size() != expected.size()) return ::testing::AssertionFailure() << "sizes differ";
  const double tolerance =
      2 * (terms + 2) * static_cast<double>(std::numeric_limits<T>::epsilon()) * scale;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(static_cast<double>(actual[i]) - expected[i]) <= tolerance) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << actual[i] << ", not "
                                         << expected[i] << " within " << tolerance;
  }
  return ::testing::AssertionSuccess();
}

/// A factor by value or as an element in device memory.
enum class Place { host, device };
inline constexpr Place kPlaces[] = {Place::host, Place::device};
/// One that lives, device memory included, to the end of the call it is made for.
template <Element T>
struct PlacedScalar {
  T value;
  GpuRef<T> element;
  operator ScalarArg<T>() const { return element ? ScalarArg<T>(element) : ScalarArg<T>(value); }
};
template <Element T>
PlacedScalar<T> scalar(T value, Place place) {
  return {value, place == Place::host ? GpuRef<T>() : put(std::vector<T>{value})};
}

}  // namespace troupe::test
