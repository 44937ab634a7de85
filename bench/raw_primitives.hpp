#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// CUB as a raw program calls it: with `temporary` null `bytes` becomes what there has to be.
namespace troupe::bench {

cudaError_t cub_sort(void* temporary, std::size_t& bytes, const std::uint32_t* keys,
                     std::uint32_t* sorted, std::int64_t n, cudaStream_t stream);
cudaError_t cub_inclusive_sum(void* temporary, std::size_t& bytes, const std::uint32_t* x,
                              std::uint32_t* y, std::int64_t n, cudaStream_t stream);

}  // namespace troupe::bench
