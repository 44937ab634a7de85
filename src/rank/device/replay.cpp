#include "rank/device/replay.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace troupe::rank {
namespace {

constexpr bool reads(Access access) {
  return access != Access::write;
}
constexpr bool writes(Access access) {
  return access != Access::read;
}

/// How many bytes an operation is sure to write from the start of its pure output; the operand may
/// be longer.
template <class Op>
std::uint64_t bytes_written(const Op& op) {
  if constexpr (std::is_same_v<Op, memory::Copy>) {
    return op.source.bytes;
  } else if constexpr (std::is_same_v<Op, blas::Dot> || std::is_same_v<Op, blas::Nrm2>) {
    return size_of(op.dtype);
  } else if constexpr (requires { op.count; }) {
    return static_cast<std::uint64_t>(op.count) * size_of(op.dtype);
  } else if constexpr (requires { op.n; }) {
    return static_cast<std::uint64_t>(op.n) * size_of(op.dtype);
  } else {
    return 0;
  }
}

template <class Op>
constexpr bool repeatable() {
  return Op::kLane != Lane::collective && !std::is_same_v<Op, memory::Fault>;
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
  command.for_each_operand([&](std::string_view, const Operand& operand, Access access) {
    if (writes(access)) suspect_.add(operand.region, operand.offset, operand.bytes);
  });
}

bool ReplayPlan::runs_again(const wire::Command& command) {
  bool again = true;
  std::uint64_t written = 0;
  command.visit([&](const auto& op) {
    again = repeatable<std::remove_cvref_t<decltype(op)>>();
    written = bytes_written(op);
  });
  command.for_each_operand([&](std::string_view, const Operand& operand, Access access) {
    again = again && (operand.region & kForeignRegion) == 0 &&
            (!reads(access) || suspect_.within(renewed_, operand));
  });
  if (!again) return false;
  command.for_each_operand([&](std::string_view, const Operand& operand, Access access) {
    if (access == Access::write)
      renewed_.add(operand.region, operand.offset, std::min(operand.bytes, written));
  });
  return true;
}

}  // namespace troupe::rank
