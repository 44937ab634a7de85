#include <troupe/lib/overlap.hpp>

#include <algorithm>
#include <vector>

namespace troupe::detail {
namespace {

struct NamedRange {
  std::string_view name;
  const Operand* range = nullptr;
  bool written = false;
};

std::string place(const Operand& range) {
  return "[" + std::to_string(range.offset) + ", " + std::to_string(range.offset + range.bytes) +
         ")";
}

bool same(const Operand& a, const Operand& b) {
  return a.offset == b.offset && a.bytes == b.bytes;
}

bool is_part(const Operand& part, const Operand& whole) {
  return part.bytes != 0 && part.offset >= whole.offset &&
         part.offset + part.bytes <= whole.offset + whole.bytes &&
         (part.offset - whole.offset) % part.bytes == 0;
}

Error refused(std::string_view operation, const NamedRange& a, const NamedRange& b,
              std::string_view remedy) {
  const auto& written = a.written ? a : b;
  const auto& other = a.written ? b : a;
  return {Errc::invalid, 0,
          std::string(operation) + ": " + std::string(written.name) + ", which is written, and " +
              std::string(other.name) + " overlap (bytes " + place(*written.range) + " and " +
              place(*other.range) + "): " + std::string(remedy)};
}

/// Whether two ranges that overlap may, as `rules` say; the error is the answer else.
Result<void> judge_overlap(std::string_view operation, const NamedRange& a, const NamedRange& b,
                           std::span<const InPlace> rules) {
  const auto rule = std::find_if(rules.begin(), rules.end(), [&](const InPlace& one) {
    return (one.one == a.name && one.other == b.name) || (one.one == b.name && one.other == a.name);
  });
  if (rule == rules.end()) return refused(operation, a, b, "they must lie apart");
  if (rule->how == InPlace::How::same) {
    if (same(*a.range, *b.range)) return {};
    return refused(operation, a, b, "they must be the same range or lie apart");
  }
  if (is_part(*a.range, *b.range) || is_part(*b.range, *a.range)) return {};
  return refused(operation, a, b, "in place one is this rank's part of the other");
}

/// So few are compared each with each.
constexpr std::size_t kFew = 8;

Result<void> check_few(std::string_view operation, std::string_view name,
                       std::span<const TailOperand> tail) {
  for (auto b = tail.begin(); b != tail.end(); ++b) {
    for (auto a = tail.begin(); a != b; ++a) {
      if (!a->written() && !b->written()) continue;
      if (a->range.bytes == 0 || b->range.bytes == 0 || !overlap(a->range, b->range)) continue;
      return refused(operation, {name, &a->range, a->written()}, {name, &b->range, b->written()},
                     "they must lie apart");
    }
  }
  return {};
}

/// The tail's operands among themselves: nothing that is written overlaps any other of them.
Result<void> check_tail(std::string_view operation, std::string_view name,
                        std::span<const TailOperand> tail) {
  if (tail.size() <= kFew) return check_few(operation, name, tail);
  std::vector<NamedRange> sorted;
  sorted.reserve(tail.size());
  for (const auto& part : tail) {
    if (part.range.bytes != 0) sorted.push_back({name, &part.range, part.written()});
  }
  std::sort(sorted.begin(), sorted.end(), [](const NamedRange& a, const NamedRange& b) {
    return std::pair(a.range->region, a.range->offset) <
           std::pair(b.range->region, b.range->offset);
  });
  // The range that reaches furthest so far, and the furthest of those that are written.
  const NamedRange *any = nullptr, *written = nullptr;
  const auto further = [](const NamedRange* than, const NamedRange& range) {
    return than == nullptr || than->range->region != range.range->region ||
           than->range->offset + than->range->bytes < range.range->offset + range.range->bytes;
  };
  for (const auto& range : sorted) {
    const auto* const before = range.written ? any : written;
    if (before != nullptr && overlap(*before->range, *range.range))
      return refused(operation, *before, range, "they must lie apart");
    if (further(any, range)) any = &range;
    if (range.written && further(written, range)) written = &range;
  }
  return {};
}

}  // namespace

Result<void> check_overlap(std::string_view operation, std::span<const InPlace> rules,
                           std::span<const OperandUse> uses, std::string_view tail_name,
                           std::span<const TailOperand> tail) {
  for (std::size_t i = 0; i < uses.size(); ++i) {
    for (std::size_t j = i + 1; j < uses.size(); ++j) {
      const auto &a = uses[i], &b = uses[j];
      if (a.access == Access::read && b.access == Access::read) continue;
      if (!overlap(*a.range, *b.range)) continue;
      auto judged = judge_overlap(operation, {a.name, a.range, a.access != Access::read},
                                  {b.name, b.range, b.access != Access::read}, rules);
      if (!judged.ok()) return judged;
    }
  }
  for (const auto& use : uses) {
    const bool written = use.access != Access::read;
    for (const auto& part : tail) {
      if ((written || part.written()) && overlap(*use.range, part.range)) {
        return refused(operation, {use.name, use.range, written},
                       {tail_name, &part.range, part.written()}, "they must lie apart");
      }
    }
  }
  return check_tail(operation, tail_name, tail);
}

}  // namespace troupe::detail
