#include <troupe/lib/fft.hpp>

#include "bad_arguments.hpp"
#include "reference/transforms.hpp"

// By the method of FFTW's bench (https://www.fftw.org/accuracy/method.html): relative errors in the
// L2 norm against a transform of higher precision; and for lengths that have none, the properties
// that make a transform one (F. Erguen, "Testing multivariate linear functions: overcoming the
// generator bottleneck", STOC 1995): it is linear, an impulse becomes a wave, and a shift in time
// turns the phases.

namespace troupe::test {
namespace {

template <class T>
class FftAccuracy : public Typed<T> {
 protected:
  void SetUp() override {
    const auto x = put(std::vector<std::complex<T>>(1));
    if (fft::on(device()).forward(x, x, {.extents = {1}}).wait().ok()) return;
    (void)device().take_error();
    ASSERT_FALSE(on_cuda());
    GTEST_SKIP() << "the cpu engine has no FFT library";
  }
};
TYPED_TEST_SUITE(FftAccuracy, Reals);

/// exp(sign 2 pi i k / n)
Wide root_of_unity(std::int64_t k, std::int64_t n, int sign) {
  const auto angle = sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(k % n) /
                     static_cast<long double>(n);
  return {std::cos(angle), std::sin(angle)};
}

/// By decimation in time as long as the length is even, then by the definition.
std::vector<Wide> wide_fft(const std::vector<Wide>& x, int sign) {
  const auto n = x.size();
  if (n % 2 != 0 || n == 1) return naive_dft(x, {static_cast<std::int64_t>(n)}, sign);
  std::vector<Wide> even, odd, y(n);
  for (std::size_t i = 0; i < n; i += 2) even.push_back(x[i]), odd.push_back(x[i + 1]);
  even = wide_fft(even, sign);
  odd = wide_fft(odd, sign);
  for (std::size_t k = 0; k < n / 2; ++k) {
    const auto turned =
        root_of_unity(static_cast<std::int64_t>(k), static_cast<std::int64_t>(n), sign) * odd[k];
    y[k] = even[k] + turned;
    y[k + n / 2] = even[k] - turned;
  }
  return y;
}

template <class T>
std::vector<std::complex<T>> random_complex(std::int64_t n, std::uint64_t seed) {
  const auto parts = random_values<T>(2 * n, seed);
  std::vector<std::complex<T>> values;
  for (std::size_t i = 0; i < parts.size(); i += 2) values.emplace_back(parts[i], parts[i + 1]);
  return values;
}

template <class T>
std::vector<std::complex<T>> fft_by_device(const std::vector<std::complex<T>>& input, int sign) {
  const auto x = put(input);
  const FftOptions shape{.extents = {std::ssize(input)}};
  if (sign < 0) {
    fft::on(device()).forward(x, x, shape).get();
  } else {
    fft::on(device()).inverse(x, x, shape).get();
  }
  return device().download(x);
}

/// |actual - expected| / |expected|
template <class T>
double relative_error(const std::vector<std::complex<T>>& actual,
                      const std::vector<Wide>& expected) {
  long double error = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += std::norm(Wide(actual[i]) - expected[i]);
    norm += std::norm(expected[i]);
  }
  return static_cast<double>(std::sqrt(error / norm));
}

template <class T>
std::vector<Wide> to_wide(const std::vector<std::complex<T>>& values) {
  return {values.begin(), values.end()};
}

TYPED_TEST(FftAccuracy, OfManyLengths) {
  // Powers of two, smooth numbers, primes that are computed as convolutions.
  for (const std::int64_t n :
       {256, 8192, 131072, 6561, 3125, 2310, 5040, 97, 257, 2053, 4 * 1009}) {
    const auto x = random_complex<TypeParam>(n, 45);
    for (const int sign : {-1, 1}) {
      EXPECT_LE(relative_error(fft_by_device(x, sign), wide_fft(to_wide(x), sign)),
                allowed_error<TypeParam>({n}))
          << n;
    }
  }
}

TYPED_TEST(FftAccuracy, OfLargePrimesIsLinearAndShiftsTurnPhases) {
  using C = std::complex<TypeParam>;
  for (const std::int64_t n : {10'007, 100'003, 65'536}) {
    SCOPED_TRACE(n);
    const double allowed = 4 * allowed_error<TypeParam>({n});
    const auto a = random_complex<TypeParam>(n, 46), b = random_complex<TypeParam>(n, 47);
    const C alpha(TypeParam(0.75), TypeParam(-0.5));
    const auto fa = fft_by_device(a, -1), fb = fft_by_device(b, -1);

    auto sum = a;
    auto expected = to_wide(fa);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = a[i] + alpha * b[i];
      expected[i] += Wide(alpha) * Wide(fb[i]);
    }
    EXPECT_LE(relative_error(fft_by_device(sum, -1), expected), allowed) << "not linear";

    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{1}, n / 3}) {
      std::vector<C> impulse(static_cast<std::size_t>(n));
      impulse[static_cast<std::size_t>(at)] = alpha;
      for (std::size_t k = 0; k < impulse.size(); ++k)
        expected[k] = Wide(alpha) * root_of_unity(at * static_cast<std::int64_t>(k), n, -1);
      EXPECT_LE(relative_error(fft_by_device(impulse, -1), expected), allowed) << "impulse " << at;
    }

    auto shifted = a;
    std::rotate(shifted.rbegin(), shifted.rbegin() + 1, shifted.rend());
    for (std::size_t k = 0; k < shifted.size(); ++k)
      expected[k] = Wide(fa[k]) * root_of_unity(static_cast<std::int64_t>(k), n, -1);
    EXPECT_LE(relative_error(fft_by_device(shifted, -1), expected), allowed) << "shift in time";
  }
}

}  // namespace
}  // namespace troupe::test
