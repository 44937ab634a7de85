#pragma once

#include <cuda_runtime_api.h>

/// What kernels of troupe's own are launched with. In C++17, because kernels are compiled so.
namespace troupe::host::cuda::kernels {

/// Where a kernel is queued and how wide its grid is made. The width is known once per device, so
/// that a launch asks nothing.
struct Launch {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
};

/// A scalar: *device if that is set, else value.
template <class T>
struct ScalarValue {
  const T* device = nullptr;
  T value{};

  /// Zero, and known to be so from the start.
  [[nodiscard]] bool is_zero_value() const { return device == nullptr && value == T(0); }
};

}  // namespace troupe::host::cuda::kernels
