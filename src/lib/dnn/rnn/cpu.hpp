#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/lib/dnn/rnn.hpp>

/// Recurrent networks on the cpu engine: in f32, the products by BLAS.
namespace troupe::dnn {

/// Where the operands of a network and of its gradients are; those that the operation has not are
/// nullptr.
struct RnnMemory {
  const std::byte *x = nullptr, *w = nullptr, *initial = nullptr, *dy = nullptr, *dfinal = nullptr;
  std::byte *y = nullptr, *final = nullptr, *dx = nullptr, *dinitial = nullptr, *dw = nullptr;
  float* reserve = nullptr;
};

/// What is computed, of which type.
struct RnnWork {
  DType dtype{};
  RnnShape shape;
  std::vector<std::int32_t> lengths;
  RnnMemory memory;
};

/// How many bytes of reserve a network has on this engine.
[[nodiscard]] std::int64_t rnn_reserve_bytes(const RnnShape& shape) noexcept;
/// Whether BLAS can count what a network has.
[[nodiscard]] bool can_count(const RnnShape& shape) noexcept;

void run_rnn(const RnnWork& work);
void run_rnn_backward_data(const RnnWork& work);
void run_rnn_backward_weights(const RnnWork& work);

}  // namespace troupe::dnn
