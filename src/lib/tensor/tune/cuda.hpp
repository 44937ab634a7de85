#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "lib/tensor/common/plan_cuda.hpp"

namespace troupe::host::cuda {

/// Measures kernels of contractions, and knows what has been measured. What it finds is an answer
/// to the program: plans take their algorithm from their key alone.
class Tuner {
 public:
  explicit Tuner(Services& services) : services_(services) {}

  /// Runs the contraction by one kernel after another. `operands`: without a result and what is
  /// added, factors included; `result_bytes`: that the result takes. Waits for the stream. Errors:
  /// unsupported (no kernel runs), out_of_memory, those of CUDA.
  Result<tensor::ContractTuning> measure(cutensorHandle_t handle, const tensor::TuneContract& how,
                                         PlanKey key, PlanOperands operands,
                                         std::size_t result_bytes, Queue queue);

  /// Choices as the rank keeps them, and as later device hosts get them.
  std::vector<std::vector<std::byte>> take_new() { return std::exchange(new_, {}); }
  /// Whether the bytes are a choice; one for another GPU or another version is left alone.
  bool adopt(std::span<const std::byte> bytes);

 private:
  struct Choice;
  struct Known {
    PlanKey key;
    tensor::ContractTuning outcome;
  };
  void know(const PlanKey& key, const tensor::ContractTuning& outcome);

  static constexpr std::size_t kMostKnown = 256;

  Services& services_;
  std::vector<Known> known_;  ///< the oldest first
  std::vector<std::vector<std::byte>> new_;
};

}  // namespace troupe::host::cuda
