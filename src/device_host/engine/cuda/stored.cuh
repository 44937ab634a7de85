#pragma once

#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "device_host/engine/product_sums.hpp"

/// Elements of products as kernels that verify them read them.
namespace troupe::host::cuda::kernels {

__device__ inline double wide(float x) {
  return x;
}
__device__ inline double wide(double x) {
  return x;
}
__device__ inline double wide(__half x) {
  return __half2float(x);
}
__device__ inline double wide(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ inline double wide(__nv_fp8_e4m3 x) {
  return static_cast<float>(x);
}
__device__ inline double wide(__nv_fp8_e5m2 x) {
  return static_cast<float>(x);
}
__device__ inline double wide(std::int8_t x) {
  return x;
}
__device__ inline double wide(std::int32_t x) {
  return x;
}

template <class T>
inline constexpr bool kComplex = false;
template <>
inline constexpr bool kComplex<float2> = true;
template <>
inline constexpr bool kComplex<double2> = true;

template <class T>
__device__ sums::Number number(const T& x, bool conjugate = false) {
  if constexpr (kComplex<T>) {
    return {x.x, conjugate ? -x.y : x.y};
  } else {
    return {wide(x), 0};
  }
}

/// x weight added to a sum, and how large x is to a size.
template <class T>
__device__ void add_weighed(const T& x, bool conjugate, bool length, sums::Number weight,
                            sums::Number& sum, double& size) {
  if constexpr (kComplex<T>) {
    const sums::Number value = number(x, conjugate);
    sum.re = fma(value.re, weight.re, fma(-value.im, weight.im, sum.re));
    sum.im = fma(value.re, weight.im, fma(value.im, weight.re, sum.im));
    size += length ? sums::extent(value) : fma(value.re, value.re, value.im * value.im);
  } else {
    const double value = wide(x);
    sum.re = fma(value, weight.re, sum.re);
    size = length ? size + fabs(value) : fma(value, value, size);
  }
}

/// Adds up over a warp.
__device__ inline double over_warp(double x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffffu, x, step);
  return x;
}

/// Makes an element grossly wrong, and finite; as the cpu engine's.
__device__ inline void spoil_element(float& x) {
  x = x > 0 ? -0x1p100f : 0x1p100f;
}
__device__ inline void spoil_element(double& x) {
  x = x > 0 ? -0x1p100 : 0x1p100;
}
__device__ inline void spoil_element(__half& x) {
  x = __float2half(__half2float(x) > 0 ? -32768.0f : 32768.0f);
}
__device__ inline void spoil_element(__nv_bfloat16& x) {
  x = __float2bfloat16(__bfloat162float(x) > 0 ? -0x1p100f : 0x1p100f);
}
__device__ inline void spoil_element(std::int32_t& x) {
  x ^= 1 << 30;
}
__device__ inline void spoil_element(float2& x) {
  spoil_element(x.x);
}
__device__ inline void spoil_element(double2& x) {
  spoil_element(x.x);
}

}  // namespace troupe::host::cuda::kernels
