#pragma once

#include <cstdint>

/// What kernels and the host compute alike, in more than one library. In C++17, because kernels are
/// compiled so.
#ifdef __CUDACC__
#define TROUPE_HOST_DEVICE __host__ __device__ inline
#else
#define TROUPE_HOST_DEVICE inline
#endif

namespace troupe::host::rng_numbers {

struct Block {
  std::uint32_t word[4];
};

/// Philox4x32-10 (Salmon et al., SC'11, doi:10.1145/2063384.2063405) of the 128-bit counter
/// (step, stream), whose key is the seed.
TROUPE_HOST_DEVICE Block philox_block(std::uint64_t seed, std::uint64_t stream,
                                      std::uint64_t step) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32),
                        static_cast<std::uint32_t>(stream),
                        static_cast<std::uint32_t>(stream >> 32)};
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key0;
    const std::uint32_t c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key1;
    c[0] = c0;
    c[1] = static_cast<std::uint32_t>(product1);
    c[2] = c2;
    c[3] = static_cast<std::uint32_t>(product0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// The 32-bit word at a position of cuRAND's sequence CURAND_RNG_PSEUDO_PHILOX4_32_10 in its
/// default order: words come in groups of four, of 65536 streams by turns.
TROUPE_HOST_DEVICE std::uint32_t philox_word(std::uint64_t seed, std::uint64_t position) {
  const std::uint64_t group = position / 4;
  const Block block = philox_block(seed, group % 65536, group / 65536);
  const std::uint64_t lane = position % 4;
  // Without an index that is known late, which would put the block into memory.
  return lane == 0   ? block.word[0]
         : lane == 1 ? block.word[1]
         : lane == 2 ? block.word[2]
                     : block.word[3];
}

/// Uniform in (0, 1], as cuRAND makes an f64 of two words.
TROUPE_HOST_DEVICE double unit_of(std::uint32_t x, std::uint32_t y) {
  const std::uint64_t joined = x ^ (static_cast<std::uint64_t>(y) << 21);
  return static_cast<double>(joined) * 0x1p-53 + 0x1p-54;
}

}  // namespace troupe::host::rng_numbers
