#pragma once

#include <cuda_runtime_api.h>

namespace troupe::bench {

/// destination[i] = value, i < count; what a CUDA programmer would write for a few elements.
cudaError_t fill_few(float* destination, float value, int count, cudaStream_t stream);

}  // namespace troupe::bench
