#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "lib/dnn/own/graph_kernels.cuh"

/// Elements of tensors, as kernels of troupe's own read and write them.
namespace troupe::host::cuda::kernels {

/// How far element i is from the first one.
__device__ inline std::int64_t place(const Elements& elements, std::uint64_t i) {
  std::int64_t sum = 0;
  for (int dimension = elements.rank - 1; dimension > 0; --dimension) {
    const auto extent = static_cast<std::uint64_t>(elements.extents[dimension]);
    // Divisions of 32 bits are much faster.
    const std::uint64_t above = ((i | extent) >> 32) == 0 ? static_cast<std::uint32_t>(i) /
                                                                static_cast<std::uint32_t>(extent)
                                                          : i / extent;
    sum += static_cast<std::int64_t>(i - above * extent) * elements.strides[dimension];
    i = above;
  }
  return sum + static_cast<std::int64_t>(i) * elements.strides[0];
}

/// An element of any type.
struct Number {
  float real;
  std::int64_t integer;
  bool is_integer;
};

__device__ inline Number of_real(float value) {
  return {value, 0, false};
}
__device__ inline Number of_integer(std::int64_t value) {
  return {static_cast<float>(value), value, true};
}
__device__ inline Number load_number(const Elements& from, std::int64_t at) {
  switch (from.stored) {
    case Stored::f16: return of_real(__half2float(static_cast<const __half*>(from.first)[at]));
    case Stored::bf16:
      return of_real(__bfloat162float(static_cast<const __nv_bfloat16*>(from.first)[at]));
    case Stored::f32: return of_real(static_cast<const float*>(from.first)[at]);
    case Stored::i8: return of_integer(static_cast<const std::int8_t*>(from.first)[at]);
    case Stored::u8: return of_integer(static_cast<const std::uint8_t*>(from.first)[at]);
    case Stored::i32: return of_integer(static_cast<const std::int32_t*>(from.first)[at]);
    case Stored::constant: return of_real(from.value);
    default: return of_integer(static_cast<const std::int64_t*>(from.first)[at]);
  }
}

template <class T>
__device__ inline void store_integer(const Elements& to, std::int64_t at, const Number& number,
                                     std::int64_t least, std::int64_t most) {
  std::int64_t value = number.integer;
  if (!number.is_integer) {
    value = isnan(number.real)                         ? 0
            : number.real <= static_cast<float>(least) ? least
            : number.real >= static_cast<float>(most)  ? most
                                                       : __float2ll_rn(number.real);
  }
  static_cast<T*>(to.first)[at] = static_cast<T>(value);
}
__device__ inline void store_number(const Elements& to, std::int64_t at, const Number& number) {
  switch (to.stored) {
    case Stored::f16: static_cast<__half*>(to.first)[at] = __float2half_rn(number.real); break;
    case Stored::bf16:
      static_cast<__nv_bfloat16*>(to.first)[at] = __float2bfloat16_rn(number.real);
      break;
    case Stored::f32: static_cast<float*>(to.first)[at] = number.real; break;
    case Stored::i8: store_integer<std::int8_t>(to, at, number, INT8_MIN, INT8_MAX); break;
    case Stored::u8: store_integer<std::uint8_t>(to, at, number, 0, UINT8_MAX); break;
    case Stored::i32: store_integer<std::int32_t>(to, at, number, INT32_MIN, INT32_MAX); break;
    default: store_integer<std::int64_t>(to, at, number, INT64_MIN, INT64_MAX); break;
  }
}

}  // namespace troupe::host::cuda::kernels
