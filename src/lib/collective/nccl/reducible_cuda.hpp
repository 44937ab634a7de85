#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstring>

#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// Calls f(T{}) with the device's type of a dtype that NCCL reduces.
template <class F>
Result<void> for_reducible(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(__half{});
    case DType::bf16: return f(__nv_bfloat16{});
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::f8e4m3: return f(__nv_fp8_e4m3{});
    case DType::f8e5m2: return f(__nv_fp8_e5m2{});
    case DType::i8: return f(std::int8_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::i64: return f(std::int64_t{});
    default: return f(std::uint64_t{});  // check() lets no other one pass
  }
}

/// The scalar of a premul_sum, for a kernel of troupe's own.
template <class T>
kernels::ScalarValue<T> reduction_scalar(const Scalar& scalar, const Call& call) {
  kernels::ScalarValue<T> value;
  std::memcpy(&value.value, scalar.value.data(), sizeof(T));
  if (scalar.device.present()) value.device = call.at<const T>(scalar.device);
  return value;
}

}  // namespace troupe::host::cuda
