#pragma once

#include <cublas_v2.h>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuBLAS mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cublasStatus_t code) noexcept {
  switch (code) {
    case CUBLAS_STATUS_ALLOC_FAILED: return Errc::out_of_memory;
    case CUBLAS_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

inline Error error_of(cublasStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, cublasGetStatusString(code));
}

inline Error failure(cublasStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
