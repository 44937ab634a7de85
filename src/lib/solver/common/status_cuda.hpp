#pragma once

#include <cusolverDn.h>

#include <string>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuSOLVER mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cusolverStatus_t code) noexcept {
  switch (code) {
    case CUSOLVER_STATUS_ALLOC_FAILED: return Errc::out_of_memory;
    case CUSOLVER_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUSOLVER_STATUS_ARCH_MISMATCH:
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
    case CUSOLVER_STATUS_NOT_SUPPORTED:
    case CUSOLVER_STATUS_IRS_NOT_SUPPORTED:
    case CUSOLVER_STATUS_IRS_OUT_OF_RANGE: return Errc::unsupported;
    default: return Errc::library;
  }
}

/// cuSOLVER has no text for its codes.
inline Error error_of(cusolverStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call,
                    "cusolverStatus_t " + std::to_string(static_cast<int>(code)));
}

inline Error failure(cusolverStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
