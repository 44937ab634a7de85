#include "device_host/engine/cuda/status.hpp"

#include <string>
#include <utility>

namespace troupe::host::cuda {
namespace {

/// "cuMemCreate" of "api.cuMemCreate(&handle, size)".
std::string_view name_of(std::string_view call) {
  call = call.substr(0, call.find('('));
  const auto qualifier = call.find_last_of(".>:");
  return qualifier == std::string_view::npos ? call : call.substr(qualifier + 1);
}

template <class Code>
Error make_error(Code code, std::string_view call, std::string_view text) {
  std::string message(name_of(call));
  message += ": ";
  message += text;
  return {classify(code), static_cast<int>(code), std::move(message)};
}

/// What the context itself has to say: a sticky error is returned by every call, and a query does
/// not block.
Error prefer_context(Error error) {
  const auto context = cudaStreamQuery(cudaStreamLegacy);
  (void)cudaGetLastError();
  if (context == cudaSuccess || context == cudaErrorNotReady) return error;
  const auto code = classify(context);
  if (code != Errc::device_lost && code != Errc::device_failed) return error;
  Error sticky = error_of(context, error.message.substr(0, error.message.find(':')));
  sticky.message += " (reported as \"" + error.message.substr(error.message.find(':') + 2) + "\")";
  return sticky;
}

}  // namespace

Errc classify(cudaError_t code) noexcept {
  switch (code) {
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice: return Errc::device_lost;

    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorNoDevice:
    case cudaErrorSystemNotReady: return Errc::device_failed;

    case cudaErrorMemoryAllocation: return Errc::out_of_memory;

    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidClusterSize:
    case cudaErrorInvalidResourceType:
    case cudaErrorInvalidResourceConfiguration: return Errc::invalid;

    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedLimit:
    case cudaErrorPeerAccessUnsupported:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorUnsupportedExecAffinity:
    case cudaErrorUnsupportedDevSideSync:
    case cudaErrorNotSupported:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorCdpNotSupported:
    case cudaErrorCdpVersionMismatch: return Errc::unsupported;

    case cudaErrorOperatingSystem: return Errc::io;
    case cudaErrorTimeout: return Errc::timeout;
    default: return Errc::library;
  }
}

Errc classify(CUresult code) noexcept {
  return classify(static_cast<cudaError_t>(code));
}

Errc classify(cublasStatus_t code) noexcept {
  switch (code) {
    case CUBLAS_STATUS_ALLOC_FAILED: return Errc::out_of_memory;
    case CUBLAS_STATUS_INVALID_VALUE: return Errc::invalid;
    case CUBLAS_STATUS_ARCH_MISMATCH:
    case CUBLAS_STATUS_NOT_SUPPORTED: return Errc::unsupported;
    default: return Errc::library;
  }
}

Errc classify(cusparseStatus_t code) noexcept {
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

Error error_of(cudaError_t code, std::string_view call) {
  return make_error(code, call, cudaGetErrorString(code));
}
Error error_of(CUresult code, std::string_view call) {
  return make_error(code, call, cudaGetErrorString(static_cast<cudaError_t>(code)));
}
Error error_of(cublasStatus_t code, std::string_view call) {
  return make_error(code, call, cublasGetStatusString(code));
}
Error error_of(cusparseStatus_t code, std::string_view call) {
  return make_error(code, call, cusparseGetErrorString(code));
}
Error error_of(ncclResult_t code, std::string_view call) {
  Error error = make_error(code, call, ncclGetErrorString(code));
  // A communicator is optional there: the text is the library's last warning.
  const char* detail = ncclGetLastError(nullptr);
  if (detail != nullptr && *detail != '\0') error.message += std::string(": ") + detail;
  return error;
}

Error failure(cudaError_t code, std::string_view call) {
  (void)cudaGetLastError();
  return error_of(code, call);
}
Error failure(CUresult code, std::string_view call) {
  return error_of(code, call);
}
Error failure(cublasStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
}
Error failure(cusparseStatus_t code, std::string_view call) {
  return prefer_context(error_of(code, call));
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
