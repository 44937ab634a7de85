#include "lib/sparse/cpu.hpp"

/// Whether indices are what operations demand of them, on the cpu engine.
namespace troupe::host::cpu {
namespace {

using sparse::Fault;
using sparse::Finding;

template <class I>
struct Examined {
  sparse::Examine op;
  const I *outer, *inner;

  [[nodiscard]] bool demands(IndexRule::Demand demand) const { return (op.demands & demand) != 0; }
  [[nodiscard]] Finding first_fault() const {
    auto finding = demands(IndexRule::offsets) ? of_offsets() : of_outer_places();
    if (finding.fault == Fault::none) finding = of_inner_places();
    if (finding.fault == Fault::none && demands(IndexRule::sorted)) finding = of_order();
    return finding;
  }

 private:
  static Finding at(Fault fault, const I* array, std::int64_t place) {
    return {fault, place, static_cast<std::int64_t>(array[place]), 0};
  }
  static Finding behind(Fault fault, const I* array, std::int64_t place) {
    auto finding = at(fault, array, place);
    finding.before = static_cast<std::int64_t>(array[place - 1]);
    return finding;
  }
  static bool within(I i, std::int64_t bound) {
    return i >= 0 && static_cast<std::int64_t>(i) < bound;
  }
  [[nodiscard]] Finding of_descent() const {
    for (std::int64_t i = 1; i < op.outer_length; ++i)
      if (outer[i] < outer[i - 1]) return behind(Fault::descends, outer, i);
    return {};
  }
  [[nodiscard]] Finding of_offsets() const {
    const auto last = op.outer_length - 1;
    if (outer[0] != 0) return at(Fault::wrong_begin, outer, 0);
    if (const auto descent = of_descent(); descent.fault != Fault::none) return descent;
    if (static_cast<std::int64_t>(outer[last]) != op.outer_bound)
      return at(Fault::wrong_end, outer, last);
    for (std::int64_t i = 0; i <= last; ++i)
      if (static_cast<std::int64_t>(outer[i]) % op.step != 0)
        return at(Fault::no_multiple, outer, i);
    return {};
  }
  [[nodiscard]] Finding of_outer_places() const {
    for (std::int64_t i = 0; i < op.outer_length; ++i)
      if (!within(outer[i], op.outer_bound)) return at(Fault::outer_outside, outer, i);
    return demands(IndexRule::ordered) ? of_descent() : Finding{};
  }
  [[nodiscard]] Finding of_inner_places() const {
    const bool padded = demands(IndexRule::padding);
    for (std::int64_t k = 0; k < op.inner_length; ++k)
      if (!within(inner[k], op.inner_bound) && !(padded && inner[k] == I(-1)))
        return at(Fault::inner_outside, inner, k);
    return {};
  }
  /// All of `outer` is sound; offsets may end behind `inner`, or before its end.
  [[nodiscard]] Finding of_order() const {
    std::int64_t row = 0;
    for (std::int64_t k = 1; k < op.inner_length; ++k) {
      if (inner[k] > inner[k - 1]) continue;
      bool begins = false;
      if (demands(IndexRule::offsets)) {
        while (row < op.outer_length && static_cast<std::int64_t>(outer[row]) < k) ++row;
        begins = row < op.outer_length && static_cast<std::int64_t>(outer[row]) == k;
      } else {
        begins = outer[k] != outer[k - 1];
      }
      if (!begins) return behind(Fault::not_sorted, inner, k);
    }
    return {};
  }
};

}  // namespace

Result<void> run(const sparse::Examine& op, const Call& call, Sparse& library) {
  return with_index(op.dtype, [&](auto zero_index) {
    using I = decltype(zero_index);
    const auto array = [&](const Operand& operand, std::int64_t length) -> const I* {
      return length > 0 ? call.at<const I>(operand) : nullptr;
    };
    return library.services.submit(
        call, [examined = Examined<I>{op, array(op.outer, op.outer_length),
                                      array(op.inner, op.inner_length)},
               found = call.at<Finding>(op.found)] { *found = examined.first_fault(); });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
