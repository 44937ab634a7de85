#pragma once

#include <cuda_runtime_api.h>

/// Kernels that break the context on purpose, for tests and drills. Each queues and returns; the
/// error shows when the stream reaches the kernel.
namespace troupe::host::cuda::faults {

/// Loads them: to load a kernel waits for those that run, such as a collective's.
cudaError_t preload();

/// Stores through a pointer to unmapped memory: cudaErrorIllegalAddress.
cudaError_t illegal_address(cudaStream_t stream);
/// Executes a trap, which ends the kernel: cudaErrorLaunchFailure or cudaErrorIllegalInstruction.
cudaError_t trap(cudaStream_t stream);
/// Fails a device-side assertion: cudaErrorAssert.
cudaError_t assertion(cudaStream_t stream);
/// Stores eight bytes at an odd address within `memory` (16 bytes or more):
/// cudaErrorMisalignedAddress.
cudaError_t misaligned(cudaStream_t stream, void* memory);

}  // namespace troupe::host::cuda::faults
