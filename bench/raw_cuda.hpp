#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <troupe/dtype.hpp>

/// The raw side of benchmarks of CUDA libraries.
namespace troupe::bench {

/// As in troupe's engine, so that cuBLAS chooses the same kernels.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

inline void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
inline void must(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}

/// The raw side: a stream, a cuBLAS handle with a workspace, memory.
class Raw {
 public:
  Raw() {
    must(cudaSetDevice(0));
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(cublasCreate(&blas_));
    must(cublasSetStream(blas_, stream_));
    must(cublasSetWorkspace(blas_, device(kWorkspaceBytes), kWorkspaceBytes));
  }
  ~Raw() {
    (void)cudaDeviceSynchronize();
    (void)cublasDestroy(blas_);
    (void)cudaStreamDestroy(stream_);
    for (void* memory : device_) (void)cudaFree(memory);
    for (void* memory : pinned_) (void)cudaFreeHost(memory);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  /// Memory that lives as long as this.
  void* device(std::size_t bytes) {
    device_.reserve(device_.size() + 1);
    void* memory = nullptr;
    must(cudaMalloc(&memory, bytes));
    device_.push_back(memory);
    return memory;
  }
  void* pinned(std::size_t bytes) {
    pinned_.reserve(pinned_.size() + 1);
    void* memory = nullptr;
    must(cudaMallocHost(&memory, bytes));
    pinned_.push_back(memory);
    return memory;
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
  }
  void wait() { must(cudaStreamSynchronize(stream_)); }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] cublasHandle_t blas() const { return blas_; }

 private:
  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
  std::vector<void*> device_, pinned_;
};

/// In (-1, 1), the same everywhere (Steele et al., SplitMix64, OOPSLA 2014).
template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (auto& value : values) {
    seed += 0x9E3779B97F4A7C15u;
    auto z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    const auto number = static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
    if constexpr (std::is_same_v<T, BFloat16>) {  // its upper half is a bf16, rounded to zero
      value.bits = static_cast<std::uint16_t>(
          std::bit_cast<std::uint32_t>(static_cast<float>(number)) >> 16);
    } else {
      value = static_cast<T>(number);
    }
  }
  return values;
}

}  // namespace troupe::bench
