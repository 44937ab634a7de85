#pragma once

#include <nccl.h>

#include <string>
#include <string_view>
#include <utility>

#include "device_host/engine/cuda/library.hpp"

/// What the status codes of NCCL mean to supervision.
namespace troupe::host::cuda {

/// The class of what a call says that uses no communicator.
inline Errc classify(ncclResult_t code) noexcept {
  switch (code) {
    case ncclInvalidArgument:
    case ncclInvalidUsage: return Errc::invalid;
    case ncclRemoteError: return Errc::peer_lost;
    default: return Errc::library;
  }
}

/// The error code of a call on a communicator. What NCCL refuses before it launches anything is the
/// caller's error; after anything else (a system error, an internal one, one of CUDA's) the
/// communicator is broken (peer_lost), and what was launched on it may run until it is aborted.
inline Errc classify_call(ncclResult_t code) noexcept {
  switch (code) {
    case ncclSuccess:
    case ncclInProgress: return Errc::ok;
    case ncclInvalidArgument:
    case ncclInvalidUsage: return Errc::invalid;
    default: return Errc::peer_lost;
  }
}

/// The class of what a communicator has noticed by itself (ncclCommGetAsyncError): ok, or peer_lost
/// for one that is broken.
inline Errc classify_noticed(ncclResult_t code) noexcept {
  return code == ncclSuccess || code == ncclInProgress ? Errc::ok : Errc::peer_lost;
}

inline Error error_of(ncclResult_t code, std::string_view call) {
  Error error = make_error(classify(code), static_cast<int>(code), call, ncclGetErrorString(code));
  // A communicator is optional there: the text is the library's last warning.
  const char* detail = ncclGetLastError(nullptr);
  if (detail != nullptr && *detail != '\0') error.message += std::string(": ") + detail;
  return error;
}

inline Error failure(ncclResult_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}
/// The same of a status on a communicator, of the class that classify_call() or classify_noticed()
/// gives.
inline Error failure(ncclResult_t code, std::string_view call, Errc on_communicator) {
  auto error = error_of(code, call);
  error.code = on_communicator;
  return prefer_context(std::move(error));
}

}  // namespace troupe::host::cuda

/// TROUPE_CUDA_TRY for a call on a communicator.
#define TROUPE_NCCL_TRY(call)                                                             \
  do {                                                                                    \
    if (const auto status_ = (call); status_ != ncclSuccess) [[unlikely]]                 \
      return ::troupe::host::cuda::failure(status_, #call,                                \
                                           ::troupe::host::cuda::classify_call(status_)); \
  } while (false)
