#pragma once

#include <troupe/lib/dnn.hpp>

namespace troupe::dnn {

/// Where the operands of an attention are; stats may be nullptr.
template <class T>
struct AttentionOperands {
  const T *q = nullptr, *k = nullptr, *v = nullptr;
  T* o = nullptr;
  float* stats = nullptr;
};

/// Computes in f32 and rounds o once. T is Half or BFloat16.
template <class T>
void attend(const Attention& op, const AttentionOperands<T>& operands);

/// Whether BLAS can count what attend() gives it.
[[nodiscard]] bool can_attend(const Attention& op) noexcept;

}  // namespace troupe::dnn
