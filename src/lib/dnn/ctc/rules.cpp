#include <troupe/lib/dnn/ctc.hpp>

#include "lib/dnn/common/tensor_checks.hpp"

namespace troupe::dnn {

Result<void> CtcLoss::check() const {
  auto checks = wire::checker(*this);
  const auto within = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < kLimit;
  };
  checks.require(within(time, 1) && within(batch, 1), "time or batch is not positive, or too large")
      .require(within(classes, 2), "there are not two classes, or too many")
      .require(within(labels_count, 1), "there is no label, or too many")
      .require(max_label >= 1 && max_label <= kMaxLabel, "the longest label is not 1 to 255 long");
  if (!checks.ok()) return checks.result();
  const auto elements = volume({time, batch, classes});
  add_tensor(checks, "x", x, elements, DType::f32);
  add_tensor(checks, "labels", labels, labels_count, DType::i32);
  add_tensor(checks, "label_lengths", label_lengths, batch, DType::i32);
  add_tensor(checks, "input_lengths", input_lengths, batch, DType::i32);
  add_tensor(checks, "costs", costs, batch, DType::f32);
  if (gradients.present()) add_tensor(checks, "gradients", gradients, elements, DType::f32);
  return checks.result();
}

std::uint64_t CtcLoss::written(const Operand& operand) const noexcept {
  if (&operand == &costs) return static_cast<std::uint64_t>(batch) * sizeof(float);
  if (&operand != &gradients || !gradients.present()) return 0;
  return static_cast<std::uint64_t>(time * batch * classes) * sizeof(float);
}

}  // namespace troupe::dnn
