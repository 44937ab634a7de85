#pragma once

#include <cutensor.h>

#include <array>
#include <cstddef>
#include <initializer_list>

#include "lib/tensor/common/plan_cuda.hpp"
#include "lib/tensor/status_cuda.hpp"

/// What operations are made of to cuTENSOR.
namespace troupe::host::cuda {

struct OperationTraits {
  using Type = cutensorOperationDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type operation) { (void)cutensorDestroyOperationDescriptor(operation); }
};
struct PreferenceTraits {
  using Type = cutensorPlanPreference_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type preference) { (void)cutensorDestroyPlanPreference(preference); }
};

inline cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f64: return CUDA_R_64F;
    case DType::c64: return CUDA_C_32F;
    case DType::c128: return CUDA_C_64F;
    default: return CUDA_R_32F;  // check() lets no other one pass
  }
}

inline cutensorComputeDescriptor_t compute_of(DType scale, tensor::Compute compute) {
  switch (compute) {
    case tensor::Compute::tf32: return CUTENSOR_COMPUTE_DESC_TF32;
    case tensor::Compute::tf32x3: return CUTENSOR_COMPUTE_DESC_3XTF32;
    case tensor::Compute::bf16: return CUTENSOR_COMPUTE_DESC_16BF;
    case tensor::Compute::f16: return CUTENSOR_COMPUTE_DESC_16F;
    case tensor::Compute::f32: return CUTENSOR_COMPUTE_DESC_32F;
    case tensor::Compute::bf16x9: return CUTENSOR_COMPUTE_DESC_9X16BF;
    case tensor::Compute::f16x4: return CUTENSOR_COMPUTE_DESC_4X16F;
    case tensor::Compute::int8x8: return CUTENSOR_COMPUTE_DESC_8XINT8;
    case tensor::Compute::standard: break;
  }
  return real_type(scale) == DType::f64 ? CUTENSOR_COMPUTE_DESC_64F : CUTENSOR_COMPUTE_DESC_32F;
}

/// The operation is sound: what cuTENSOR calls invalid, it does not have.
inline Error no_plan(cutensorStatus_t status, std::string_view call) {
  auto error = failure(status, call);
  if (error.code == Errc::invalid) error.code = Errc::unsupported;
  return error;
}

/// Factors as cuTENSOR reads them; a Scalar is aligned to 8 bytes.
class Factors {
 public:
  Factors(std::initializer_list<Scalar> all) {
    std::size_t i = 0;
    for (const auto& one : all) values_[i++].value = one.value;
  }
  [[nodiscard]] const void* operator[](std::size_t i) const noexcept { return &values_[i]; }

 private:
  struct alignas(16) Value {
    std::array<std::byte, 16> value{};
  };
  std::array<Value, 3> values_;
};

}  // namespace troupe::host::cuda
