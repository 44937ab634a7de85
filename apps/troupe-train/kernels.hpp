#pragma once

#include <cstdint>
#include <string>

#include <troupe/dtype.hpp>
#include <troupe/lib/kernel.hpp>

namespace troupe::train {

/// The program's own kernels; kernels.cpp says what each computes.
class OwnKernels {
 public:
  /// `dtype`: of activations. Waits for the compiler.
  OwnKernels(Device& device, DType dtype);

  Kernel draw, embed, cross_entropy, mean, one_hot, sum_parts, sum_sums, column_sums;
  Kernel to_heads, from_heads, causal_softmax, causal_softmax_backward;
  Kernel square_sums, gradient_norm, adamw, keep;

  /// How a kernel is launched that has a thread for each of n elements.
  [[nodiscard]] static LaunchOptions each(std::int64_t n, bool repeatable = true);
  /// How column_sums is.
  [[nodiscard]] static LaunchOptions columns(std::int64_t n);
  /// How one is launched that has a block for each row, whose threads reduce the row together.
  [[nodiscard]] LaunchOptions rows(std::int64_t n, bool repeatable = true) const;

  /// Into so many parts column_sums divides the rows.
  static constexpr std::int64_t kParts = 64;

 private:
  /// On the cpu engine, where threads of a block take turns, one does it all.
  std::uint32_t threads_of_row_;
};

}  // namespace troupe::train
