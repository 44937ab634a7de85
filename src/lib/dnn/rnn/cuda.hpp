#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include <troupe/lib/dnn/rnn.hpp>

#include "device_host/engine/cuda/library.hpp"

/// Recurrent networks by cuDNN's RNN functions, which are no graphs.
namespace troupe::host::cuda {

/// What the calls of one queue work with.
struct RnnQueue {
  Services& services;
  Queue queue;
  cudnnHandle_t handle;
  Workspace& workspace;
};

/// A function of cuDNN. Each loads kernels when it is first called, which blocks.
enum class RnnStage : std::uint8_t { inference, training, backward_data, backward_weights };

/// A descriptor of cuDNN.
template <class T, cudnnStatus_t (*kDestroy)(T)>
struct DescriptorTraits {
  using Type = T;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)kDestroy(descriptor); }
};

/// How cuDNN knows one network, for sequences of certain lengths; good for operands at any address.
class RnnPlan {
 public:
  /// `data`: the lengths, as in the record. Errors: unsupported, out_of_memory, library.
  static Result<RnnPlan> make(const RnnQueue& on, DType dtype, const dnn::RnnShape& shape,
                              std::span<const std::byte> data);

  [[nodiscard]] bool is_for(DType dtype, const dnn::RnnShape& shape,
                            std::span<const std::byte> data) const noexcept;
  [[nodiscard]] bool ran(RnnStage stage) const noexcept {
    return (ran_ >> static_cast<unsigned>(stage) & 1u) != 0;
  }
  [[nodiscard]] std::int64_t reserve_bytes() const noexcept {
    return std::max(static_cast<std::int64_t>(reserve_bytes_), dnn::RnnSpace::kLeast);
  }
  // They queue it. Errors: invalid (the reserve is too small), out_of_memory, library.
  Result<void> run(const dnn::Rnn& op, const Call& call, const RnnQueue& on);
  Result<void> run(const dnn::RnnBackwardData& op, const Call& call, const RnnQueue& on);
  Result<void> run(const dnn::RnnBackwardWeights& op, const Call& call, const RnnQueue& on);

  /// Gives its device memory back, behind what has been queued.
  Result<void> give_back(const RnnQueue& on);

 private:
  Result<void> describe(const RnnQueue& on);
  /// Whether cuDNN has each matrix and bias where dnn::rnn_matrix_place() says. Errors:
  /// unsupported.
  Result<void> check_weights(cudnnHandle_t handle) const;
  [[nodiscard]] std::uint64_t w_bytes() const {
    return static_cast<std::uint64_t>(shape_.w_elements()) * size_of(dtype_);
  }
  /// Where h and c of a state are, nullptr where there is none.
  struct State {
    std::byte *h = nullptr, *c = nullptr;
  };
  [[nodiscard]] State state(const Operand& operand, const Call& call) const;
  [[nodiscard]] const std::int32_t* device_lengths() const {
    return static_cast<const std::int32_t*>(device_lengths_.get());
  }
  void note(RnnStage stage) noexcept { ran_ |= 1u << static_cast<unsigned>(stage); }

  DType dtype_{};
  dnn::RnnShape shape_;
  std::vector<std::byte> data_;
  std::vector<std::int32_t> lengths_;
  Handle<DescriptorTraits<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor>> dropout_;
  Handle<DescriptorTraits<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>> network_;
  Handle<DescriptorTraits<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor>> x_, y_;
  Handle<DescriptorTraits<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>> state_;
  DeviceMemory device_lengths_;
  std::size_t inference_bytes_ = 0, training_bytes_ = 0, reserve_bytes_ = 0;
  unsigned ran_ = 0;  ///< a bit for each RnnStage
};

/// Those of one queue that were used last.
class RnnPlans {
 public:
  /// Whether a call makes a plan or loads kernels.
  template <class Op>
  [[nodiscard]] bool must_wait_for(const Op& op, const Call& call) const {
    for (const auto& plan : plans_) {
      if (plan.is_for(op.dtype, op.shape, call.data())) return !plan.ran(stage_of(op));
    }
    return true;
  }
  /// Of a network, the first of the plans from then on.
  Result<RnnPlan*> plan_for(const RnnQueue& on, DType dtype, const dnn::RnnShape& shape,
                            std::span<const std::byte> data);
  template <class Op>
  Result<void> run(const Op& op, const Call& call, const RnnQueue& on) {
    const auto found = plan_for(on, op.dtype, op.shape, call.data());
    return found ? (*found)->run(op, call, on) : found.error();
  }
  Result<void> run(const dnn::RnnSpace& op, const Call& call, const RnnQueue& on);

 private:
  static constexpr std::size_t kPlans = 64;
  static RnnStage stage_of(const dnn::Rnn& op) noexcept {
    return op.reserve.present() ? RnnStage::training : RnnStage::inference;
  }
  static RnnStage stage_of(const dnn::RnnBackwardData&) noexcept { return RnnStage::backward_data; }
  static RnnStage stage_of(const dnn::RnnBackwardWeights&) noexcept {
    return RnnStage::backward_weights;
  }

  std::list<RnnPlan> plans_;  ///< the most recently used first
};

}  // namespace troupe::host::cuda
