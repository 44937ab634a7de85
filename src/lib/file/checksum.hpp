#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define TROUPE_CRC32_FUNCTION __host__ __device__
#else
#define TROUPE_CRC32_FUNCTION
#endif

/// zlib's crc32 (of IEEE 802.3), taken by many threads at once. In C++17, for kernels.
///
/// Bits are the coefficients of a polynomial over GF(2), and a checksum is a remainder modulo the
/// polynomial P below. Numbers are reflected: bit 31 is the coefficient of x^0. Of n words w of 4
/// bytes, in little-endian order, the register ends with
///
///     sum over i of w[i] x^(32 (n - i))  +  ~0 x^(32 n)      modulo P,
///
/// for appending a word to what register c stands for gives (c + w) x^32. The sum is the same in
/// whatever order it is taken: thread t of T takes the words t, t + T, t + 2 T, …, by the rule of
/// Horner with the factor x^(32 T). See Peterson and Brown, Cyclic Codes for Error Detection, 1961.
namespace troupe::crc32 {

inline constexpr std::uint32_t kPolynomial = 0xedb88320u;
inline constexpr int kTables = 4;  ///< of 256 numbers each: one for each byte of a word

/// a b modulo P.
TROUPE_CRC32_FUNCTION inline std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x8000'0000u; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

/// x^n modulo P.
TROUPE_CRC32_FUNCTION inline std::uint32_t power(std::uint64_t n) {
  std::uint32_t result = 0x8000'0000u, square = 0x4000'0000u;
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) result = multiply(square, result);
    square = multiply(square, square);
  }
  return result;
}

/// Number `i` of kTables * 256 in the tables for products with `factor`.
TROUPE_CRC32_FUNCTION inline std::uint32_t table_entry(std::uint32_t i, std::uint32_t factor) {
  return multiply((i & 255u) << (8 * (i >> 8)), factor);
}
/// The product of `value` and the tables' factor.
TROUPE_CRC32_FUNCTION inline std::uint32_t multiply_by(const std::uint32_t* tables,
                                                       std::uint32_t value) {
  return tables[value & 255u] ^ tables[256 + ((value >> 8) & 255u)] ^
         tables[512 + ((value >> 16) & 255u)] ^ tables[768 + (value >> 24)];
}

/// The share of thread `t` of `threads` in the sum over `words` words: load(i) is word i, `tables`
/// are those of x^(32 threads).
template <class Load>
TROUPE_CRC32_FUNCTION std::uint32_t share(std::uint64_t t, std::uint64_t threads,
                                          std::uint64_t words, const std::uint32_t* tables,
                                          Load load) {
  if (t >= words) return 0;
  std::uint32_t sum = load(t);
  std::uint64_t last = t;
  while (words - last > threads) {
    last += threads;
    sum = multiply_by(tables, sum) ^ load(last);
  }
  return multiply(sum, power(32 * (words - last)));
}

/// The checksum of `words` words whose sum is that, and of the up to three bytes behind them.
inline std::uint32_t finish(std::uint32_t sum, std::uint64_t words, const unsigned char* tail,
                            std::size_t tail_bytes) {
  auto crc = sum ^ multiply(0xffff'ffffu, power(32 * words));
  for (std::size_t i = 0; i < tail_bytes; ++i) {
    crc ^= tail[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ kPolynomial : crc >> 1;
  }
  return ~crc;
}

}  // namespace troupe::crc32
