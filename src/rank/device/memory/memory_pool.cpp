#include "rank/device/memory/memory_pool.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace troupe::rank_process {
namespace {

std::string mib(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = 1u << 20;  // rounded up, also where the sum would overflow
  return std::to_string(bytes / kMib + (bytes % kMib != 0 ? 1 : 0)) + " MiB";
}

}  // namespace

Result<MemoryPool::Range> MemoryPool::allocate(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (auto& [region, segment] : segments_) {
    if (const auto offset = segment.ranges.allocate(bytes)) return Range{region, *offset};
  }
  if (bytes > (std::uint64_t{1} << 52))
    return Error{Errc::out_of_memory, 0, mib(bytes) + " in one buffer"};
  auto grown = grow(bytes);
  if (grown.code() == Errc::out_of_memory && drop_empty()) grown = grow(bytes);
  if (!grown) return grown.error();
  return Range{*grown, *segments_.at(*grown).ranges.allocate(bytes)};
}

std::uint64_t MemoryPool::ordinary_bytes() const {
  auto bytes = std::max(options_.segment_bytes, kGranularity);
  while (bytes <= options_.largest_segment_bytes / 2 && bytes <= held_ / 8) bytes *= 2;
  return bytes;
}

Result<std::uint32_t> MemoryPool::grow(std::uint64_t bytes) {
  const auto need =
      std::max<std::uint64_t>(1, (bytes + kGranularity - 1) / kGranularity) * kGranularity;
  const auto left =
      options_.limit == 0 ? UINT64_MAX : options_.limit - std::min(held_, options_.limit);
  if (need > left) {
    return Error{Errc::out_of_memory, 0,
                 mib(bytes) + " more do not fit: " + mib(held_) + " of the memory limit of " +
                     mib(options_.limit) + " are taken"};
  }
  const auto ordinary = ordinary_bytes();
  auto want = std::min(std::max(ordinary, need), left / kGranularity * kGranularity);
  std::uint32_t id = 0;
  if (free_ids_.empty()) {
    id = next_id_++ | options_.region_bit;
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  auto made = options_.make(id, want);
  while (made.code() == Errc::out_of_memory && want > need) {
    want = std::max(want / 2 / kGranularity * kGranularity, need);
    made = options_.make(id, want);
  }
  if (!made) {
    free_ids_.push_back(id);
    return made.error();
  }
  held_ += want;
  segments_.emplace(id, Segment{want, need <= ordinary, RangeAllocator(want)});
  return id;
}

bool MemoryPool::drop_empty() {
  const auto before = segments_.size();
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto next = std::next(it);
    if (it->second.ranges.empty()) drop(it);
    it = next;
  }
  return segments_.size() < before;
}

void MemoryPool::drop(Segments::iterator it) {
  const auto region = it->first;
  held_ -= it->second.bytes;
  segments_.erase(it);
  free_ids_.push_back(region);
  options_.drop(region);
}

void MemoryPool::release(Range range) {
  const std::lock_guard lock(mutex_);
  const auto it = segments_.find(range.region);
  check(it != segments_.end(), "release of a range of no segment");
  it->second.ranges.release(range.offset);
  const auto& segment = it->second;
  if (!segment.ranges.empty()) return;
  // One larger segment stays empty, so that a buffer that comes and goes at its edge is cheap.
  const bool spare =
      is_spare(segment) && std::any_of(segments_.begin(), segments_.end(), [&](const auto& other) {
        return &other.second != &segment && is_spare(other.second);
      });
  if (!segment.ordinary || spare) drop(it);
}

/// An empty one of those that came later.
bool MemoryPool::is_spare(const Segment& segment) const {
  return segment.ordinary && segment.ranges.empty() && segment.bytes > options_.segment_bytes;
}

std::uint64_t MemoryPool::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace troupe::rank_process
