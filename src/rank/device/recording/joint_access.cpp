#include "rank/device/recording/joint_access.hpp"

#include <algorithm>
#include <iterator>
#include <string>

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

std::vector<TailOperand> JointAccess::joined(std::uint32_t overwritten, bool all_neighbours) const {
  std::vector<TailOperand> all;
  for (const auto& [key, buffer] : buffers_) {
    for (auto it = buffer.parts.begin(); it != buffer.parts.end();) {
      const auto first = it->first;
      auto part = it->second;
      for (++it; it != buffer.parts.end() && it->first == part.end; ++it) {
        auto other = it->second;
        other.end = part.end;
        if (!(other == part)) {
          if (!all_neighbours) break;
          // If only one of the two is written, the other's bytes must be kept: count both as read.
          part = {part.end, part.read || other.read || part.written != other.written,
                  part.written || other.written, part.overwritten && other.overwritten};
        }
        part.end = it->second.end;
      }
      TailOperand operand;
      operand.range = buffer.any;
      operand.range.offset = first;
      operand.range.bytes = part.end - first;
      operand.access = !part.written ? Access::read : part.read ? Access::update : Access::write;
      operand.tag = operand.access == Access::write && part.overwritten ? overwritten : 0;
      all.push_back(operand);
    }
  }
  return all;
}

Result<std::vector<TailOperand>> JointAccess::operands(std::uint32_t overwritten) const {
  auto all = joined(overwritten, false);
  if (all.size() > kMostRanges) all = joined(overwritten, true);
  if (all.size() <= kMostRanges) return all;
  return Error{Errc::unsupported, 0,
               "it names " + std::to_string(all.size()) +
                   " ranges of memory that lie apart, and one command can name " +
                   std::to_string(kMostRanges) + ": record it in parts"};
}

}  // namespace troupe::rank_process
