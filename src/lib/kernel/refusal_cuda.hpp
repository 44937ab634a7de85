#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "device_host/engine/cuda/library.hpp"

/// Failures of kernels.
namespace troupe::host::cuda {

/// A failure to load or to launch that is the program's, not the library's.
inline Error refusal(cudaError_t status, std::string_view call) {
  auto error = failure(status, call);
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled: error.code = Errc::unsupported; break;
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorInvalidSource:
    case cudaErrorSymbolNotFound:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorSharedObjectSymbolNotFound:
    case cudaErrorSharedObjectInitFailed:
    case cudaErrorLaunchOutOfResources:
    case cudaErrorCooperativeLaunchTooLarge: error.code = Errc::invalid; break;
    default: break;
  }
  error.message = "kernel: " + error.message;
  return error;
}

}  // namespace troupe::host::cuda

/// As TROUPE_CUDA_TRY, for calls that fail by the program's fault.
#define TROUPE_KERNEL_TRY(call)                                                              \
  do {                                                                                       \
    if (const auto status_ = (call); status_ != cudaSuccess) return refusal(status_, #call); \
  } while (false)
