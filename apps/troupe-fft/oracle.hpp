#pragma once

#include <array>
#include <complex>

#include <troupe/distributed/pfft3.hpp>
#include <troupe/lib/kernel.hpp>

#include "options.hpp"

namespace troupe::fft3 {

/// An array whose spectrum is known, both made and compared on the device.
///
/// Along each axis it is a chirp, exp(i pi (j - s)^2 / n) of an even number n of points and
/// exp(i pi (j - s)(j - s + 1) / n) of an odd one. Such sequences are periodic, and their spectrum
/// is a chirp again (D. Chu, "Polyphase codes with good periodic correlation properties", 1972):
/// with l = j - s - k the sum over j completes to
///
///     exp(-2 pi i k s / n) exp(-i pi k^2 / n) G    or    exp(-2 pi i k s / n) exp(i pi (k - k^2) /
///     n) G
///
/// where G is the sum of the sequence itself, of size sqrt(n). So all elements are of size 1, and
/// all of the spectrum of size sqrt(N): none may be lost, and errors are alike everywhere. The
/// shifts s differ, so that axes cannot be mixed up, nor a transform with its inverse. A real array
/// is the real part; half of its spectrum is the chirps', half the mirrored conjugate.
template <FieldElement E>
class Oracle {
 public:
  using T = RealOf<E>;
  using Value = std::complex<T>;

  Oracle(Device& device, const Triple& points);

  void fill(const distributed::Box& box, const GpuRef<E>& space);
  /// The largest difference of this rank's part of the array, which was multiplied by `factor`.
  [[nodiscard]] double error(const distributed::Box& box, double factor, const GpuRef<E>& space);
  /// Of the spectrum of the same, as a fraction of sqrt(N).
  [[nodiscard]] double spectrum_error(const distributed::Box& box, double factor,
                                      const GpuRef<Value>& spectrum);

 private:
  template <class Buffer>
  [[nodiscard]] double largest(const Kernel& kernel, const distributed::Box& box, double factor,
                               const Buffer& buffer, const std::array<GpuRef<double>, 2>& tables);

  Device& device_;
  Triple points_;
  Kernel fill_, error_, spectrum_error_;
  /// Complex numbers for all indices of the three axes, one axis behind the other.
  GpuRef<double> space_, spectrum_, mirrored_;
};

/// What the largest error of an element may be, beside the size of the elements, after so many
/// transforms one after the other.
///
/// Each errs, as a fraction of the norm, by at most the sum of
///     eta_p = mu + gamma_(p + 2) (sqrt(p) + mu),    gamma_n = n u / (1 - n u),    mu = u
/// over all stages, u being half a unit in the last place: N. Higham, "Accuracy and Stability of
/// Numerical Algorithms", 2nd edition, theorem 24.2, whose stages of order 2 are here of the order
/// of the prime factors p, with sums of p terms; a real array has one stage of order 2 more. Primes
/// above 200 libraries do by three transforms of a power of two below 4 p (L. Bluestein, 1970),
/// with log2(4 p) stages each and a filter that is nowhere larger than 2.2 sqrt(p), so that what
/// they err by grows by that factor: 7 log2(4 p) eta_2.
///
/// Norms stay as they are, so what transforms err by adds up; dividing by N rounds twice. That is
/// the root of the mean of the squares: eight times as much is allowed at any one element, which
/// errors that are distributed normally do not exceed among 10^14.
double tolerance(const Triple& points, bool real, bool single, std::int64_t transforms);

extern template class Oracle<float>;
extern template class Oracle<double>;
extern template class Oracle<std::complex<float>>;
extern template class Oracle<std::complex<double>>;

}  // namespace troupe::fft3
