#pragma once

#include "lib/primitives/common/algorithms.cuh"

namespace troupe::host::cuda::kernels {

/// The difference of each of n elements and its neighbour; n > 0, and y may be x. W is an unsigned
/// integer of 32 or 64 bits; `floating`: the elements are float or double.
template <class W>
cudaError_t adjacent_difference(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                const W* x, bool floating, bool right, W* y);

}  // namespace troupe::host::cuda::kernels
