#include "common/wire/kind.hpp"

#include <algorithm>
#include <bit>

#include <troupe/lib/outside.hpp>

#include "common/core/mix.hpp"

namespace troupe::wire {
namespace {

constexpr std::uint64_t kAlignment = 256;

bool same_place(const Operand& a, const Operand& b) {
  return a.region == b.region && a.offset == b.offset;
}

std::uint64_t alignment_of(const Operand& range) {
  return std::min(kAlignment, std::uint64_t{1} << std::countr_zero(range.offset | kAlignment));
}

/// Gives operands their places, one behind another.
class Layout {
 public:
  void place(Operand& range) {
    if (!range.present() || outside::is_outside(range)) return;
    const auto before = range;
    auto known = std::find_if(placed_.begin(), placed_.end(),
                              [&](const auto& one) { return same_place(one.first, before); });
    if (known == placed_.end()) {
      const auto start = (end_ + kAlignment - 1) / kAlignment * kAlignment;
      placed_.emplace_back(before, start + before.offset % kAlignment);
      known = std::prev(placed_.end());
    }
    range = Operand{kKindRegion, 0, 0, 0, known->second, before.bytes};
    end_ = std::max(end_, known->second + before.bytes);
  }

 private:
  std::vector<std::pair<Operand, std::uint64_t>> placed_;
  std::uint64_t end_ = 0;
};

}  // namespace

std::uint64_t kind_key(const Command& command) noexcept {
  const auto& info = command.info();
  Mix mix;
  mix.add(info.opcode);
  for (std::size_t i = 0; i < info.kind_words.size(); ++i) {
    for (auto bits = info.kind_words[i]; bits != 0; bits &= bits - 1) {
      const auto word = 64 * i + static_cast<std::size_t>(std::countr_zero(bits));
      std::uint64_t value = 0;
      std::memcpy(&value, command.op() + 8 * word, sizeof value);
      mix.add(value);
    }
  }
  const Operand* previous = nullptr;
  for (const auto& use : command.operands()) {
    const bool same = previous != nullptr && same_place(*previous, *use.range);
    mix.add(alignment_of(*use.range) | (same ? 1u : 0u) << 9 |
            static_cast<std::uint64_t>(use.access) << 10);
    previous = use.range;
  }
  // Which operands are absent: where that is so, others differ in their place among these.
  for (const auto& operand : info.operands)
    mix.add(info.operand(command.op(), operand).present() ? 1 : 0);
  for (const auto& part : command.tail()) mix.add(part.tag);
  mix.add(command.parts().data);
  return mix.value();
}

std::vector<std::byte> kind_record(const Command& command) {
  const auto& info = command.info();
  alignas(8) std::array<std::byte, OperationInfo::kMaxBytes> op;
  std::memcpy(op.data(), command.op(), info.bytes);
  Layout layout;
  for (const auto& operand : info.operands) {
    auto& range = info.operand(op.data(), operand);
    if (&operand == info.cell) {
      range = Operand{kKindPinnedRegion, 0, 0, 0, range.offset % kAlignment, range.bytes};
    } else {
      layout.place(range);
    }
  }
  std::vector<TailOperand> tail(command.tail().begin(), command.tail().end());
  for (auto& part : tail) layout.place(part.range);
  const troupe::detail::CommandView view(info, {op.data(), info.bytes},
                                         {tail, command.parts().data});
  std::vector<std::byte> record(record_bytes(view));
  encode(view, 0, record);
  return record;
}

std::uint64_t kind_bytes(const Command& kind) noexcept {
  std::uint64_t bytes = 0;
  for (const auto& use : kind.operands()) {
    if (use.range->region == kKindRegion)
      bytes = std::max(bytes, use.range->offset + use.range->bytes);
  }
  return bytes;
}

}  // namespace troupe::wire
