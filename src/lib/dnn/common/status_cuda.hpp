#pragma once

#include <cudnn.h>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuDNN mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cudnnStatus_t code) noexcept {
  switch (code) {
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED: return Errc::out_of_memory;
    default: break;
  }
  switch (CUDNN_STATUS_CATEGORY(code)) {
    case CUDNN_STATUS_BAD_PARAM: return Errc::invalid;
    case CUDNN_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

inline Error error_of(cudnnStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, cudnnGetErrorString(code));
}

inline Error failure(cudnnStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
