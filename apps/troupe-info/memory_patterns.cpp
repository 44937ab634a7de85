#include "memory_patterns.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <troupe/lib/rng.hpp>

#include "digest.hpp"

namespace troupe::info {
namespace {

constexpr std::uint64_t kConstants[] = {0x5555'5555'5555'5555u, 0xaaaa'aaaa'aaaa'aaaau, 0,
                                        ~std::uint64_t{0}};
constexpr std::size_t kMostFaults = 4;  ///< so many are located
/// A range is divided into so many slices to find the one that differs.
constexpr std::int64_t kSlices = 64;
constexpr std::int64_t kFewWords = 512;  ///< as many are downloaded and compared on the host
constexpr int kAttempts = 3;

}  // namespace

std::string MemoryPatterns::Pattern::name() const {
  return random ? "random" : fmt::format("{:#018x}", value);
}

MemoryPatterns::MemoryPatterns(const Device& device, std::uint64_t buffer_bytes,
                               std::uint64_t most_bytes)
    : device_(device) {
  const auto words = static_cast<std::int64_t>(buffer_bytes / sizeof(std::uint64_t));
  reference_ = device.alloc<std::uint64_t>(words, "memory test: reference");
  buffers_.push_back(device.alloc<std::uint64_t>(words, "memory test"));
  while ((buffers_.size() + 1) * buffer_bytes <= most_bytes) {
    auto buffer = device.try_alloc<std::uint64_t>(words, "memory test");
    if (!buffer.ok()) break;  // free memory need not be in one piece
    buffers_.push_back(std::move(*buffer));
  }
  results_ = device.alloc<std::uint64_t>(std::max(std::ssize(buffers_), 2 * kSlices));
  facts_.buffers = static_cast<int>(buffers_.size());
  facts_.bytes = buffers_.size() * buffer_bytes;
  for (const auto value : kConstants) {
    constants_.push_back({.random = false, .value = value});
    constant_digests_.push_back(digest_of_words(static_cast<std::uint64_t>(words),
                                                [value](std::uint64_t) { return value; }));
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    randoms_.push_back({.random = true, .value = i});
    write(randoms_.back(), reference_);
    random_digests_.push_back(digest_of(reference_));
  }
}

void MemoryPatterns::run(std::uint64_t round) {
  const auto count = buffers_.size();
  for (std::size_t i = 0; i < constants_.size(); ++i)
    verify(std::vector(count, constants_[i]), std::vector(count, constant_digests_[i]));
  auto patterns = randoms_;
  auto expected = random_digests_;
  // Each round has other numbers at a place.
  const auto turn = static_cast<std::ptrdiff_t>(round % count);
  std::rotate(patterns.begin(), patterns.begin() + turn, patterns.end());
  std::rotate(expected.begin(), expected.begin() + turn, expected.end());
  verify(patterns, expected);
}

void MemoryPatterns::write(const Pattern& pattern, const GpuRef<std::uint64_t>& buffer) const {
  if (pattern.random)
    (void)device_.rng().bits<std::uint64_t>(buffer, {.seed = pattern.value});
  else
    (void)device_.fill(buffer, pattern.value);
}

/// Fills all buffers before it reads the first one: the caches hold little of it by then.
void MemoryPatterns::verify(const std::vector<Pattern>& patterns,
                            const std::vector<std::uint64_t>& expected) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) write(patterns[i], buffers_[i]);
  const auto digests = device_digests(device_, buffers_, results_);
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    ++facts_.verified;
    if (digests[i] == expected[i]) continue;
    ++facts_.wrong;
    if (facts_.faults.size() < kMostFaults)
      facts_.faults.push_back(look_into(static_cast<int>(i), patterns[i], expected[i]));
  }
}

MemoryFault MemoryPatterns::look_into(int buffer, const Pattern& pattern, std::uint64_t expected) {
  MemoryFault fault;
  fault.pattern = pattern.name();
  fault.buffer = buffer;
  const auto& contents = buffers_[static_cast<std::size_t>(buffer)];
  fault.still = digest_of(contents) != expected;
  if (!fault.still || !make_reference(pattern, expected)) return fault;
  const auto first = differing_word(contents, End::first);
  const auto last = differing_word(contents, End::last);
  if (!first || !last) return fault;
  fault.located = true;
  fault.first_byte = static_cast<std::uint64_t>(first->place) * sizeof(std::uint64_t);
  fault.last_byte = static_cast<std::uint64_t>(last->place + 1) * sizeof(std::uint64_t) - 1;
  fault.wanted = first->wanted;
  fault.got = first->got;
  return fault;
}

bool MemoryPatterns::make_reference(const Pattern& pattern, std::uint64_t expected) const {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    write(pattern, reference_);
    if (digest_of(reference_) == expected) return true;
  }
  return false;
}

std::optional<MemoryPatterns::Word> MemoryPatterns::differing_word(
    const GpuRef<std::uint64_t>& buffer, End end) const {
  std::int64_t begin = 0, count = buffer.length();
  while (count > kFewWords) {
    const auto each = (count + kSlices - 1) / kSlices;
    std::vector<GpuRef<std::uint64_t>> slices;
    for (std::int64_t i = 0; i < count; i += each) {
      const auto length = std::min(each, count - i);
      slices.push_back(buffer.slice(begin + i, length));
      slices.push_back(reference_.slice(begin + i, length));
    }
    const auto digests = device_digests(device_, slices, results_);
    std::optional<std::int64_t> found;
    for (std::size_t i = 0; i < digests.size(); i += 2) {
      if (digests[i] == digests[i + 1] || (found && end == End::first)) continue;
      found = static_cast<std::int64_t>(i / 2);
    }
    if (!found) return std::nullopt;
    begin += *found * each;
    count = slices[static_cast<std::size_t>(2 * *found)].length();
  }
  const auto got = device_.download(buffer.slice(begin, count));
  const auto wanted = device_.download(reference_.slice(begin, count));
  std::optional<Word> word;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == wanted[i] || (word && end == End::first)) continue;
    word = {begin + static_cast<std::int64_t>(i), wanted[i], got[i]};
  }
  return word;
}

std::uint64_t MemoryPatterns::digest_of(const GpuRef<std::uint64_t>& range) const {
  return device_digests(device_, std::vector{range}, results_).front();
}

}  // namespace troupe::info
