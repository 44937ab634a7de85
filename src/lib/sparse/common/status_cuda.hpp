#pragma once

#include <cusparse.h>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of cuSPARSE mean to supervision.
namespace troupe::host::cuda {

inline Errc classify(cusparseStatus_t code) noexcept {
  switch (code) {
    case CUSPARSE_STATUS_ALLOC_FAILED:
    case CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: return Errc::out_of_memory;
    case CUSPARSE_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUSPARSE_STATUS_ARCH_MISMATCH:
    case CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
    case CUSPARSE_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

inline Error error_of(cusparseStatus_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, cusparseGetErrorString(code));
}

inline Error failure(cusparseStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}

}  // namespace troupe::host::cuda
