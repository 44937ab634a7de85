#pragma once

#include <cudss.h>

#include <string_view>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuDSS mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cudssStatus_t code) noexcept {
  switch (code) {
    case CUDSS_STATUS_ALLOC_FAILED: return Errc::out_of_memory;
    case CUDSS_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUDSS_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

/// cuDSS itself has no names for them.
inline std::string_view name_of(cudssStatus_t code) noexcept {
  switch (code) {
    case CUDSS_STATUS_SUCCESS: return "success";
    case CUDSS_STATUS_NOT_INITIALIZED: return "not initialised";
    case CUDSS_STATUS_ALLOC_FAILED: return "allocation failed";
    case CUDSS_STATUS_INVALID_VALUE: return "invalid value";
    case CUDSS_STATUS_NOT_SUPPORTED: return "not supported";
    case CUDSS_STATUS_EXECUTION_FAILED: return "execution failed";
    case CUDSS_STATUS_INTERNAL_ERROR: return "internal error";
    case CUDSS_STATUS_IR_FAILED: return "refinement failed";
  }
  return "unknown status";
}

inline Error error_of(cudssStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, name_of(code));
}

inline Error failure(cudssStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
