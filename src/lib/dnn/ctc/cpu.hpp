#pragma once

#include <troupe/lib/dnn/ctc.hpp>

namespace troupe::dnn {

/// What an operation reads and writes; gradients: nullptr if they are absent.
struct CtcMemory {
  const float* x = nullptr;
  const std::int32_t *labels = nullptr, *label_lengths = nullptr, *input_lengths = nullptr;
  float *costs = nullptr, *gradients = nullptr;
};
/// The loss of an operation that checks out.
void ctc_loss(const CtcLoss& op, const CtcMemory& memory);

}  // namespace troupe::dnn
