#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

#include <troupe/error.hpp>

/// What the status codes of CUDA mean to supervision. Those of a library stand where it is used: a
/// header of its own declares classify(), error_of() and failure() for them.
namespace troupe::host::cuda {

/// The class of a status code other than success:
///   device_lost    those of which driver_types.h says that "the process must be terminated and
///   relaunched"; device_failed  uncorrectable ECC and NVLink errors, no device any more, system
///   not ready (fabric down);
/// anything that is not in the table is `library`. The driver's codes are numbered like the
/// runtime's.
Errc classify(cudaError_t code) noexcept;
Errc classify(CUresult code) noexcept;

/// The error for a status code: class, native code, "cudaEventQuery: an illegal memory access was
/// encountered". `call` may be the call's source text: its name is what stands before the first
/// parenthesis.
Error error_of(cudaError_t code, std::string_view call);
Error error_of(CUresult code, std::string_view call);

/// As error_of, after a call that has just failed on this thread. Clears the runtime's record of
/// the last error, which a later call would else trip over.
Error failure(cudaError_t code, std::string_view call);
Error failure(CUresult code, std::string_view call);

/// What a library's error_of() consists of: `native` is its status code, `text` its own description
/// of that.
Error make_error(Errc code, int native, std::string_view call, std::string_view text);
/// What a library's failure() does beside error_of(): clears the runtime's record of the last
/// error; and where the library's status hides a sticky error of the context, reports that one.
Error prefer_context(Error error);

}  // namespace troupe::host::cuda

/// Returns from the enclosing function with the call's error unless it succeeds. Zero is success in
/// the enumerations of CUDA and of its libraries.
#define TROUPE_CUDA_TRY(call)                                                     \
  do {                                                                            \
    if (const auto status_ = (call); static_cast<int>(status_) != 0) [[unlikely]] \
      return ::troupe::host::cuda::failure(status_, #call);                       \
  } while (false)

/// The same for a call that returns a Result.
#define TROUPE_CUDA_PROPAGATE(call)                   \
  do {                                                \
    if (auto result_ = (call); !result_) [[unlikely]] \
      return result_.error();                         \
  } while (false)
