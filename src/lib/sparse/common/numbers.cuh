#pragma once

#include <cuComplex.h>

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Arithmetic of float, double, float2 and double2, the last two being complex numbers, and of
/// std::int32_t, modulo 2^32. For kernels.
namespace troupe::host::cuda::kernels {

__device__ inline float add(float a, float b) {
  return a + b;
}
__device__ inline double add(double a, double b) {
  return a + b;
}
__device__ inline std::int32_t add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
template <class Complex>
__device__ Complex add(Complex a, Complex b) {
  a.x += b.x;
  a.y += b.y;
  return a;
}

__device__ inline float multiply_add(float a, float b, float sum) {
  return fmaf(a, b, sum);
}
__device__ inline double multiply_add(double a, double b, double sum) {
  return fma(a, b, sum);
}
__device__ inline std::int32_t multiply_add(std::int32_t a, std::int32_t b, std::int32_t sum) {
  const auto product = static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b);
  return static_cast<std::int32_t>(product + static_cast<std::uint32_t>(sum));
}
template <class Complex>
__device__ Complex multiply_add(Complex a, Complex b, Complex sum) {
  sum.x = multiply_add(a.x, b.x, multiply_add(-a.y, b.y, sum.x));
  sum.y = multiply_add(a.x, b.y, multiply_add(a.y, b.x, sum.y));
  return sum;
}
__device__ inline float conjugated(float x) {
  return x;
}
__device__ inline double conjugated(double x) {
  return x;
}
__device__ inline std::int32_t conjugated(std::int32_t x) {
  return x;
}
template <class Complex>
__device__ Complex conjugated(Complex x) {
  x.y = -x.y;
  return x;
}
__device__ inline bool is_zero(float x) {
  return x == 0;
}
__device__ inline bool is_zero(double x) {
  return x == 0;
}
__device__ inline bool is_zero(std::int32_t x) {
  return x == 0;
}
template <class Complex>
__device__ bool is_zero(Complex x) {
  return x.x == 0 && x.y == 0;
}

/// a x; where a is 0, that is 0, whatever x is.
template <class T>
__device__ T weighed(T a, T x) {
  return is_zero(a) ? T{} : multiply_add(a, x, T{});
}

template <class T>
__device__ T value_of(const ScalarValue<T>& scalar) {
  return scalar.device != nullptr ? *scalar.device : scalar.value;
}

}  // namespace troupe::host::cuda::kernels
