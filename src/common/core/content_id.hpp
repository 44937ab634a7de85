#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// What bytes are called by their contents: whatever has the same one is taken for the same.
struct ContentId {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const ContentId&, const ContentId&) = default;

  /// 32 hexadecimal digits.
  [[nodiscard]] std::string text() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string digits;
    for (const auto word : {high, low}) {
      for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[word >> shift & 15];
    }
    return digits;
  }
  /// Reads the digits that text() wrote; nullopt if text() cannot have written them.
  static std::optional<ContentId> of_text(std::string_view digits) noexcept {
    if (digits.size() != 32) return std::nullopt;
    std::uint64_t words[2] = {};
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const auto digit = std::string_view("0123456789abcdef").find(digits[i]);
      if (digit == std::string_view::npos) return std::nullopt;
      words[i / 16] = words[i / 16] << 4 | digit;
    }
    return ContentId{words[1], words[0]};
  }
};

/// For unordered containers.
struct ContentIdHash {
  std::size_t operator()(const ContentId& id) const noexcept { return id.low; }
};

/// MurmurHash3_x64_128 (A. Appleby, public domain).
inline ContentId content_id(std::span<const std::byte> bytes) noexcept {
  constexpr std::uint64_t kFirst = 0x87c37b91114253d5u, kSecond = 0x4cf5ad432745937fu;
  const auto mixed = [](std::uint64_t word, std::uint64_t a, int turn, std::uint64_t b) {
    return std::rotl(word * a, turn) * b;
  };
  const auto finished = [](std::uint64_t word) {
    word = (word ^ word >> 33) * 0xff51afd7ed558ccdu;
    word = (word ^ word >> 33) * 0xc4ceb9fe1a85ec53u;
    return word ^ word >> 33;
  };
  std::uint64_t low = 0, high = 0;
  std::uint64_t words[2];
  std::size_t at = 0;
  for (; bytes.size() - at >= sizeof words; at += sizeof words) {
    std::memcpy(words, bytes.data() + at, sizeof words);
    low = (std::rotl(low ^ mixed(words[0], kFirst, 31, kSecond), 27) + high) * 5 + 0x52dce729u;
    high = (std::rotl(high ^ mixed(words[1], kSecond, 33, kFirst), 31) + low) * 5 + 0x38495ab5u;
  }
  std::memset(words, 0, sizeof words);
  if (at < bytes.size()) std::memcpy(words, bytes.data() + at, bytes.size() - at);
  high ^= mixed(words[1], kSecond, 33, kFirst) ^ bytes.size();
  low ^= mixed(words[0], kFirst, 31, kSecond) ^ bytes.size();
  low += high, high += low;
  low = finished(low), high = finished(high);
  low += high, high += low;
  return {low, high};
}
inline ContentId content_id(std::string_view text) noexcept {
  return content_id(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace troupe
