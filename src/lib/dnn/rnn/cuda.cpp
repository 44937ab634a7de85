#include "lib/dnn/rnn/cuda.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "lib/dnn/common/status_cuda.hpp"
#include "lib/dnn/rnn/lengths.hpp"

namespace troupe::host::cuda {
namespace {

cudnnDataType_t rnn_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return CUDNN_DATA_HALF;
    case DType::bf16: return CUDNN_DATA_BFLOAT16;
    default: return CUDNN_DATA_FLOAT;  // check() lets no other one pass
  }
}
cudnnRNNMode_t rnn_mode(dnn::RnnCell cell) {
  switch (cell) {
    case dnn::RnnCell::relu: return CUDNN_RNN_RELU;
    case dnn::RnnCell::tanh: return CUDNN_RNN_TANH;
    case dnn::RnnCell::lstm: return CUDNN_LSTM;
    default: return CUDNN_GRU;
  }
}
std::byte* at(const Operand& operand, const Call& call) {
  return operand.present() ? call.at(operand) : nullptr;
}

}  // namespace

bool RnnPlan::is_for(DType dtype, const dnn::RnnShape& shape,
                     std::span<const std::byte> data) const noexcept {
  return dtype_ == dtype && std::memcmp(&shape_, &shape, sizeof shape) == 0 &&
         std::ranges::equal(data_, data);
}

Result<RnnPlan> RnnPlan::make(const RnnQueue& on, DType dtype, const dnn::RnnShape& shape,
                              std::span<const std::byte> data) {
  RnnPlan plan;
  plan.dtype_ = dtype;
  plan.shape_ = shape;
  plan.data_.assign(data.begin(), data.end());
  plan.lengths_ = dnn::rnn_lengths(shape, data);
  const auto bytes = plan.lengths_.size() * sizeof(std::int32_t);
  auto memory = on.services.reserve(on.queue, bytes);
  if (!memory) return memory.error();
  plan.device_lengths_ = std::move(*memory);
  // From pageable memory: it has been read when the call returns.
  auto made = [&]() -> Result<void> {
    TROUPE_CUDA_TRY(cudaMemcpyAsync(plan.device_lengths_.get(), plan.lengths_.data(), bytes,
                                    cudaMemcpyHostToDevice, on.services.stream(on.queue)));
    TROUPE_CUDA_PROPAGATE(plan.describe(on));
    return plan.check_weights(on.handle);
  }();
  if (made) return plan;
  (void)plan.give_back(on);
  return made.error();
}

Result<void> RnnPlan::describe(const RnnQueue& on) {
  const auto type = rnn_type(dtype_);
  TROUPE_CUDA_TRY(cudnnCreateDropoutDescriptor(dropout_.out()));
  TROUPE_CUDA_TRY(cudnnSetDropoutDescriptor(dropout_.get(), on.handle, 0, nullptr, 0, 0));
  TROUPE_CUDA_TRY(cudnnCreateRNNDescriptor(network_.out()));
  const auto hidden = static_cast<std::int32_t>(shape_.hidden);
  // f32 is multiplied as such: with the default it may become tf32.
  const auto status = cudnnSetRNNDescriptor_v8(
      network_.get(), CUDNN_RNN_ALGO_STANDARD, rnn_mode(shape_.cell),
      shape_.biases == 0 ? CUDNN_RNN_NO_BIAS : CUDNN_RNN_DOUBLE_BIAS,
      shape_.directions == 1 ? CUDNN_UNIDIRECTIONAL : CUDNN_BIDIRECTIONAL, CUDNN_LINEAR_INPUT, type,
      CUDNN_DATA_FLOAT, dtype_ == DType::f32 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH,
      static_cast<std::int32_t>(shape_.input), hidden, hidden,
      static_cast<std::int32_t>(shape_.layers), dropout_.get(), CUDNN_RNN_PADDED_IO_ENABLED);
  if (dtype_ == DType::bf16 && CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_BAD_PARAM) {
    return Error{Errc::unsupported, static_cast<int>(status),
                 "dnn.rnn: this version of cuDNN has no bf16"};
  }
  if (status != CUDNN_STATUS_SUCCESS) return failure(status, "cudnnSetRNNDescriptor_v8");

  float zero = 0;  // zero of any of the types
  const auto describe_vectors = [&](auto& descriptor, std::int64_t elements) -> Result<void> {
    TROUPE_CUDA_TRY(cudnnCreateRNNDataDescriptor(descriptor.out()));
    TROUPE_CUDA_TRY(cudnnSetRNNDataDescriptor(
        descriptor.get(), type, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
        static_cast<int>(shape_.time), static_cast<int>(shape_.batch), static_cast<int>(elements),
        lengths_.data(), &zero));
    return {};
  };
  TROUPE_CUDA_PROPAGATE(describe_vectors(x_, shape_.input));
  TROUPE_CUDA_PROPAGATE(describe_vectors(y_, shape_.directions * shape_.hidden));

  const std::array extents{static_cast<int>(shape_.layers * shape_.directions),
                           static_cast<int>(shape_.batch), static_cast<int>(shape_.hidden)};
  const std::array strides{extents[1] * extents[2], extents[2], 1};
  TROUPE_CUDA_TRY(cudnnCreateTensorDescriptor(state_.out()));
  TROUPE_CUDA_TRY(
      cudnnSetTensorNdDescriptor(state_.get(), type, 3, extents.data(), strides.data()));

  std::size_t no_reserve = 0;
  TROUPE_CUDA_TRY(cudnnGetRNNTempSpaceSizes(on.handle, network_.get(), CUDNN_FWD_MODE_INFERENCE,
                                            x_.get(), &inference_bytes_, &no_reserve));
  TROUPE_CUDA_TRY(cudnnGetRNNTempSpaceSizes(on.handle, network_.get(), CUDNN_FWD_MODE_TRAINING,
                                            x_.get(), &training_bytes_, &reserve_bytes_));
  return {};
}

