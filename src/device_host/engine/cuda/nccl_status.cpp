#include "device_host/engine/cuda/nccl_status.hpp"

#include <string>
#include <utility>

namespace troupe::host::cuda {

Errc classify(ncclResult_t code) noexcept {
  switch (code) {
    case ncclInvalidArgument:
    case ncclInvalidUsage: return Errc::invalid;
    case ncclRemoteError: return Errc::peer_lost;
    default: return Errc::library;
  }
}

Errc classify_call(ncclResult_t code) noexcept {
  switch (code) {
    case ncclSuccess:
    case ncclInProgress: return Errc::ok;
    case ncclInvalidArgument:
    case ncclInvalidUsage: return Errc::invalid;
    default: return Errc::peer_lost;
  }
}

Errc classify_noticed(ncclResult_t code) noexcept {
  return code == ncclSuccess || code == ncclInProgress ? Errc::ok : Errc::peer_lost;
}

Error error_of(ncclResult_t code, std::string_view call) {
  Error error = make_error(classify(code), static_cast<int>(code), call, ncclGetErrorString(code));
  // A communicator is optional there: the text is the library's last warning.
  const char* detail = ncclGetLastError(nullptr);
  if (detail != nullptr && *detail != '\0') error.message += std::string(": ") + detail;
  return error;
}

Error failure(ncclResult_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}
Error failure(ncclResult_t code, std::string_view call, Errc on_communicator) {
  auto error = error_of(code, call);
  error.code = on_communicator;
  return prefer_context(std::move(error));
}

}  // namespace troupe::host::cuda
