#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include <troupe/dtype.hpp>

namespace troupe::host::cpu {

/// Makes an element grossly wrong, and finite: for tests of the looks at products. The new value
/// has another sign, and is 2^100, or 2^15 in f16; of integers the highest bit but the sign
/// changes.
template <class T>
void spoil_element(T& x) {
  if constexpr (std::is_floating_point_v<T>) {
    x = x > 0 ? T(-0x1p100) : T(0x1p100);
  } else if constexpr (std::is_integral_v<T>) {
    x = static_cast<T>(x ^ (T{1} << (8 * sizeof(T) - 2)));
  } else if constexpr (std::is_same_v<T, Half>) {
    x.bits = static_cast<std::uint16_t>((x.bits & 0x8000u) ^ 0xf800u);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    x.bits = static_cast<std::uint16_t>((x.bits & 0x8000u) ^ 0xf180u);
  }
}
template <class T>
void spoil_element(std::complex<T>& x) {
  T re = x.real();
  spoil_element(re);
  x.real(re);
}

}  // namespace troupe::host::cpu
