#pragma once

#include <cudnn.h>

#include <algorithm>
#include <string>

#include "device_host/engine/cuda/library.hpp"
#include "lib/dnn/common/status_cuda.hpp"

/// Tensors outer by extent by inner for cuDNN's calls without a graph.
namespace troupe::host::cuda {

struct TensorDescriptorTraits {
  using Type = cudnnTensorDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)cudnnDestroyTensorDescriptor(descriptor); }
};

inline cudnnDataType_t element_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    case DType::f64: return CUDNN_DATA_DOUBLE;
    default: return CUDNN_DATA_FLOAT;  // check() lets no other one pass
  }
}

/// Calls queue(descriptor, one, zero, offset in bytes) for parts of the tensor that have less than
/// 2^31 elements, which is all that a descriptor takes. Factors are of the type in which it is
/// computed. Errors: unsupported (extent * inner is too large), library.
template <class Op, class Queue>
Result<void> in_parts(const Op& op, const Queue& queue) {
  constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
  const auto each = op.extent * op.inner;
  if (each > kMost) {
    return Error{Errc::unsupported, 0, std::string(Op::kName) + ": extent * inner is 2^31 or more"};
  }
  auto most = kMost / each;
  if (most >= 16) most -= most % 16;  // parts begin at multiples of 16 bytes
  constexpr float kOne = 1, kZero = 0;
  constexpr double kWideOne = 1, kWideZero = 0;
  const bool wide = op.dtype == DType::f64;
  const void* const one = wide ? static_cast<const void*>(&kWideOne) : &kOne;
  const void* const zero = wide ? static_cast<const void*>(&kWideZero) : &kZero;
  Handle<TensorDescriptorTraits> descriptor;
  TROUPE_CUDA_TRY(cudnnCreateTensorDescriptor(descriptor.out()));
  for (std::int64_t first = 0; first < op.outer; first += most) {
    const auto count = std::min(most, op.outer - first);
    TROUPE_CUDA_TRY(cudnnSetTensor4dDescriptor(
        descriptor.get(), CUDNN_TENSOR_NCHW, element_type(op.dtype), static_cast<int>(count),
        static_cast<int>(op.extent), static_cast<int>(op.inner), 1));
    const auto offset = static_cast<std::size_t>(first * each) * size_of(op.dtype);
    TROUPE_CUDA_TRY(queue(descriptor.get(), one, zero, offset));
  }
  return {};
}

}  // namespace troupe::host::cuda
