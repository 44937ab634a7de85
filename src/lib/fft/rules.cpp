#include <troupe/lib/fft.hpp>
#include <troupe/lib/operation_table.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "common/wire/checker.hpp"

namespace troupe::fft {

using wire::checker;

namespace {

Layout layout_of(const Transform& op, bool real, const Storage& storage) {
  const bool half = !real && op.kind >= Kind::real_to_complex;
  const DType dtype = real ? real_type(op.dtype) : op.dtype.value;
  const auto bytes = real ? size_of(dtype) : complex_bytes(dtype);
  Layout layout{dtype, static_cast<std::uint32_t>(bytes), op.rank, {1, 1, 1}, {1, 1, 1}, {}, 0};
  for (std::uint32_t i = 0; i < op.rank; ++i) {
    layout.extents[i] = half && i + 1 == op.rank ? op.extents[i] / 2 + 1 : op.extents[i];
    layout.stored[i] = storage.stored[i] == 0 ? layout.extents[i] : storage.stored[i];
  }
  auto pitch = storage.stride == 0 ? 1 : storage.stride;
  for (auto i = op.rank; i-- > 0;) {
    layout.pitch[i] = pitch;
    pitch *= layout.stored[i];
  }
  layout.distance = storage.distance == 0 ? pitch : storage.distance;
  return layout;
}

/// Whether its numbers are such that no product of them overflows.
void add_storage(wire::Checker& checks, const std::string& name, const Storage& storage,
                 const Transform& op, bool real) {
  checks
      .require(storage.distance >= 0 && storage.distance <= wire::Checker::kMaxCount,
               name + ": the distance is negative or too large")
      .require(storage.stride >= 0, name + ": the stride is negative");
  const bool half = !real && op.kind >= Kind::real_to_complex;
  auto size = std::max<std::int64_t>(storage.stride, 1);
  for (std::uint32_t i = 0; i < kMaxRank && checks.ok(); ++i) {
    const auto stored = storage.stored[i];
    if (i >= op.rank) {
      checks.require(stored == 0, name + ": a stored extent beyond the rank is not 0");
      continue;
    }
    const auto extent = half && i + 1 == op.rank ? op.extents[i] / 2 + 1 : op.extents[i];
    checks.require(stored == 0 || stored >= extent,
                   name + ": a stored extent is smaller than that of the transform");
    checks.require(!__builtin_mul_overflow(size, stored == 0 ? extent : stored, &size) &&
                       size <= wire::Checker::kMaxCount,
                   name + " is too large");
  }
}

/// `operand` must hold one side of the batch.
void add_side(wire::Checker& checks, const std::string& name, const Operand& operand,
              const Layout& layout, const Transform& op, Access access) {
  if (!checks.ok()) return;
  std::int64_t last = 0;  // where the last transform begins
  checks.require(op.batch == 0 || (!__builtin_mul_overflow(op.batch - 1, layout.distance, &last) &&
                                   last <= wire::Checker::kMaxCount - layout.length()),
                 name + " is too large");
  if (!checks.ok()) return;
  checks.holds(name, operand, layout.span(op.batch), layout.bytes)
      .require(operand.offset % complex_bytes(op.dtype) == 0,
               name + " is not aligned to a complex element")
      .require(access == Access::read || layout.apart(op.batch),
               name + ": the transforms of a batch overlap");
}

/// Whether each element of the output's rows begins where that of the input's does.
bool fits_in_place(const Transform& op, const Layout& input, const Layout& output) {
  if (op.kind <= Kind::inverse)
    return input.pitch == output.pitch && input.distance == output.distance;
  const auto& real = op.kind == Kind::real_to_complex ? input : output;
  const auto& complex = op.kind == Kind::real_to_complex ? output : input;
  const auto last = op.rank - 1;
  bool fits = real.pitch[last] == 1 && complex.pitch[last] == 1;
  for (std::uint32_t i = 0; i < last; ++i) fits &= real.pitch[i] == 2 * complex.pitch[i];
  return fits && (op.batch == 1 || real.distance == 2 * complex.distance);
}

}  // namespace

std::int64_t Layout::length() const noexcept {
  std::int64_t last = 0;
  for (std::uint32_t i = 0; i < rank; ++i) last += (extents[i] - 1) * pitch[i];
  return last + 1;
}

bool Layout::apart(std::int64_t batch) const noexcept {
  std::array<std::pair<std::int64_t, std::int64_t>, kMaxRank + 1> steps;  // pitch, extent
  for (std::uint32_t i = 0; i < kMaxRank; ++i) steps[i] = {pitch[i], extents[i]};
  steps[kMaxRank] = {distance, batch};
  std::sort(steps.begin(), steps.end());
  std::int64_t covered = 1;
  for (const auto& [step, extent] : steps) {
    if (extent <= 1) continue;
    if (step < covered) return false;
    covered += (extent - 1) * step;
  }
  return true;
}

Layout Transform::input_layout() const noexcept {
  return layout_of(*this, kind == Kind::real_to_complex, input_storage);
}

Layout Transform::output_layout() const noexcept {
  return layout_of(*this, kind == Kind::complex_to_real, output_storage);
}

std::uint64_t Transform::written(const Operand& operand) const noexcept {
  if (&operand != &output) return 0;
  const auto layout = output_layout();
  if (batch == 0) return 0;
  const std::uint64_t bytes = layout.bytes;
  // Each covers more than the next; whichever has no gaps.
  if (layout.span(batch) == batch * layout.volume())
    return static_cast<std::uint64_t>(layout.span(batch)) * bytes;
  if (layout.length() == layout.volume())
    return static_cast<std::uint64_t>(layout.length()) * bytes;
  return layout.pitch[rank - 1] == 1 ? static_cast<std::uint64_t>(layout.extents[rank - 1]) * bytes
                                     : 0;
}

Result<void> Transform::check() const {
  auto checks = checker(*this);
  checks.require(kind <= Kind::complex_to_real, "unknown kind")
      .require(rank >= 1 && rank <= kMaxRank, "a transform has 1 to 3 dimensions")
      .require(batch >= 0, "the batch is negative");
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
  add_storage(checks, "input", input_storage, *this, kind == Kind::real_to_complex);
  add_storage(checks, "output", output_storage, *this, kind == Kind::complex_to_real);
  if (!checks.ok()) return checks.result();
  const auto from = input_layout(), to = output_layout();
  add_side(checks, "input", input, from, *this, access(input, Access::read));
  add_side(checks, "output", output, to, *this, Access::write);
  if (checks.ok() && detail::overlap(input, output)) {
    checks.require(fits_in_place(*this, from, to) && from.apart(batch),
                   "in place both sides must be stored alike");
  }
  if (checks.ok() && (dtype == DType::f16 || dtype == DType::bf16)) {
    const auto unsupported = [](const char* what) {
      return Error{Errc::unsupported, 0, std::string(kName) + ": of f16 and bf16 " + what};
    };
    for (std::uint32_t i = 0; i < rank; ++i) {
      if ((extents[i] & (extents[i] - 1)) != 0) return unsupported("extents are powers of two");
    }
    const auto* const real = kind == Kind::real_to_complex   ? &from
                             : kind == Kind::complex_to_real ? &to
                                                             : nullptr;
    if (real != nullptr && real->pitch[rank - 1] != 1)
      return unsupported("elements of the real side have stride 1");
  }
  return checks.result();
}

std::span<const OperationInfo* const> operations() noexcept {
  return tables_of(Operations{});
}

}  // namespace troupe::fft
