#include "lib/collective/alone_cuda.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "lib/collective/collective_kernels.cuh"

namespace troupe::host::cuda {
namespace {

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

}  // namespace

Result<void> reduce_alone(const Services& services, const AloneReduction& reduction,
                          const Call& call) {
  if (reduction.op != ReduceOp::premul_sum) {
    const auto* const source = call.at(reduction.source);
    auto* const destination = call.at(reduction.destination);
    if (source == destination) return {};
    TROUPE_CUDA_TRY(cudaMemcpyAsync(destination, source, reduction.count * size_of(reduction.dtype),
                                    cudaMemcpyDeviceToDevice, services.stream(call.queue())));
    return {};
  }
  return for_reducible(reduction.dtype, [&]<class T>(T) -> Result<void> {
    kernels::ScalarValue<T> scalar;
    std::memcpy(&scalar.value, reduction.scalar->value.data(), sizeof(T));
    if (reduction.scalar->device.present())
      scalar.device = call.at<const T>(reduction.scalar->device);
    TROUPE_CUDA_TRY(kernels::scale(services.launch(call.queue()), reduction.count, scalar,
                                   call.at<const T>(reduction.source),
                                   call.at<T>(reduction.destination)));
    return {};
  });
}

}  // namespace troupe::host::cuda
