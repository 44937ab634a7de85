#include "rank/device/memory_pool.hpp"

#include <algorithm>
#include <string>

namespace troupe::rank {
namespace {

std::string mib(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Result<MemoryPool::Range> MemoryPool::allocate(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (auto& [region, segment] : segments_) {
    if (const auto offset = segment.ranges.allocate(bytes)) return Range{region, *offset};
  }
  if (bytes > (std::uint64_t{1} << 52)) return Error{Errc::out_of_memory, 0, mib(bytes) + " in one buffer"};
  const auto want = std::max(options_.segment_bytes, (bytes + kGranularity - 1) / kGranularity * kGranularity);
  if (options_.limit != 0 && want > options_.limit - std::min(held_, options_.limit)) {
    return Error{Errc::out_of_memory, 0,
                 mib(bytes) + " more do not fit: " + mib(held_) + " of the memory limit of " + mib(options_.limit) +
                     " are taken"};
  }
  std::uint32_t id = 0;
  if (free_ids_.empty()) {
    id = next_id_++ | options_.region_bit;
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  if (auto made = options_.make(id, want); !made) {
    free_ids_.push_back(id);
    return made.error();
  }
  held_ += want;
  auto& segment = segments_.emplace(id, Segment{want, RangeAllocator(want)}).first->second;
  return Range{id, *segment.ranges.allocate(bytes)};
}

void MemoryPool::release(Range range) {
  const std::lock_guard lock(mutex_);
  const auto it = segments_.find(range.region);
  check(it != segments_.end(), "release of a range of no segment");
  it->second.ranges.release(range.offset);
  if (!it->second.ranges.empty() || it->second.bytes <= options_.segment_bytes) return;
  held_ -= it->second.bytes;
  segments_.erase(it);
  free_ids_.push_back(range.region);
  options_.drop(range.region);
}

std::uint64_t MemoryPool::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace troupe::rank