Result<void> RnnPlan::check_weights(cudnnHandle_t handle) const {
  const Error otherwise{
      Errc::unsupported, 0,
      "dnn.rnn: this version of cuDNN does not lay weights out as troupe has documented"};
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(cudnnGetRNNWeightSpaceSize(handle, network_.get(), &bytes));
  if (bytes != w_bytes()) return otherwise;
  Handle<DescriptorTraits<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>> matrix, bias;
  TROUPE_CUDA_TRY(cudnnCreateTensorDescriptor(matrix.out()));
  TROUPE_CUDA_TRY(cudnnCreateTensorDescriptor(bias.out()));
  // cuDNN reckons from the beginning of the weights, and reads nothing: any address will do.
  const auto* const begin = static_cast<const std::byte*>(device_lengths_.get());
  const auto stands_at = [&](const void* address, const dnn::RnnPlace& place) {
    return address == begin + static_cast<std::uint64_t>(place.offset) * size_of(dtype_);
  };
  const auto gates = shape_.gates();
  for (std::uint32_t network = 0; network < shape_.layers * shape_.directions; ++network) {
    for (std::int64_t i = 0; i < 2 * gates; ++i) {
      const dnn::RnnWeight which{network / shape_.directions, network % shape_.directions,
                                 i % gates, i >= gates};
      void *matrix_at = nullptr, *bias_at = nullptr;
      TROUPE_CUDA_TRY(cudnnGetRNNWeightParams(
          handle, network_.get(), static_cast<std::int32_t>(network), bytes, begin,
          static_cast<std::int32_t>(i), matrix.get(), &matrix_at, bias.get(), &bias_at));
      if (!stands_at(matrix_at, dnn::rnn_matrix_place(shape_, which))) return otherwise;
      if (shape_.biases > 0 && !stands_at(bias_at, dnn::rnn_bias_place(shape_, which)))
        return otherwise;
    }
  }
  return {};
}

RnnPlan::State RnnPlan::state(const Operand& operand, const Call& call) const {
  auto* const h = at(operand, call);
  if (h == nullptr || shape_.cell != dnn::RnnCell::lstm) return {h, nullptr};
  return {h, h + static_cast<std::uint64_t>(shape_.h_elements()) * size_of(dtype_)};
}

