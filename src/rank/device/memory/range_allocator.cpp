#include "rank/device/memory/range_allocator.hpp"

#include <algorithm>
#include <iterator>

#include <troupe/error.hpp>

namespace troupe::rank_process {

RangeAllocator::RangeAllocator(std::uint64_t bytes) {
  add_free(0, bytes / kAlignment * kAlignment);
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t bytes) {
  if (bytes > UINT64_MAX - kAlignment) return std::nullopt;
  const auto size = std::max<std::uint64_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
  const auto fit = by_size_.lower_bound({size, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [available, offset] = *fit;
  remove_free(free_.find(offset));
  if (available > size) add_free(offset + size, available - size);
  taken_.emplace(offset, size);
  used_ += size;
  return offset;
}

void RangeAllocator::release(std::uint64_t offset) {
  const auto it = taken_.find(offset);
  check(it != taken_.end(), "release of a range that was not allocated");
  auto bytes = it->second;
  taken_.erase(it);
  used_ -= bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    const auto after = std::next(next);
    remove_free(next);
    next = after;
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      remove_free(before);
    }
  }
  add_free(offset, bytes);
}

void RangeAllocator::add_free(std::uint64_t offset, std::uint64_t bytes) {
  if (bytes == 0) return;
  free_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void RangeAllocator::remove_free(std::map<std::uint64_t, std::uint64_t>::iterator it) {
  by_size_.erase({it->second, it->first});
  free_.erase(it);
}

}  // namespace troupe::rank_process
