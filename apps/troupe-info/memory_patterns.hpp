#pragma once

#include <optional>
#include <vector>

#include <troupe/device.hpp>

#include "burn_in.hpp"

namespace troupe::info {

/// Fills buffers of device memory with patterns and reads them back on the device: the digest of a
/// buffer tells whether it holds the pattern. Its functions throw Exception, with the error of
/// the device.
///
/// Constant patterns have digests that the host computes. The digest of a random pattern is taken
/// from a reference buffer, which lies elsewhere. Each buffer has random numbers of its own, so
/// that a write that went to another buffer shows.
class MemoryPatterns {
 public:
  /// Takes buffers of `buffer_bytes` each, `most_bytes` in all if there is room, at least one.
  MemoryPatterns(const Device& device, std::uint64_t buffer_bytes, std::uint64_t most_bytes);
  /// Every pattern once in every buffer.
  void run(std::uint64_t round);
  [[nodiscard]] const MemoryFacts& facts() const { return facts_; }

 private:
  struct Pattern {
    bool random = false;
    std::uint64_t value = 0;  ///< each word; of random numbers, the seed
    [[nodiscard]] std::string name() const;
  };
  struct Word {
    std::int64_t place = 0;
    std::uint64_t wanted = 0, got = 0;
  };
  enum class End { first, last };

  void write(const Pattern& pattern, const GpuRef<std::uint64_t>& buffer) const;
  void verify(const std::vector<Pattern>& patterns, const std::vector<std::uint64_t>& expected);
  [[nodiscard]] MemoryFault look_into(int buffer, const Pattern& pattern, std::uint64_t expected);
  /// Has the reference buffer hold the pattern; false if it does not even after some attempts.
  [[nodiscard]] bool make_reference(const Pattern& pattern, std::uint64_t expected) const;
  /// The first or last word in which the buffer differs from the reference.
  [[nodiscard]] std::optional<Word> differing_word(const GpuRef<std::uint64_t>& buffer,
                                                   End end) const;
  [[nodiscard]] std::uint64_t digest_of(const GpuRef<std::uint64_t>& range) const;

  const Device& device_;
  GpuRef<std::uint64_t> reference_, results_;
  std::vector<GpuRef<std::uint64_t>> buffers_;
  std::vector<Pattern> constants_, randoms_;  ///< as many random patterns as there are buffers
  std::vector<std::uint64_t> constant_digests_, random_digests_;
  MemoryFacts facts_;
};

}  // namespace troupe::info