Result<void> RnnPlan::run(const dnn::Rnn& op, const Call& call, const RnnQueue& on) {
  const bool trains = op.reserve.present();
  if (trains) TROUPE_CUDA_PROPAGATE(dnn::check_reserve(op, reserve_bytes()));
  const auto bytes = trains ? training_bytes_ : inference_bytes_;
  TROUPE_CUDA_PROPAGATE(on.workspace.reserve(on.services, on.queue, bytes));
  const auto initial = state(op.initial, call), final = state(op.final, call);
  TROUPE_CUDA_TRY(cudnnRNNForward(
      on.handle, network_.get(), trains ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
      device_lengths(), x_.get(), call.at(op.x), y_.get(), call.at(op.y), state_.get(), initial.h,
      final.h, state_.get(), initial.c, final.c, w_bytes(), call.at(op.w), bytes,
      on.workspace.get(), trains ? reserve_bytes_ : 0, at(op.reserve, call)));
  note(trains ? RnnStage::training : RnnStage::inference);
  return {};
}

Result<void> RnnPlan::run(const dnn::RnnBackwardData& op, const Call& call, const RnnQueue& on) {
  TROUPE_CUDA_PROPAGATE(dnn::check_reserve(op, reserve_bytes()));
  TROUPE_CUDA_PROPAGATE(on.workspace.reserve(on.services, on.queue, training_bytes_));
  // cuDNN promises to fill what is behind the ends of outputs of the forward pass alone.
  if (!data_.empty()) {
    TROUPE_CUDA_TRY(
        cudaMemsetAsync(call.at(op.dx), 0, op.written(op.dx), on.services.stream(on.queue)));
  }
  const auto initial = state(op.initial, call), dinitial = state(op.dinitial, call);
  const auto dfinal = state(op.dfinal, call);
  TROUPE_CUDA_TRY(cudnnRNNBackwardData_v8(
      on.handle, network_.get(), device_lengths(), y_.get(), call.at(op.y), call.at(op.dy),
      x_.get(), call.at(op.dx), state_.get(), initial.h, dfinal.h, dinitial.h, state_.get(),
      initial.c, dfinal.c, dinitial.c, w_bytes(), call.at(op.w), training_bytes_,
      on.workspace.get(), reserve_bytes_, call.at(op.reserve)));
  note(RnnStage::backward_data);
  return {};
}

Result<void> RnnPlan::run(const dnn::RnnBackwardWeights& op, const Call& call, const RnnQueue& on) {
  TROUPE_CUDA_PROPAGATE(dnn::check_reserve(op, reserve_bytes()));
  TROUPE_CUDA_PROPAGATE(on.workspace.reserve(on.services, on.queue, training_bytes_));
  TROUPE_CUDA_TRY(cudnnRNNBackwardWeights_v8(
      on.handle, network_.get(), CUDNN_WGRAD_MODE_ADD, device_lengths(), x_.get(), call.at(op.x),
      state_.get(), at(op.initial, call), y_.get(), call.at(op.y), w_bytes(), call.at(op.dw),
      training_bytes_, on.workspace.get(), reserve_bytes_, call.at(op.reserve)));
  note(RnnStage::backward_weights);
  return {};
}

Result<void> RnnPlan::give_back(const RnnQueue& on) {
  TROUPE_CUDA_TRY(cudaFreeAsync(device_lengths_.release(), on.services.stream(on.queue)));
  return {};
}

Result<RnnPlan*> RnnPlans::plan_for(const RnnQueue& on, DType dtype, const dnn::RnnShape& shape,
                                    std::span<const std::byte> data) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const RnnPlan& plan) {
    return plan.is_for(dtype, shape, data);
  });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return &plans_.front();
  }
  if (on.services.records()) return Services::not_recorded("a plan");
  auto made = RnnPlan::make(on, dtype, shape, data);
  if (!made) return made.error();
  if (plans_.size() == kPlans) {
    on.services.note_given_back();
    TROUPE_CUDA_PROPAGATE(plans_.back().give_back(on));
    plans_.pop_back();
  }
  plans_.push_front(std::move(*made));
  return &plans_.front();
}

Result<void> RnnPlans::run(const dnn::RnnSpace& op, const Call& call, const RnnQueue& on) {
  const auto found = plan_for(on, op.dtype, op.shape, {});
  if (!found) return found.error();
  const auto bytes = (*found)->reserve_bytes();
  std::array<std::uint8_t, 16> pattern{};
  std::memcpy(pattern.data(), &bytes, sizeof bytes);
  return on.services.fill(call.queue(), call.at(op.reserve_bytes), pattern, sizeof bytes, 1);
}

}  // namespace troupe::host::cuda
