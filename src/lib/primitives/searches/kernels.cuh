#pragma once

#include "lib/primitives/common/algorithms.cuh"

namespace troupe::host::cuda::kernels {

/// positions[i] = how many of the n elements of `sorted` stand before values[i], i < count: those
/// below it, with `upper` also those that equal it. U is an unsigned integer of 16, 32 or 64 bits,
/// and `meaning` says what its bits mean.
template <class U>
cudaError_t search(const Launch& launch, std::int64_t n, const U* sorted, const Meaning& meaning,
                   bool upper, std::int64_t count, const U* values, std::int64_t* positions);

}  // namespace troupe::host::cuda::kernels
