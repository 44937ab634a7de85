#include "device_host/engine/cuda/status.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lib/blas/common/status_cuda.hpp"
#include "lib/collective/nccl/status_cuda.hpp"
#include "lib/sparse/common/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

// The codes of which CUDA 13's driver_types.h says that the process must be terminated and
// relaunched.
const std::vector<cudaError_t> kSticky = {cudaErrorContained,          cudaErrorIllegalAddress,
                                          cudaErrorLaunchTimeout,      cudaErrorAssert,
                                          cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
                                          cudaErrorMisalignedAddress,  cudaErrorInvalidAddressSpace,
                                          cudaErrorInvalidPc,          cudaErrorLaunchFailure,
                                          cudaErrorTensorMemoryLeak,   cudaErrorMpsClientTerminated,
                                          cudaErrorExternalDevice};
const std::vector<cudaError_t> kDeviceFailed = {cudaErrorECCUncorrectable,
                                                cudaErrorNvlinkUncorrectable, cudaErrorNoDevice,
                                                cudaErrorSystemNotReady};

TEST(CudaStatus, StickyCodesLoseTheDevice) {
  for (const auto code : kSticky) {
    EXPECT_EQ(classify(code), Errc::device_lost) << cudaGetErrorName(code);
    EXPECT_EQ(classify(static_cast<CUresult>(code)), Errc::device_lost) << cudaGetErrorName(code);
  }
}

TEST(CudaStatus, BrokenHardwareFailsTheDevice) {
  for (const auto code : kDeviceFailed) {
    EXPECT_EQ(classify(code), Errc::device_failed) << cudaGetErrorName(code);
    EXPECT_EQ(classify(static_cast<CUresult>(code)), Errc::device_failed) << cudaGetErrorName(code);
  }
}

TEST(CudaStatus, NothingElseEndsAProcess) {
  for (int number = 1; number < 1000; ++number) {
    const auto code = static_cast<cudaError_t>(number);
    const auto contains = [&](const std::vector<cudaError_t>& list) {
      return std::find(list.begin(), list.end(), code) != list.end();
    };
    EXPECT_EQ(classify(code) == Errc::device_lost, contains(kSticky)) << number;
    EXPECT_EQ(classify(code) == Errc::device_failed, contains(kDeviceFailed)) << number;
    EXPECT_NE(classify(code), Errc::ok) << number;
  }
}

// The driver's codes are classified by number, so the two enumerations must agree.
TEST(CudaStatus, DriverAndRuntimeNumberAlike) {
  EXPECT_EQ(static_cast<int>(CUDA_ERROR_ILLEGAL_ADDRESS),
            static_cast<int>(cudaErrorIllegalAddress));
  EXPECT_EQ(static_cast<int>(CUDA_ERROR_LAUNCH_FAILED), static_cast<int>(cudaErrorLaunchFailure));
  EXPECT_EQ(static_cast<int>(CUDA_ERROR_ECC_UNCORRECTABLE),
            static_cast<int>(cudaErrorECCUncorrectable));
  EXPECT_EQ(static_cast<int>(CUDA_ERROR_CONTAINED), static_cast<int>(cudaErrorContained));
  EXPECT_EQ(classify(CUDA_ERROR_OUT_OF_MEMORY), Errc::out_of_memory);
  EXPECT_EQ(classify(CUDA_ERROR_INVALID_VALUE), Errc::invalid);
  EXPECT_EQ(classify(CUDA_ERROR_NOT_SUPPORTED), Errc::unsupported);
}

TEST(CudaStatus, RuntimeClasses) {
  EXPECT_EQ(classify(cudaErrorMemoryAllocation), Errc::out_of_memory);
  EXPECT_EQ(classify(cudaErrorInvalidValue), Errc::invalid);
  EXPECT_EQ(classify(cudaErrorInvalidDevice), Errc::invalid);
  EXPECT_EQ(classify(cudaErrorNotSupported), Errc::unsupported);
  EXPECT_EQ(classify(cudaErrorNoKernelImageForDevice), Errc::unsupported);
  EXPECT_EQ(classify(cudaErrorInsufficientDriver), Errc::unsupported);
  EXPECT_EQ(classify(cudaErrorOperatingSystem), Errc::io);
  EXPECT_EQ(classify(cudaErrorTimeout), Errc::timeout);
  // A device that is busy now may be free later; an unknown error names no culprit.
  EXPECT_EQ(classify(cudaErrorDevicesUnavailable), Errc::library);
  EXPECT_EQ(classify(cudaErrorUnknown), Errc::library);
}

