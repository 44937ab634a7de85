#include "device_host/lanes/hazards.hpp"

#include <algorithm>

namespace troupe::host {
namespace {

template <class Segments>
auto first_overlap(Segments& segments, std::uint64_t begin) {
  auto it = segments.upper_bound(begin);
  if (it != segments.begin()) {
    auto before = std::prev(it);
    if (before->second.end > begin) return before;
  }
  return it;
}

}  // namespace

std::size_t HazardTracker::place_of(const Operand& operand) noexcept {
  // Buffers begin at multiples of 256 bytes.
  return (operand.offset / 256 ^ operand.offset / 65536 ^ operand.region) % 32;
}

HazardTracker::Segment* HazardTracker::met(const Operand& operand) const noexcept {
  const auto& [region, begin, segment] = recent_[place_of(operand)];
  const bool same = segment != nullptr && region == operand.region && begin == operand.offset &&
                    segment->end == operand.offset + operand.bytes;
  return same ? segment : nullptr;
}

void HazardTracker::note(Segment& segment, Access access, Queue queue, Sequence sequence) {
  if (access == Access::read) {
    segment.readers.raise(queue.index(), sequence);
  } else {
    segment = Segment{segment.end, queue, sequence, {}};
  }
}

void HazardTracker::collect(const Operand& operand, Access access, Waits& waits) const {
  if (operand.bytes == 0) return;
  if (const auto* const segment = met(operand)) {
    waits.raise(segment->writer_queue.index(), segment->writer);
    if (access != Access::read) waits.raise(segment->readers);
    return;
  }
  const auto* const segments = regions_.find(operand.region);
  if (segments == nullptr) return;
  const auto end = operand.offset + operand.bytes;
  for (auto it = first_overlap(*segments, operand.offset); it != segments->end() && it->first < end;
       ++it) {
    const auto& segment = it->second;
    waits.raise(segment.writer_queue.index(), segment.writer);
    if (access != Access::read) waits.raise(segment.readers);
  }
}

void HazardTracker::record(const Operand& operand, Access access, Queue queue, Sequence sequence,
                           const Places& completed) {
  if (operand.bytes == 0) return;
  if (auto* const segment = met(operand)) return note(*segment, access, queue, sequence);
  auto& segments = regions_[operand.region];
  const auto begin = operand.offset, end = operand.offset + operand.bytes;
  if (const auto same = segments.find(begin); same != segments.end() && same->second.end == end) {
    note(same->second, access, queue, sequence);
    recent_[place_of(operand)] = {operand.region, begin, &same->second};
    return;
  }
  split(segments, begin);
  split(segments, end);
  if (access != Access::read) {
    recent_ = {};
    segments.erase(segments.lower_bound(begin), segments.lower_bound(end));
    segments.emplace(begin, Segment{end, queue, sequence, {}});
    return;
  }
  for (auto at = begin; at < end;) {
    auto it = segments.lower_bound(at);
    if (it == segments.end() || it->first > at) {  // a gap: nobody has touched it
      const auto gap_end = it == segments.end() ? end : std::min(end, it->first);
      it = segments.emplace(at, Segment{gap_end, queue, 0, {}}).first;
    }
    auto& segment = it->second;
    if (segment.writer <= completed[segment.writer_queue.index()]) segment.writer = 0;
    segment.readers.drop(completed);
    segment.readers.raise(queue.index(), sequence);
    at = segment.end;
  }
  join(segments, begin, end);
}

void HazardTracker::join(Segments& segments, std::uint64_t begin, std::uint64_t end) {
  auto it = segments.lower_bound(begin);
  if (it != segments.begin()) --it;
  for (auto next = std::next(it); next != segments.end() && next->first <= end;) {
    if (it->second.end == next->first && it->second.is_like(next->second)) {
      it->second.end = next->second.end;
      next = segments.erase(next);
      recent_ = {};
    } else {
      it = next++;
    }
  }
}

void HazardTracker::forget(const Places& completed) {
  recent_ = {};
  regions_.for_each([&](std::uint32_t, Segments& segments) {
    std::erase_if(segments, [&](const auto& entry) {
      const Segment& segment = entry.second;
      return segment.writer <= completed[segment.writer_queue.index()] &&
             !segment.readers.any_of(
                 [&](std::size_t i, Sequence place) { return place > completed[i]; });
    });
  });
}

std::size_t HazardTracker::size() const {
  std::size_t count = 0;
  regions_.for_each([&](std::uint32_t, const Segments& segments) { count += segments.size(); });
  return count;
}

void HazardTracker::split(Segments& segments, std::uint64_t at) {
  auto it = segments.upper_bound(at);
  if (it == segments.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  Segment right = it->second;
  it->second.end = at;
  segments.emplace(at, right);
}

}  // namespace troupe::host
