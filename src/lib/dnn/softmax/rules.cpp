#include <troupe/lib/dnn/softmax.hpp>

#include <string>

#include "common/wire/checker.hpp"

namespace troupe::dnn {
namespace {

/// What its extents are below.
constexpr std::int64_t kSoftmaxLimit = std::int64_t{1} << 31;

/// What Softmax and its gradient have in common. `tensors`: all of them have the same extents.
template <class Op>
Result<void> check_softmax(const Op& op,
                           std::initializer_list<std::pair<const char*, const Operand*>> tensors) {
  auto checks = wire::checker(op);
  checks.require(op.kind <= SoftmaxKind::log_softmax, "unknown kind")
      .require(op.reserved == 0, "a reserved field is not 0")
      .require(op.outer >= 0 && op.outer < kSoftmaxLimit, "outer is negative or too large")
      .require(
          op.extent >= 1 && op.extent < kSoftmaxLimit && op.inner >= 1 && op.inner < kSoftmaxLimit,
          "extent or inner is not positive, or too large");
  if (!checks.ok()) return checks.result();
  std::int64_t elements = 0;
  const bool too_large = __builtin_mul_overflow(op.extent * op.inner, op.outer, &elements) ||
                         elements > wire::Checker::kMaxCount;
  checks.require(!too_large, "the tensor is too large");
  for (const auto& [name, operand] : tensors) {
    if (!checks.ok()) break;
    checks.holds(name, *operand, elements, size_of(op.dtype))
        .require(operand->offset % kAlignment == 0,
                 std::string(name) + " is not aligned to 16 bytes");
  }
  return checks.result();
}

template <class Op>
std::uint64_t bytes_of(const Op& op) {
  return static_cast<std::uint64_t>(op.outer * op.extent * op.inner) * size_of(op.dtype);
}

}  // namespace

Result<void> Softmax::check() const {
  return check_softmax(*this, {{"x", &x}, {"y", &y}});
}
std::uint64_t Softmax::written(const Operand& operand) const noexcept {
  return &operand == &y ? bytes_of(*this) : 0;
}

Result<void> SoftmaxBackward::check() const {
  return check_softmax(*this, {{"y", &y}, {"dy", &dy}, {"dx", &dx}});
}
std::uint64_t SoftmaxBackward::written(const Operand& operand) const noexcept {
  return &operand == &dx ? bytes_of(*this) : 0;
}

}  // namespace troupe::dnn
