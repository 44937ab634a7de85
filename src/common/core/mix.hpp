#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace troupe {

/// Makes one number of many, for tables: multiplication and rotation of 64 bits, as in
/// MurmurHash3's body (A. Appleby, public domain).
class Mix {
 public:
  void add(std::uint64_t word) noexcept {
    word *= 0x87c37b91114253d5u;
    word = std::rotl(word, 31) * 0x4cf5ad432745937fu;
    state_ = std::rotl(state_ ^ word, 27) * 5 + 0x52dce729u;
  }
  /// Two words with one product of 128 bits, whose halves are joined (as wyhash, Wang Yi, public
  /// domain).
  void add(std::span<const std::byte> bytes) noexcept {
    std::array<std::uint64_t, 2> pair{};
    const auto join = [&] {
      __extension__ using Product = unsigned __int128;
      const auto product =
          Product{state_ ^ pair[0] ^ 0xa076'1d64'78bd'642f} * (pair[1] ^ 0xe703'7ed1'a0b4'28db);
      state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    };
    std::size_t at = 0;
    for (; at + sizeof pair <= bytes.size(); at += sizeof pair) {
      std::memcpy(pair.data(), bytes.data() + at, sizeof pair);
      join();
    }
    if (at < bytes.size()) {
      pair = {};
      std::memcpy(pair.data(), bytes.data() + at, bytes.size() - at);
      join();
    }
    add(bytes.size());
  }
  [[nodiscard]] std::uint64_t value() const noexcept {
    const auto folded = (state_ ^ state_ >> 33) * 0xff51afd7ed558ccdu;
    return folded ^ folded >> 33;
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace troupe
