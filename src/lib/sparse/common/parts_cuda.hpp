#pragma once

#include <cstddef>
#include <cstdint>

/// How one piece of memory is divided.
namespace troupe::host::cuda {

/// The places of parts that lie one behind the other, each aligned.
class PartsOfMemory {
 public:
  /// Where `count` elements begin, in bytes.
  template <class T>
  std::size_t add(std::int64_t count) {
    return add_bytes(static_cast<std::size_t>(count) * sizeof(T));
  }
  std::size_t add_bytes(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    const auto begin = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  }
  /// Of all parts.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <class T>
T* part_at(void* memory, std::size_t begin) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(memory) + begin);
}

}  // namespace troupe::host::cuda
