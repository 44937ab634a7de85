#include <algorithm>
#include <cstring>

#include <troupe/lib/collective.hpp>

#include "common/wire/checker.hpp"

// Several collectives as one operation.

namespace troupe::collective {
namespace {

/// Stands before each operation in the inline bytes.
struct BundledHead {
  std::uint32_t opcode = 0;
  std::uint32_t bytes = 0;
};

Error bad_bundle(const std::string& what) {
  return {Errc::invalid, 0, std::string(Bundle::kName) + ": " + what};
}

/// An operand of a bundled operation as it stands in the tail. False: it does not.
bool resolve(Operand& range, std::span<const TailOperand> tail, bool written) {
  const std::size_t number = range.region;
  if (number > tail.size()) return false;
  const auto& part = tail[number - 1];
  const auto offset = range.offset, bytes = range.bytes;
  if (offset > part.range.bytes || bytes > part.range.bytes - offset) return false;
  range = part.range;
  range.offset += offset;
  range.bytes = bytes;
  return part.written() || !written;
}

}  // namespace

Result<std::vector<Bundled>> bundled(const Parts& parts) {
  std::vector<Bundled> list;
  for (auto data = parts.data; !data.empty();) {
    BundledHead head;
    if (data.size() < sizeof head) return bad_bundle("it is cut off");
    std::memcpy(&head, data.data(), sizeof head);
    const auto* const info = find_operation(head.opcode).info;
    const bool known = info != nullptr && info->agreement != nullptr &&
                       info->library() == info_of<Bundle>.library() &&
                       info->tail.empty();  // neither a bundle nor a barrier
    if (!known || head.bytes != info->bytes) return bad_bundle("it holds what is no collective");
    if (data.size() < sizeof head + head.bytes) return bad_bundle("it is cut off");
    const auto op = data.subspan(sizeof head, head.bytes);
    auto& one = list.emplace_back(Bundled{info, {op.begin(), op.end()}});
    for (const auto& operand : info->operands) {
      auto& range = info->operand(one.bytes.data(), operand);
      const bool written = info->access(one.op(), operand) != Access::read;
      if (range.present() && !resolve(range, parts.tail, written))
        return bad_bundle("an operand of " + std::string(info->name) + " is not in its tail");
    }
    data = data.subspan(sizeof head + head.bytes);
  }
  return list;
}

void add_to_bundle(const OperationInfo& info, const std::byte* op, std::vector<std::byte>& data,
                   std::vector<TailOperand>& tail) {
  std::vector<std::byte> bytes(op, op + info.bytes);
  std::vector<TailOperand> mine;
  const auto place_of = [&mine](const Operand& range) {
    return std::find_if(mine.begin(), mine.end(), [&](const TailOperand& one) {
      return troupe::detail::overlap(one.range, range) && one.written();
    });
  };
  for (const auto& operand : info.operands) {
    const auto& range = info.operand(op, operand);
    const auto access = info.access(op, operand);
    if (range.present() && access != Access::read) mine.push_back({range, 0, access});
  }
  for (const auto& operand : info.operands) {
    const auto& range = info.operand(op, operand);
    if (!range.present() || info.access(op, operand) != Access::read) continue;
    // In place one of the two lies within the other.
    if (const auto whole = place_of(range); whole != mine.end()) {
      whole->access = Access::update;
      if (whole->range.bytes < range.bytes) whole->range = range;
    } else {
      mine.push_back({range, 0, Access::read});
    }
  }
  for (const auto& operand : info.operands) {
    auto& range = info.operand(bytes.data(), operand);
    if (!range.present()) continue;
    auto its = place_of(range);
    if (its == mine.end()) {
      its = std::find_if(mine.begin(), mine.end(), [&](const TailOperand& one) {
        return one.range.region == range.region && one.range.offset == range.offset &&
               one.range.bytes == range.bytes;
      });
    }
    const auto number = tail.size() + static_cast<std::size_t>(its - mine.begin()) + 1;
    range = {.region = static_cast<std::uint32_t>(number),
             .offset = range.offset - its->range.offset,
             .bytes = range.bytes};
  }
  const BundledHead head{info.opcode, info.bytes};
  const auto* const first = reinterpret_cast<const std::byte*>(&head);
  data.insert(data.end(), first, first + sizeof head);
  data.insert(data.end(), bytes.begin(), bytes.end());
  tail.insert(tail.end(), mine.begin(), mine.end());
}

std::uint64_t digest_of(const std::vector<Bundled>& collectives) {
  std::uint64_t digest = 0xcbf29ce484222325u;  // FNV-1a
  const auto mix = [&digest](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) digest = (digest ^ (value >> (8 * i) & 0xff)) * 0x100000001b3u;
  };
  for (const auto& one : collectives) {
    const auto agreed = one.info->agreement(one.op());
    mix(one.info->opcode), mix(agreed.dtype), mix(agreed.reduction), mix(agreed.root),
        mix(agreed.count);
  }
  return digest;
}

Result<void> Bundle::check() const {
  return wire::checker(*this)
      .require(count >= 1 && count <= kMaxCollectives,
               "1 to " + std::to_string(kMaxCollectives) + " collectives can be bundled")
      .result();
}

Result<void> Bundle::check_parts(const Parts& parts) const {
  const auto list = bundled(parts);
  if (!list.ok()) return list.error();
  if (list->size() != count) return bad_bundle("it does not hold as many collectives as it says");
  for (const auto& one : *list) {
    if (auto sound = one.info->check(one.op()); !sound) return sound;
  }
  if (digest_of(*list) != digest) return bad_bundle("its digest is that of another one");
  return {};
}

std::string Bundle::describe(const Agreement& agreed) {
  return std::to_string(agreed.root) + " collectives with digest " + std::to_string(agreed.count);
}

}  // namespace troupe::collective
