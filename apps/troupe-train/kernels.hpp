#pragma once

#include <cstdint>
#include <string>

#include <troupe/dtype.hpp>
#include <troupe/lib/kernel.hpp>

#include "model.hpp"

namespace troupe::train {

/// The program's own kernels; kernels.cpp says what each computes. Most take eight numbers at once.
class OwnKernels {
 public:
  /// `dtype`: of activations; what only the other type has is not there. Waits for the compiler.
  OwnKernels(Device& device, DType dtype, const Shape& shape);

  Kernel draw, embed, norm, norm_backward, norm_sums, column_sums, sum_sums;
  Kernel cross_entropy, mean, one_hot, sum_parts;
  Kernel square_sums, gradient_norm, adamw, keep;
  Kernel narrow, join_qkv;                                               ///< of bf16
  Kernel to_heads, from_heads, causal_softmax, causal_softmax_backward;  ///< of f32

  /// How a kernel is launched that has a thread for each of n elements, or eights.
  [[nodiscard]] static LaunchOptions each(std::int64_t n, bool repeatable = true);
  /// How one is launched that has a block for each row, whose threads reduce the row together.
  [[nodiscard]] LaunchOptions rows(std::int64_t n, bool repeatable = true) const;
  /// How cross_entropy is, of n rows; keeps_row() is an argument of it.
  [[nodiscard]] LaunchOptions logits(std::int64_t n) const;
  [[nodiscard]] int keeps_row() const { return kept_bytes_ > 0 ? 1 : 0; }
  /// How norm is, of n rows, and norm_backward.
  [[nodiscard]] LaunchOptions norm_rows(std::int64_t n) const;
  [[nodiscard]] LaunchOptions norm_blocks() const;
  /// How one is launched that adds up n columns, each of several parts of the rows by itself.
  [[nodiscard]] LaunchOptions sums(std::int64_t n) const { return columns(n, kParts, 32); }
  /// How sum_sums is, of n columns of such sums; and norm_sums, of `kinds` of them.
  [[nodiscard]] LaunchOptions sums_of_sums(std::int64_t n, std::int64_t kinds = 1) const {
    return columns(n, kinds, 8);
  }

  /// Into so many parts sums() divides the rows.
  static constexpr std::int64_t kParts = 64;
  /// So many blocks norm_backward has.
  static constexpr std::int64_t kNormBlocks = 264;

 private:
  [[nodiscard]] LaunchOptions columns(std::int64_t n, std::int64_t parts,
                                      std::int64_t across) const;

  /// On the cpu engine, where threads of a block take turns, one does it all.
  const bool one_by_one_;
  /// Threads that do a row of norm_backward, and how many such rows a block does at once.
  const std::uint32_t team_, teams_;
  std::uint32_t kept_bytes_ = 0;
};

}  // namespace troupe::train
