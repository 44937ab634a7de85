#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::wire {

/// Why a device host ends itself, in its own words; zero-filled memory holds none. Written once by
/// any of its threads, read by the rank.
class LastWords {
 public:
  static constexpr std::size_t kCapacity = 480;

  /// The first to call it is heard; what does not fit is cut off.
  void say(std::string_view words) noexcept {
    if (taken_.exchange(1) != 0) return;
    const auto bytes = std::min(words.size(), kCapacity);
    for (std::size_t i = 0; i < bytes; ++i) text_[i].store(words[i], std::memory_order_relaxed);
    bytes_.store(static_cast<std::uint32_t>(bytes), std::memory_order_release);
  }
  /// Empty: it has said nothing. Only printable characters, for the memory may hold anything.
  [[nodiscard]] std::string text() const {
    const auto bytes = std::min<std::size_t>(bytes_.load(std::memory_order_acquire), kCapacity);
    std::string words;
    for (std::size_t i = 0; i < bytes; ++i) {
      const char letter = text_[i].load(std::memory_order_relaxed);
      words += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
    return words;
  }

 private:
  std::atomic<std::uint32_t> taken_, bytes_;
  std::array<std::atomic<char>, kCapacity> text_;
};

}  // namespace troupe::wire
