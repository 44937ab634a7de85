#pragma once

#include <cublasLt.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <fmt/format.h>

#include <algorithm>

#include "raw_cuda.hpp"

/// Calls of the libraries as a raw program makes them.
namespace troupe::bench {

inline void must(cusolverStatus_t status) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("cuSOLVER: status {}", static_cast<int>(status)));
}
inline void must(cufftResult status) {
  if (status != CUFFT_SUCCESS)
    throw std::runtime_error(fmt::format("cuFFT: status {}", static_cast<int>(status)));
}
inline void must(curandStatus_t status) {
  if (status != CURAND_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("cuRAND: status {}", static_cast<int>(status)));
}

/// D = A^T B of e4m3 into bf16, by cuBLASLt's own first choice.
class RawF8 {
 public:
  RawF8(Raw& raw, std::int64_t n) : raw_(&raw), workspace_(raw.device(kWorkspaceBytes)) {
    const auto transposed = CUBLAS_OP_T;
    must(cublasLtCreate(&handle_));
    must(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    must(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                        sizeof transposed));
    const auto extent = static_cast<std::uint64_t>(n);
    must(cublasLtMatrixLayoutCreate(&in_, CUDA_R_8F_E4M3, extent, extent, n));
    must(cublasLtMatrixLayoutCreate(&out_, CUDA_R_16BF, extent, extent, n));
    cublasLtMatmulPreference_t preference = nullptr;
    must(cublasLtMatmulPreferenceCreate(&preference));
    must(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &kWorkspaceBytes, sizeof kWorkspaceBytes));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    must(cublasLtMatmulAlgoGetHeuristic(handle_, description_, in_, in_, out_, out_, preference, 1,
                                        &found, &count));
    must(cublasLtMatmulPreferenceDestroy(preference));
    if (count == 0) throw std::runtime_error("cuBLASLt has no product of f8 here");
    algorithm_ = found.algo;
  }
  ~RawF8() {
    raw_->wait();
    (void)cublasLtMatrixLayoutDestroy(in_);
    (void)cublasLtMatrixLayoutDestroy(out_);
    (void)cublasLtMatmulDescDestroy(description_);
    (void)cublasLtDestroy(handle_);
  }
  RawF8(const RawF8&) = delete;
  RawF8& operator=(const RawF8&) = delete;

  void multiply(const Float8E4M3* a, const Float8E4M3* b, BFloat16* d) {
    const float one = 1, zero = 0;
    must(cublasLtMatmul(handle_, description_, &one, a, in_, b, in_, &zero, d, out_, d, out_,
                        &algorithm_, workspace_, kWorkspaceBytes, raw_->stream()));
  }

 private:
  Raw* raw_;
  void* workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t in_ = nullptr, out_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

/// The factorisations of cuSOLVER's that a raw program would call, with memory for one of them.
class RawSolver {
 public:
  RawSolver(Raw& raw, std::int64_t n) : raw_(&raw), n_(n) {
    must(cusolverDnCreate(&handle_));
    must(cusolverDnSetStream(handle_, raw.stream()));
    must(cusolverDnCreateParams(&params_));
    info_ = static_cast<int*>(raw.device(sizeof(int)));
    pivots_ =
        static_cast<std::int64_t*>(raw.device(static_cast<std::size_t>(n) * sizeof(std::int64_t)));
    values_ = static_cast<double*>(raw.device(static_cast<std::size_t>(n) * sizeof(double)));
  }
  ~RawSolver() {
    raw_->wait();
    (void)cusolverDnDestroyParams(params_);
    (void)cusolverDnDestroy(handle_);
  }
  RawSolver(const RawSolver&) = delete;
  RawSolver& operator=(const RawSolver&) = delete;

  void potrf(double* a) {
    room(cusolverDnXpotrf_bufferSize(handle_, params_, kHalf, n_, kType, a, n_, kType, &on_device_,
                                     &on_host_));
    must(cusolverDnXpotrf(handle_, params_, kHalf, n_, kType, a, n_, kType, device_, on_device_,
                          host_.data(), on_host_, info_));
  }
  void getrf(double* a) {
    room(cusolverDnXgetrf_bufferSize(handle_, params_, n_, n_, kType, a, n_, kType, &on_device_,
                                     &on_host_));
    must(cusolverDnXgetrf(handle_, params_, n_, n_, kType, a, n_, pivots_, kType, device_,
                          on_device_, host_.data(), on_host_, info_));
  }
  void syevd(double* a) {
    room(cusolverDnXsyevd_bufferSize(handle_, params_, CUSOLVER_EIG_MODE_VECTOR, kHalf, n_, kType,
                                     a, n_, kType, values_, kType, &on_device_, &on_host_));
    must(cusolverDnXsyevd(handle_, params_, CUSOLVER_EIG_MODE_VECTOR, kHalf, n_, kType, a, n_,
                          kType, values_, kType, device_, on_device_, host_.data(), on_host_,
                          info_));
  }
  [[nodiscard]] const double* eigenvalues() const { return values_; }

 private:
  static constexpr auto kHalf = CUBLAS_FILL_MODE_LOWER;
  static constexpr auto kType = CUDA_R_64F;

  void room(cusolverStatus_t asked) {
    must(asked);
    host_.resize(std::max(host_.size(), on_host_));
    if (on_device_ <= has_) return;
    device_ = raw_->device(on_device_);
    has_ = on_device_;
  }
  Raw* raw_;
  std::int64_t n_;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  int* info_ = nullptr;
  std::int64_t* pivots_ = nullptr;
  double* values_ = nullptr;
  void* device_ = nullptr;
  std::vector<std::byte> host_;
  std::size_t on_device_ = 0, on_host_ = 0, has_ = 0;
};

}  // namespace troupe::bench