TEST(CudaStatus, LibraryClasses) {
  EXPECT_EQ(classify(CUBLAS_STATUS_ALLOC_FAILED), Errc::out_of_memory);
  EXPECT_EQ(classify(CUBLAS_STATUS_INVALID_VALUE), Errc::invalid);
  EXPECT_EQ(classify(CUBLAS_STATUS_NOT_SUPPORTED), Errc::unsupported);
  EXPECT_EQ(classify(CUBLAS_STATUS_ARCH_MISMATCH), Errc::unsupported);
  EXPECT_EQ(classify(CUBLAS_STATUS_EXECUTION_FAILED), Errc::library);
  EXPECT_EQ(classify(CUBLAS_STATUS_NOT_INITIALIZED), Errc::library);

  EXPECT_EQ(classify(CUSPARSE_STATUS_ALLOC_FAILED), Errc::out_of_memory);
  EXPECT_EQ(classify(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES), Errc::out_of_memory);
  EXPECT_EQ(classify(CUSPARSE_STATUS_INVALID_VALUE), Errc::invalid);
  EXPECT_EQ(classify(CUSPARSE_STATUS_NOT_SUPPORTED), Errc::unsupported);
  EXPECT_EQ(classify(CUSPARSE_STATUS_EXECUTION_FAILED), Errc::library);

  EXPECT_EQ(classify(ncclRemoteError), Errc::peer_lost);
  EXPECT_EQ(classify(ncclInvalidArgument), Errc::invalid);
  EXPECT_EQ(classify(ncclInvalidUsage), Errc::invalid);
  EXPECT_EQ(classify(ncclUnhandledCudaError), Errc::library);
  EXPECT_EQ(classify(ncclSystemError), Errc::library);
}

// A kernel of NCCL's goes on until the communicator is aborted, whatever the error is called: it
// must never pass for one failed call whose memory is free again.
TEST(CudaStatus, ACommunicatorsErrorsAreTheCommunicators) {
  for (int number = 1; number < ncclNumResults; ++number) {
    const auto code = static_cast<ncclResult_t>(number);
    const bool refused = code == ncclInvalidArgument || code == ncclInvalidUsage;
    const auto broken = code == ncclInProgress ? Errc::ok : Errc::peer_lost;
    EXPECT_EQ(classify_noticed(code), broken) << number;
    EXPECT_EQ(classify_call(code), refused ? Errc::invalid : broken) << number;
  }
  EXPECT_EQ(classify_noticed(ncclSuccess), Errc::ok);
  EXPECT_EQ(classify_call(ncclSuccess), Errc::ok);
}

TEST(CudaStatus, NativeCodeAndTextAreKept) {
  const auto error = error_of(cudaErrorIllegalAddress, "cudaEventQuery(marks.event(mark))");
  EXPECT_EQ(error.code, Errc::device_lost);
  EXPECT_EQ(error.native, 700);
  EXPECT_EQ(error.message, "cudaEventQuery: an illegal memory access was encountered");
  EXPECT_EQ(error_of(CUDA_ERROR_OUT_OF_MEMORY, "api.cuMemCreate(&handle, bytes)").message,
            "cuMemCreate: out of memory");
  EXPECT_EQ(error_of(CUBLAS_STATUS_INVALID_VALUE, "cublasSgemm").native, 7);
  EXPECT_EQ(error_of(CUSPARSE_STATUS_INVALID_VALUE, "cusparseSpMV").native, 3);
  EXPECT_EQ(error_of(ncclRemoteError, "ncclAllReduce").native, 6);
}

}  // namespace
}  // namespace troupe::host::cuda
