#pragma once

#include <cstring>
#include <span>
#include <vector>

#include <troupe/device.hpp>

namespace troupe::info {

/// The digest of so many words w(0), w(1), …, as Device::digest() has it.
template <class Word>
std::uint64_t digest_of_words(std::uint64_t count, Word word) {
  using memory::Digest;
  std::uint64_t sum = Digest::mix(count * sizeof(std::uint64_t)), place = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += Digest::mix(word(i) + (place += Digest::kPlace));
  return sum;
}

/// The digest of elements in host memory, which fill whole words.
template <class T>
std::uint64_t host_digest(std::span<const T> elements) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(elements.data());
  return digest_of_words(elements.size_bytes() / sizeof(std::uint64_t), [bytes](std::uint64_t i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    return word;
  });
}

/// The digests of all ranges, in one trip to the device. `results` has room for them.
template <class T>
std::vector<std::uint64_t> device_digests(const Device& device,
                                          const std::vector<GpuRef<T>>& ranges,
                                          const GpuRef<std::uint64_t>& results) {
  std::int64_t count = 0;
  for (const auto& range : ranges) (void)device.digest(range, results.slice(count++, 1));
  return device.download(results.slice(0, count));
}

}  // namespace troupe::info
