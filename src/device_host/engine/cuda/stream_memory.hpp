#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {

/// Device memory that grows as needed and goes back in the order of its stream.
class StreamMemory {
 public:
  StreamMemory() = default;
  ~StreamMemory() { give_back(); }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  /// At least so many bytes, and at least one: never nullptr. What stood there is lost if it grows.
  /// Always with the same stream. Errors: out_of_memory.
  Result<void*> reserve(std::size_t bytes, cudaStream_t stream) {
    bytes = std::max<std::size_t>(bytes, 1);
    if (bytes <= bytes_) return memory_;
    give_back();
    void* memory = nullptr;
    TROUPE_CUDA_TRY(cudaMallocAsync(&memory, bytes, stream));
    stream_ = stream;
    memory_ = memory;
    bytes_ = bytes;
    return memory_;
  }
  void give_back() {
    if (memory_ != nullptr) (void)cudaFreeAsync(memory_, stream_);
    memory_ = nullptr;
    bytes_ = 0;
  }
  /// nullptr: there is none.
  [[nodiscard]] std::byte* get() const noexcept { return static_cast<std::byte*>(memory_); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::host::cuda
