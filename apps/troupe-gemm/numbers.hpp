#pragma once

#include <cstdint>

#include <troupe/lib/matrix.hpp>

/// The elements of the matrices, by their places in the whole: any rank can make any of them. The
/// kernels in check.cpp compute the same.
namespace troupe::gemm {

/// The mixing of SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
/// generators", 2014).
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// What is generated, each with numbers of its own.
enum class Which : std::uint64_t { a, b, c, signs };

constexpr std::uint64_t key_of(std::uint64_t seed, Which which) {
  return mixed(4 * seed + static_cast<std::uint64_t>(which) + 1);
}
constexpr std::uint64_t bits_at(std::uint64_t key, std::uint64_t index) {
  return mixed(key + index * 0x9e3779b97f4a7c15u);
}

/// From -1 to below 1, in all digits that the type has there.
template <class T>
constexpr T number_of(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return static_cast<T>(bits >> 40) * T(0x1p-23) - T(1);
  else
    return static_cast<T>(bits >> 11) * T(0x1p-52) - T(1);
}

/// Of a matrix with so many rows.
template <FieldElement T>
T element_at(std::uint64_t key, std::int64_t rows, std::int64_t row, std::int64_t column) {
  const auto place = static_cast<std::uint64_t>(row + rows * column);
  using Real = RealOf<T>;
  if constexpr (ComplexElement<T>)
    return {number_of<Real>(bits_at(key, 2 * place)), number_of<Real>(bits_at(key, 2 * place + 1))};
  else
    return number_of<Real>(bits_at(key, place));
}

}  // namespace troupe::gemm
