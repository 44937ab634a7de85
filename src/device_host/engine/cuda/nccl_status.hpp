#pragma once

#include <nccl.h>

#include <string_view>

#include "device_host/engine/cuda/status.hpp"

/// What the status codes of NCCL mean to supervision: see status.hpp.
namespace troupe::host::cuda {

/// Of calls that make no use of a communicator.
Errc classify(ncclResult_t code) noexcept;
/// Of a call on a communicator. What NCCL refuses before it launches anything is the caller's
/// error; after anything else, be it called a system error, an internal one or CUDA's, the
/// communicator is broken (peer_lost), and what was launched on it may run until it is aborted.
Errc classify_call(ncclResult_t code) noexcept;
/// Of what a communicator has noticed by itself (ncclCommGetAsyncError): ok, or it is broken.
Errc classify_noticed(ncclResult_t code) noexcept;

Error error_of(ncclResult_t code, std::string_view call);
Error failure(ncclResult_t code, std::string_view call);
/// The same of a status on a communicator, of the class that classify_call() or classify_noticed()
/// gives.
Error failure(ncclResult_t code, std::string_view call, Errc on_communicator);

}  // namespace troupe::host::cuda

/// TROUPE_CUDA_TRY for a call on a communicator.
#define TROUPE_NCCL_TRY(call)                                                             \
  do {                                                                                    \
    if (const auto status_ = (call); status_ != ncclSuccess) [[unlikely]]                 \
      return ::troupe::host::cuda::failure(status_, #call,                                \
                                           ::troupe::host::cuda::classify_call(status_)); \
  } while (false)
