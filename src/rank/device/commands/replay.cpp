#include "rank/device/commands/replay.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::rank_process {
namespace {

constexpr bool reads(Access access) {
  return access != Access::write;
}
constexpr bool writes(Access access) {
  return access != Access::read;
}

}  // namespace

void ByteRanges::add(std::uint32_t region, std::uint64_t first, std::uint64_t bytes) {
  if (bytes == 0) return;
  auto& parts = regions_[region];
  auto end = first + bytes;
  auto it = parts.upper_bound(first);
  if (it != parts.begin() && std::prev(it)->second >= first) {
    --it;
    first = it->first;
  }
  while (it != parts.end() && it->first <= end) {
    end = std::max(end, it->second);
    it = parts.erase(it);
  }
  parts.emplace(first, end);
}

bool ByteRanges::covers(std::uint32_t region, std::uint64_t first, std::uint64_t end) const {
  const auto parts = regions_.find(region);
  if (parts == regions_.end()) return false;
  const auto behind = parts->second.upper_bound(first);
  return behind != parts->second.begin() && std::prev(behind)->second >= end;
}

bool ByteRanges::within(const ByteRanges& other, const Operand& range) const {
  const auto parts = regions_.find(range.region);
  if (parts == regions_.end()) return true;
  const auto range_end = range.offset + range.bytes;
  auto it = parts->second.upper_bound(range.offset);
  if (it != parts->second.begin()) --it;
  for (; it != parts->second.end() && it->first < range_end; ++it) {
    const auto first = std::max(it->first, range.offset), end = std::min(it->second, range_end);
    if (first < end && !other.covers(range.region, first, end)) return false;
  }
  return true;
}

void ReplayPlan::add_in_flight(const wire::Command& command) {
  for (const auto& [range, access, name] : command.operands()) {
    if (writes(access)) suspect_.add(range->region, range->offset, range->bytes);
  }
}

bool ReplayPlan::runs_again(const wire::Command& command) {
  const auto& info = command.info();
  if (!info.traits.repeatable) return false;
  for (const auto& [range, access, name] : command.operands()) {
    if ((range->region & kForeignRegion) != 0) return false;
    if (reads(access) && !suspect_.within(renewed_, *range)) return false;
  }
  for (const auto& operand : info.operands) {
    const auto& range = info.operand(command.op(), operand);
    if (!range.present() || info.access(command.op(), operand) != Access::write) continue;
    const auto written = info.written(command.op(), operand);
    renewed_.add(range.region, range.offset, std::min(range.bytes, written));
  }
  for (const auto& part : command.tail()) {
    if (part.access != Access::write) continue;
    const auto written = info.tail_written(command.op(), part);
    renewed_.add(part.range.region, part.range.offset, std::min(part.range.bytes, written));
  }
  return true;
}

}  // namespace troupe::rank_process
