#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <vector>

#include <troupe/lib/fft.hpp>

/// What transforms are compared with: the definition.
namespace troupe::test {

using fft::Extents;
using fft::Kind;
using Wide = std::complex<long double>;  // what references are computed in

inline std::int64_t volume_of(const Extents& extents) {
  std::int64_t volume = 1;
  for (std::uint32_t i = 0; i < extents.rank; ++i) volume *= extents.extent[i];
  return volume;
}
inline std::int64_t last_of(const Extents& extents) {
  return extents.extent[extents.rank - 1];
}
/// Elements of the complex side of a real transform.
inline std::int64_t half_of(const Extents& extents) {
  return volume_of(extents) / last_of(extents) * (last_of(extents) / 2 + 1);
}

/// The transform by its definition, one dimension after the other, the last one varying fastest;
/// not normalised. `sign`: -1 forward, 1 inverse.
template <class Real>
std::vector<std::complex<Real>> naive_dft(std::vector<std::complex<Real>> x, const Extents& extents,
                                          int sign) {
  const auto volume = volume_of(extents);
  auto stride = volume;
  for (std::uint32_t d = 0; d < extents.rank; ++d) {
    const auto n = extents.extent[d];
    stride /= n;
    std::vector<std::complex<Real>> root(static_cast<std::size_t>(n)), line(root.size());
    for (std::int64_t k = 0; k < n; ++k) {
      const auto angle =
          sign * 2 * std::numbers::pi_v<Real> * static_cast<Real>(k) / static_cast<Real>(n);
      root[static_cast<std::size_t>(k)] = std::polar(Real(1), angle);
    }
    for (std::int64_t begin = 0; begin < volume; ++begin) {
      if (begin / stride % n != 0) continue;
      for (std::int64_t k = 0; k < n; ++k) {
        std::complex<Real> sum{};
        for (std::int64_t j = 0; j < n; ++j) {
          sum += x[static_cast<std::size_t>(begin + j * stride)] *
                 root[static_cast<std::size_t>(j * k % n)];
        }
        line[static_cast<std::size_t>(k)] = sum;
      }
      for (std::int64_t k = 0; k < n; ++k)
        x[static_cast<std::size_t>(begin + k * stride)] = line[static_cast<std::size_t>(k)];
    }
  }
  return x;
}

/// What real_to_complex keeps of a spectrum.
template <class W>
std::vector<W> half_spectrum(const std::vector<W>& whole, const Extents& extents) {
  const auto n = last_of(extents);
  std::vector<W> half;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (static_cast<std::int64_t>(i) % n <= n / 2) half.push_back(whole[i]);
  }
  return half;
}

/// Input and output of one transform, to the precision of Wide.
struct Expected {
  std::vector<Wide> input, output;
};

/// `next` gives the numbers of which the transform consists; complex_to_real is given the spectrum
/// of such numbers.
inline Expected expected_of(Kind kind, const Extents& extents,
                            const std::function<double()>& next) {
  const bool complex = kind <= Kind::inverse;
  std::vector<Wide> x(static_cast<std::size_t>(volume_of(extents)));
  for (auto& element : x) {
    const double real = next();
    element = {real, complex ? next() : 0.0};
  }
  auto y = naive_dft(x, extents, kind == Kind::inverse ? 1 : -1);
  if (complex) return {x, y};
  y = half_spectrum(y, extents);
  if (kind == Kind::real_to_complex) return {x, y};
  for (auto& element : x) element *= static_cast<long double>(x.size());
  return {y, x};
}

/// The relative error of FFTW and cuFFT for smooth lengths grows as log2(length) (W. Gentleman and
/// G. Sande, AFIPS 1966); lengths with large prime factors are computed as convolutions.
template <class T>
double allowed_error(const Extents& extents) {
  bool smooth = true;
  for (std::uint32_t d = 0; d < extents.rank; ++d) {
    auto n = extents.extent[d];
    for (std::int64_t factor = 2; factor <= 127; ++factor) {
      while (n % factor == 0) n /= factor;
    }
    smooth = smooth && n == 1;
  }
  const double levels = std::max(1.0, std::log2(static_cast<double>(volume_of(extents))));
  return (smooth ? 4 : 32) * static_cast<double>(std::numeric_limits<T>::epsilon()) * levels;
}

}  // namespace troupe::test
