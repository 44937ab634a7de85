#pragma once

#include <cutensor.h>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuTENSOR mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cutensorStatus_t code) noexcept {
  switch (code) {
    case CUTENSOR_STATUS_ALLOC_FAILED: return Errc::out_of_memory;
    case CUTENSOR_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUTENSOR_STATUS_ARCH_MISMATCH:
    case CUTENSOR_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

inline Error error_of(cutensorStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, cutensorGetErrorString(code));
}

inline Error failure(cutensorStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
