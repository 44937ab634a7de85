#include "lib/file/checksum_kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/file/checksum.hpp"

namespace troupe::host::cuda::kernels {
namespace {

/// `factor`: x^(32 T), of the T threads of the grid.
__global__ void crc32_kernel(const unsigned char* data, std::uint64_t words, std::uint32_t factor,
                             bool in_words, std::uint32_t* sum) {
  __shared__ std::uint32_t tables[crc32::kTables * 256];
  for (unsigned i = threadIdx.x; i < crc32::kTables * 256; i += blockDim.x)
    tables[i] = crc32::table_entry(i, factor);
  __syncthreads();
  auto share = crc32::share(
      first_index(), index_step(), words, tables, [=](std::uint64_t i) -> std::uint32_t {
        if (in_words) return reinterpret_cast<const std::uint32_t*>(data)[i];
        const unsigned char* const at = data + 4 * i;
        return at[0] | at[1] << 8 | at[2] << 16 | static_cast<std::uint32_t>(at[3]) << 24;
      });
  for (int lanes = 16; lanes > 0; lanes /= 2) share ^= __shfl_xor_sync(0xffff'ffffu, share, lanes);
  if (threadIdx.x % 32 == 0) atomicXor(sum, share);
}

}  // namespace

cudaError_t crc32_sum(const Launch& launch, const void* data, std::uint64_t words,
                      std::uint32_t* sum) {
  if (const auto status = cudaMemsetAsync(sum, 0, sizeof *sum, launch.stream);
      status != cudaSuccess || words == 0)
    return status;
  const std::uint64_t threads = std::uint64_t{blocks_for(launch, words)} * kThreads;
  const bool in_words = reinterpret_cast<std::uintptr_t>(data) % sizeof(std::uint32_t) == 0;
  return queue(launch, words, crc32_kernel, static_cast<const unsigned char*>(data), words,
               crc32::power(32 * threads), in_words, sum);
}

cudaError_t load_crc32() {
  return load(crc32_kernel);
}

}  // namespace troupe::host::cuda::kernels
