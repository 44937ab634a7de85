#pragma once

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>
#include <nccl.h>

#include <string_view>

#include <troupe/error.hpp>

/// What the status codes of CUDA and its libraries mean to supervision.
namespace troupe::host::cuda {

/// The class of a status code other than success. For CUDA's own codes:
///   device_lost    those of which driver_types.h says that "the process must be terminated and
///   relaunched"; device_failed  uncorrectable ECC and NVLink errors, no device any more, system
///   not ready (fabric down);
/// anything that is not in the table is `library`. The driver's codes are numbered like the
/// runtime's.
Errc classify(cudaError_t code) noexcept;
Errc classify(CUresult code) noexcept;
Errc classify(cublasStatus_t code) noexcept;
Errc classify(cusparseStatus_t code) noexcept;
/// Of calls that make no use of a communicator.
Errc classify(ncclResult_t code) noexcept;
/// Of a call on a communicator. What NCCL refuses before it launches anything is the caller's
/// error; after anything else, be it called a system error, an internal one or CUDA's, the
/// communicator is broken (peer_lost), and what was launched on it may run until it is aborted.
Errc classify_call(ncclResult_t code) noexcept;
/// Of what a communicator has noticed by itself (ncclCommGetAsyncError): ok, or it is broken.
Errc classify_noticed(ncclResult_t code) noexcept;

/// The error for a status code: class, native code, "cudaEventQuery: an illegal memory access was
/// encountered". `call` may be the call's source text: its name is what stands before the first
/// parenthesis.
Error error_of(cudaError_t code, std::string_view call);
Error error_of(CUresult code, std::string_view call);
Error error_of(cublasStatus_t code, std::string_view call);
Error error_of(cusparseStatus_t code, std::string_view call);
Error error_of(ncclResult_t code, std::string_view call);

/// As error_of, after a call that has just failed on this thread. Clears the runtime's record of
/// the last error, which a later call would else trip over; and where a library's status hides a
/// sticky error of the context, reports that one.
Error failure(cudaError_t code, std::string_view call);
Error failure(CUresult code, std::string_view call);
Error failure(cublasStatus_t code, std::string_view call);
Error failure(cusparseStatus_t code, std::string_view call);
Error failure(ncclResult_t code, std::string_view call);
/// The same of a status on a communicator, of the class that classify_call() or classify_noticed()
/// gives.
Error failure(ncclResult_t code, std::string_view call, Errc on_communicator);

}  // namespace troupe::host::cuda

/// Returns from the enclosing function with the call's error unless it succeeds. Zero is success in
/// all six enumerations.
#define TROUPE_CUDA_TRY(call)                                                     \
  do {                                                                            \
    if (const auto status_ = (call); static_cast<int>(status_) != 0) [[unlikely]] \
      return ::troupe::host::cuda::failure(status_, #call);                       \
  } while (false)

/// The same for a call on a communicator.
#define TROUPE_NCCL_TRY(call)                                                             \
  do {                                                                                    \
    if (const auto status_ = (call); status_ != ncclSuccess) [[unlikely]]                 \
      return ::troupe::host::cuda::failure(status_, #call,                                \
                                           ::troupe::host::cuda::classify_call(status_)); \
  } while (false)

/// The same for a call that returns a Result.
#define TROUPE_CUDA_PROPAGATE(call)                   \
  do {                                                \
    if (auto result_ = (call); !result_) [[unlikely]] \
      return result_.error();                         \
  } while (false)
