#include <troupe/lib/fft.hpp>

#include <string>

#include "common/wire/checker.hpp"

namespace troupe::fft {

using wire::checker;

namespace {

Layout layout_of(const Transform& op, bool real, std::int64_t distance) {
  const bool half = !real && op.kind >= Kind::real_to_complex;
  Layout layout{real ? real_type(op.dtype) : op.dtype.value, {1, 1, 1}, 1, 0};
  for (std::uint32_t i = 0; i < op.rank; ++i) {
    layout.extents[i] = half && i + 1 == op.rank ? op.extents[i] / 2 + 1 : op.extents[i];
    layout.length *= layout.extents[i];
  }
  layout.distance = distance == 0 ? layout.length : distance;
  return layout;
}

/// `operand` must hold one side of the batch.
void add_side(wire::Checker& checks, const std::string& name, const Operand& operand,
              const Layout& layout, const Transform& op) {
  checks.require(layout.distance >= layout.length, name + ": the transforms of a batch overlap");
  std::int64_t last = 0;  // where the last transform begins
  checks.require(op.batch == 0 || (!__builtin_mul_overflow(op.batch - 1, layout.distance, &last) &&
                                   last <= wire::Checker::kMaxCount - layout.length),
                 name + " is too large");
  if (!checks.ok()) return;
  checks.holds(name, operand, layout.span(op.batch), size_of(layout.dtype))
      .require(operand.offset % size_of(op.dtype) == 0,
               name + " is not aligned to a complex element");
}

}  // namespace

Layout Transform::input_layout() const noexcept {
  return layout_of(*this, kind == Kind::real_to_complex, input_distance);
}

Layout Transform::output_layout() const noexcept {
  return layout_of(*this, kind == Kind::complex_to_real, output_distance);
}

std::uint64_t Transform::written(const Operand& operand) const noexcept {
  if (&operand != &output) return 0;
  const auto layout = output_layout();
  const auto transforms =
      layout.distance == layout.length ? batch : std::min<std::int64_t>(batch, 1);
  return static_cast<std::uint64_t>(layout.span(transforms)) * size_of(layout.dtype);
}

Result<void> Transform::check() const {
  auto checks = checker(*this);
  checks.require(kind <= Kind::complex_to_real, "unknown kind")
      .require(rank >= 1 && rank <= kMaxRank, "a transform has 1 to 3 dimensions")
      .require(batch >= 0, "the batch is negative")
      .require(input_distance >= 0 && output_distance >= 0, "a distance is negative");
  std::int64_t length = 1;
  for (std::uint32_t i = 0; i < kMaxRank && checks.ok(); ++i) {
    if (i >= rank) {
      checks.require(extents[i] == 0, "an extent beyond the rank is not 0");
    } else if (extents[i] < 1 || extents[i] > wire::Checker::kMaxCount / length) {
      checks.require(false, "an extent is not positive, or the transform is too large");
    } else {
      length *= extents[i];
    }
  }
  if (!checks.ok()) return checks.result();
  const auto from = input_layout(), to = output_layout();
  add_side(checks, "input", input, from, *this);
  add_side(checks, "output", output, to, *this);
  if (checks.ok() && detail::overlap(input, output)) {
    checks.require(kind <= Kind::inverse, "only complex transforms work in place")
        .require(from.distance == to.distance, "in place both sides have the same distance");
  }
  return checks.result();
}

}  // namespace troupe::fft
