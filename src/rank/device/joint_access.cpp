#include "rank/device/joint_access.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::rank_process {

/// What a command reads it reads before it writes anything.
void JointAccess::add(const detail::CommandView& command, bool surely) {
  const auto& info = *command.info;
  const auto* const op = command.op.data();
  const auto each = [&](bool reads) {
    for (const auto& operand : info.operands) {
      const auto& range = info.operand(op, operand);
      if (!range.present()) continue;
      const auto access = info.access(op, operand);
      if (reads && access != Access::write) add(range, Access::read, 0);
      if (!reads && access != Access::read)
        add(range, access,
            !surely                   ? 0
            : access == Access::write ? info.written(op, operand)
                                      : range.bytes);
    }
    for (const auto& part : command.tail) {
      if (reads && part.access != Access::write) add(part.range, Access::read, 0);
      if (!reads && part.written())
        add(part.range, part.access,
            !surely                        ? 0
            : part.access == Access::write ? info.tail_written(op, part)
                                           : part.range.bytes);
    }
  };
  each(true);
  each(false);
}

void JointAccess::split(Parts& parts, std::uint64_t at) {
  auto it = parts.upper_bound(at);
  if (it == parts.begin()) return;
  --it;
  if (it->first == at || it->second.end <= at) return;
  auto behind = it->second;
  it->second.end = at;
  parts.emplace(at, behind);
}

/// `overwritten`: bytes of it that surely are, from its start.
void JointAccess::add(const Operand& range, Access access, std::uint64_t overwritten) {
  if (range.bytes == 0) return;
  auto& buffer = buffers_[{range.region, range.buffer}];
  if (buffer.parts.empty()) buffer.any = range;
  const auto end = range.offset + range.bytes;
  const auto sure_end = range.offset + std::min(overwritten, range.bytes);
  auto& parts = buffer.parts;
  split(parts, range.offset);
  split(parts, end);
  if (sure_end > range.offset) split(parts, sure_end);
  // What nobody has named yet.
  for (auto at = range.offset; at < end;) {
    auto next = parts.lower_bound(at);
    if (next != parts.end() && next->first == at) {
      at = next->second.end;
      continue;
    }
    auto until = next == parts.end() ? end : std::min(end, next->first);
    if (at < sure_end) until = std::min(until, sure_end);
    parts.emplace(at, Part{until});
    at = until;
  }
  for (auto it = parts.lower_bound(range.offset); it != parts.end() && it->first < end; ++it) {
    auto& part = it->second;
    if (access == Access::read) {
      part.read = part.read || !part.overwritten;
    } else {
      part.written = true;
      if (it->first < sure_end && !part.read) part.overwritten = true;
    }
  }
}

void JointAccess::append(const Operand& any, std::uint64_t first, const Part& part,
                         std::uint32_t overwritten, std::vector<TailOperand>& to) {
  TailOperand operand;
  operand.range = any;
  operand.range.offset = first;
  operand.range.bytes = part.end - first;
  operand.access = !part.written ? Access::read : part.read ? Access::update : Access::write;
  operand.tag = operand.access == Access::write && part.overwritten ? overwritten : 0;
  to.push_back(operand);
}

std::vector<TailOperand> JointAccess::operands(std::uint32_t overwritten) const {
  std::vector<TailOperand> all;
  for (const auto& [key, buffer] : buffers_) {
    for (auto it = buffer.parts.begin(); it != buffer.parts.end();) {
      const auto first = it->first;
      auto part = it->second;
      for (++it; it != buffer.parts.end() && it->first == part.end; ++it) {
        auto other = it->second;
        other.end = part.end;
        if (!(other == part)) break;
        part.end = it->second.end;
      }
      append(buffer.any, first, part, overwritten, all);
    }
  }
  if (all.size() <= kMostRanges) return all;
  all.clear();
  for (const auto& [key, buffer] : buffers_) {
    const auto& parts = buffer.parts;
    Part joined{std::prev(parts.end())->second.end};
    // Bytes between them may be anybody's: nothing is surely overwritten, and what is written keeps
    // what else is there.
    for (const auto& [first, part] : parts) {
      joined.written = joined.written || part.written;
      joined.read = true;
    }
    append(buffer.any, parts.begin()->first, joined, overwritten, all);
  }
  return all;
}

}  // namespace troupe::rank_process
