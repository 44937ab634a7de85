#pragma once

#include <vector>

#include <troupe/lib/primitives/elements.hpp>

/// Many copies as one operation. See primitives.hpp.
namespace troupe::primitives {

/// Copies `batch` ranges to as many others of the same sizes. They stand in the record's tail: all
/// sources, whose tag is 0, then all destinations, whose tag is 1. No destination may overlap
/// anything else. There is no order among the copies.
struct CopyBatched {
  static constexpr std::string_view kName = "primitives.copy_batched";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};
  static constexpr std::string_view kTail = "range";
  static constexpr std::int64_t kMost = 2048;  ///< ranges

  OpDType dtype;
  std::int64_t batch = 0;

  static constexpr std::array<DeclaredOperand<CopyBatched>, 0> kOperands{};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t tail_written(const TailOperand& operand) const noexcept {
    return operand.written() ? operand.range.bytes : 0;
  }
};

}  // namespace troupe::primitives

namespace troupe {

/// The copies among the calls of Primitives.
class PrimitiveCopies : public detail::Calls {
 public:
  using Calls::Calls;

  /// See primitives::CopyBatched. There are as many sources as destinations, at most
  /// primitives::CopyBatched::kMost, and each is as long as its destination. Errors: invalid.
  template <Element T>
  Future<void> copy_batched(const std::vector<GpuRef<T>>& sources,
                            const std::vector<GpuRef<T>>& destinations) const {
    std::vector<TailOperand> tail;
    for (const auto& source : sources) tail.push_back({source.operand(), 0, Access::read});
    for (const auto& destination : destinations)
      tail.push_back({destination.operand(), 1, Access::write});
    return detail::submit(*submitter_,
                          primitives::CopyBatched{dtype_of<T>, std::ssize(destinations)}, tail);
  }
};

}  // namespace troupe
