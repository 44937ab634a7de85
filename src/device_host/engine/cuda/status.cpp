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

Error error_of(cudaError_t code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call, cudaGetErrorString(code));
}
Error error_of(CUresult code, std::string_view call) {
  return make_error(classify(code), static_cast<int>(code), call,
                    cudaGetErrorString(static_cast<cudaError_t>(code)));
}

Error failure(cudaError_t code, std::string_view call) {
  (void)cudaGetLastError();
  return error_of(code, call);
}
Error failure(CUresult code, std::string_view call) {
  return error_of(code, call);
}

Error make_error(Errc code, int native, std::string_view call, std::string_view text) {
  std::string message(name_of(call));
  message += ": ";
  message += text;
  return {code, native, std::move(message)};
}

/// A sticky error is returned by every call, and a query does not block.
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

}  // namespace troupe::host::cuda
