#include <troupe/lib/dnn/lrn.hpp>

#include <cmath>
#include <string>

#include "lib/dnn/common/tensor_checks.hpp"

namespace troupe::dnn {
namespace {

/// What Lrn and its gradient have in common. `tensors`: all of them have the same extents.
template <class Op>
Result<void> check_lrn(const Op& op,
                       std::initializer_list<std::pair<const char*, const Operand*>> tensors) {
  auto checks = wire::checker(op);
  const auto& rule = op.rule;
  checks.require(rule.window >= 1 && rule.window <= 16, "the window has not 1 to 16 channels")
      .require(rule.reserved == 0, "a reserved field is not 0")
      .require(std::isfinite(rule.alpha) && std::isfinite(rule.beta) && std::isfinite(rule.k),
               "a constant is not finite")
      .require(rule.beta >= 0.01 && rule.k >= 1e-5, "beta is below 0.01, or k below 1e-5")
      .require(op.outer >= 0 && op.outer < kLimit, "outer is negative or too large")
      .require(op.extent >= 1 && op.extent < kLimit && op.inner >= 1 && op.inner < kLimit,
               "extent or inner is not positive, or too large");
  for (const auto& [name, operand] : tensors) {
    if (!checks.ok()) break;
    add_tensor(checks, name, *operand, volume({op.extent, op.inner, op.outer}), op.dtype);
  }
  return checks.result();
}

template <class Op>
std::uint64_t bytes_of_lrn(const Op& op) {
  return static_cast<std::uint64_t>(op.outer * op.extent * op.inner) * size_of(op.dtype);
}

}  // namespace

Result<void> Lrn::check() const {
  return check_lrn(*this, {{"x", &x}, {"y", &y}});
}
std::uint64_t Lrn::written(const Operand& operand) const noexcept {
  return &operand == &y ? bytes_of_lrn(*this) : 0;
}

Result<void> LrnBackward::check() const {
  return check_lrn(*this, {{"x", &x}, {"y", &y}, {"dy", &dy}, {"dx", &dx}});
}
std::uint64_t LrnBackward::written(const Operand& operand) const noexcept {
  return &operand == &dx ? bytes_of_lrn(*this) : 0;
}

}  // namespace troupe::dnn
