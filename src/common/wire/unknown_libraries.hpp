#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe::wire {

/// The libraries of the rank that its device host does not have, and why. Written by the device
/// host before `ready`, read by the rank; zero-filled memory holds none.
class UnknownLibraries {
 public:
  /// `lane`: the rank's. A reason that no longer fits is cut off.
  void add(std::uint32_t lane, std::string_view library, std::string_view reason) {
    const auto line = std::string(library) + ": " + std::string(reason) + "\n";
    const auto used = ::strnlen(text_.data(), text_.size() - 1);
    line.copy(text_.data() + used, text_.size() - 1 - used);
    lanes_.fetch_or(1u << lane, std::memory_order_release);
  }
  [[nodiscard]] bool any() const noexcept { return lanes() != 0; }
  /// A bit each.
  [[nodiscard]] std::uint32_t lanes() const noexcept {
    return lanes_.load(std::memory_order_acquire);
  }
  /// Lines "library: reason".
  [[nodiscard]] std::string text() const {
    return {text_.data(), ::strnlen(text_.data(), text_.size())};
  }
  /// The reason of one library; empty: it did not fit.
  [[nodiscard]] std::string why(std::string_view library) const {
    const auto all = "\n" + text(), begin = "\n" + std::string(library) + ": ";
    const auto at = all.find(begin);
    if (at == std::string::npos) return {};
    const auto from = at + begin.size();
    return all.substr(from, std::min(all.find('\n', from), all.size()) - from);
  }

 private:
  std::atomic<std::uint32_t> lanes_;
  std::array<char, 3068> text_;
};

}  // namespace troupe::wire
