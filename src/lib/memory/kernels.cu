#include "lib/memory/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using Word = unsigned long long;

constexpr Word kPlace = 0x9e37'79b9'7f4a'7c15u;

/// As memory::Digest::mix().
__host__ __device__ Word mix(Word word) {
  word ^= word >> 32;
  word *= 0xff51'afd7'ed55'8ccdu;
  word ^= word >> 32;
  word *= 0xc4ce'b9fe'1a85'ec53u;
  return word ^ word >> 32;
}

__device__ Word word_at(const unsigned char* data, std::uint64_t bytes) {
  Word word = 0;
  for (std::uint64_t i = 0; i < bytes && i < sizeof word; ++i)
    word |= static_cast<Word>(data[i]) << 8 * i;
  return word;
}

__device__ Word mix_pair(const Pack<Word>& pair, std::uint64_t i) {
  const Word place = (2 * i + 1) * kPlace;
  return mix(pair.element[0] + place) + mix(pair.element[1] + (place + kPlace));
}

/// One item is a pair of words, where they are aligned, else one word.
__global__ void digest_kernel(const unsigned char* __restrict__ data, std::uint64_t bytes,
                              bool in_pairs, Word* __restrict__ result) {
  constexpr int kAtOnce = 4;  // loads that are under way
  const std::uint64_t words = bytes / sizeof(Word);
  Word sum = 0;
  if (in_pairs) {
    const auto* const pairs = reinterpret_cast<const Pack<Word>*>(data);
    const std::uint64_t step = index_step();
    std::uint64_t i = first_index();
    for (; i + (kAtOnce - 1) * step < words / 2; i += kAtOnce * step) {
      Pack<Word> some[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) some[k] = pairs[i + k * step];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) sum += mix_pair(some[k], i + k * step);
    }
    for (; i < words / 2; i += step) sum += mix_pair(pairs[i], i);
  }
  const std::uint64_t done = in_pairs ? words / 2 * 2 : 0;
  for (std::uint64_t i = done + first_index(); i * sizeof(Word) < bytes; i += index_step())
    sum += mix(word_at(data + i * sizeof(Word), bytes - i * sizeof(Word)) + (i + 1) * kPlace);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffff'ffffu, sum, lanes);
  __shared__ Word sums[kThreads / 32];
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) sum += sums[warp];
  atomicAdd(result, sum);
}

__global__ void begin_kernel(Word first, Word* result) {
  *result = first;
}

__global__ void flip_kernel(unsigned char* byte, unsigned char mask) {
  *byte ^= mask;
}

}  // namespace

cudaError_t digest(const Launch& launch, const void* data, std::uint64_t bytes,
                   std::uint64_t* result) {
  static_assert(sizeof(Word) == sizeof *result);
  auto* const sum = reinterpret_cast<Word*>(result);
  if (const auto status = queue(launch, 1, begin_kernel, mix(bytes), sum);
      status != cudaSuccess || bytes == 0)
    return status;
  const bool in_pairs = aligned(data);
  return queue(launch, (bytes + kVectorBytes - 1) / kVectorBytes, digest_kernel,
               static_cast<const unsigned char*>(data), bytes, in_pairs, sum);
}

cudaError_t flip(const Launch& launch, void* data, std::uint64_t bit) {
  cudaLaunchConfig_t config{};
  config.gridDim = config.blockDim = dim3(1);
  config.stream = launch.stream;
  return cudaLaunchKernelEx(&config, flip_kernel, static_cast<unsigned char*>(data) + bit / 8,
                            static_cast<unsigned char>(1u << bit % 8));
}

cudaError_t load_memory() {
  return load_all(digest_kernel, begin_kernel, flip_kernel);
}

}  // namespace troupe::host::cuda::kernels
