#pragma once

#include <cutensor.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "raw_cuda.hpp"

/// Calls of cuTENSOR as a raw program makes them, with everything prepared beforehand.
namespace troupe::bench {

inline void must(cutensorStatus_t status) {
  if (status != CUTENSOR_STATUS_SUCCESS) throw std::runtime_error(cutensorGetErrorString(status));
}

/// A tensor without gaps, row-major; its modes are letters.
struct RawTerm {
  std::string modes;
  void* data = nullptr;
};
using Extents = std::map<char, std::int64_t>;

/// One operation of cuTENSOR's on packed tensors of one type, with factors 1 and 0.
class RawTensors {
 public:
  enum class What { contract, permute, reduce };

  /// `terms`: what is read, and then the result.
  RawTensors(Raw& raw, What what, cudaDataType_t type, const Extents& extents,
             std::vector<RawTerm> terms)
      : raw_(&raw), what_(what), terms_(std::move(terms)) {
    must(cutensorCreate(&handle_));
    std::vector<cutensorTensorDescriptor_t> tensors;
    std::vector<std::vector<std::int32_t>> modes;
    for (const auto& term : terms_) {
      std::vector<std::int64_t> sizes, strides(term.modes.size());
      std::int64_t stride = 1;
      for (const char mode : term.modes) sizes.push_back(extents.at(mode));
      for (auto i = sizes.size(); i-- > 0;) strides[i] = stride, stride *= sizes[i];
      modes.emplace_back(term.modes.begin(), term.modes.end());
      must(cutensorCreateTensorDescriptor(handle_, &tensors.emplace_back(),
                                          static_cast<std::uint32_t>(sizes.size()), sizes.data(),
                                          strides.data(), type, 256));
    }
    const bool wide = type == CUDA_R_64F;
    const auto compute = wide ? CUTENSOR_COMPUTE_DESC_64F : CUTENSOR_COMPUTE_DESC_32F;
    constexpr auto kSame = CUTENSOR_OP_IDENTITY;
    const auto out = tensors.size() - 1;
    cutensorOperationDescriptor_t operation = nullptr;
    if (what == What::contract) {
      must(cutensorCreateContraction(
          handle_, &operation, tensors[0], modes[0].data(), kSame, tensors[1], modes[1].data(),
          kSame, tensors[out], modes[out].data(), kSame, tensors[out], modes[out].data(), compute));
    } else if (what == What::permute) {
      must(cutensorCreatePermutation(handle_, &operation, tensors[0], modes[0].data(), kSame,
                                     tensors[out], modes[out].data(), compute));
    } else {
      must(cutensorCreateReduction(handle_, &operation, tensors[0], modes[0].data(), kSame,
                                   tensors[out], modes[out].data(), kSame, tensors[out],
                                   modes[out].data(), CUTENSOR_OP_ADD, compute));
    }
    cutensorPlanPreference_t preference = nullptr;
    must(cutensorCreatePlanPreference(handle_, &preference, CUTENSOR_ALGO_DEFAULT,
                                      CUTENSOR_JIT_MODE_NONE));
    must(cutensorEstimateWorkspaceSize(handle_, operation, preference, CUTENSOR_WORKSPACE_DEFAULT,
                                       &bytes_));
    must(cutensorCreatePlan(handle_, &plan_, operation, preference, bytes_));
    workspace_ = raw.device(bytes_ + 1);
    must(cutensorDestroyPlanPreference(preference));
    must(cutensorDestroyOperationDescriptor(operation));
    for (auto* const tensor : tensors) must(cutensorDestroyTensorDescriptor(tensor));
    if (wide) {
      const double one = 1;
      std::memcpy(one_.data(), &one, sizeof one);
    } else {
      const float one = 1;
      std::memcpy(one_.data(), &one, sizeof one);
    }
  }
  ~RawTensors() {
    raw_->wait();
    (void)cutensorDestroyPlan(plan_);
    (void)cutensorDestroy(handle_);
  }
  RawTensors(const RawTensors&) = delete;
  RawTensors& operator=(const RawTensors&) = delete;

  void run() {
    void* const result = terms_.back().data;
    if (what_ == What::contract) {
      must(cutensorContract(handle_, plan_, one_.data(), terms_[0].data, terms_[1].data,
                            zero_.data(), result, result, workspace_, bytes_, raw_->stream()));
    } else if (what_ == What::permute) {
      must(cutensorPermute(handle_, plan_, one_.data(), terms_[0].data, result, raw_->stream()));
    } else {
      must(cutensorReduce(handle_, plan_, one_.data(), terms_[0].data, zero_.data(), result, result,
                          workspace_, bytes_, raw_->stream()));
    }
  }

 private:
  Raw* raw_;
  What what_;
  std::vector<RawTerm> terms_;
  alignas(16) std::array<std::byte, 16> one_{}, zero_{};
  cutensorHandle_t handle_ = nullptr;
  cutensorPlan_t plan_ = nullptr;
  std::uint64_t bytes_ = 0;
  void* workspace_ = nullptr;
};

}  // namespace troupe::bench
