#pragma once

#include <cstdint>

#include "lib/primitives/transforms/kernels.cuh"

/// f16 and bf16 on the device: to f32, which is exact, and back, rounded to the nearest, ties to
/// even. By instructions: the headers with types of their own are long to compile.
namespace troupe::host::cuda::kernels {

__device__ inline float widened(NarrowFloat format, std::uint16_t bits) {
  float half;
  asm("cvt.f32.f16 %0, %1;" : "=f"(half) : "h"(bits));
  return format == NarrowFloat::bf16 ? __uint_as_float(static_cast<std::uint32_t>(bits) << 16)
                                     : half;
}

__device__ inline std::uint16_t narrowed(NarrowFloat format, float x) {
  std::uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  // GPUs of before 2020 have no instruction for bf16.
  const std::uint32_t bits = __float_as_uint(x), upper = bits >> 16;
  const bool is_nan = (bits & 0x7fff'ffffu) > 0x7f80'0000u;
  const std::uint32_t brain = is_nan ? upper | 0x40u : (bits + 0x7fffu + (upper & 1u)) >> 16;
  return format == NarrowFloat::bf16 ? static_cast<std::uint16_t>(brain) : half;
}

}  // namespace troupe::host::cuda::kernels
