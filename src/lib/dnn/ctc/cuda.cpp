#include "lib/dnn/ctc/cuda.hpp"

#include <limits>
#include <string>

#include "lib/dnn/common/parts_cuda.hpp"

namespace troupe::host::cuda {
namespace {

struct CtcDescriptorTraits {
  using Type = cudnnCTCLossDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)cudnnDestroyCTCLossDescriptor(descriptor); }
};

}  // namespace

Result<void> ctc_loss(cudnnHandle_t handle, const dnn::CtcLoss& op, const Call& call,
                      Services& services, Workspace& workspace) {
  constexpr auto kAlgorithm = CUDNN_CTC_LOSS_ALGO_DETERMINISTIC;
  Handle<CtcDescriptorTraits> loss;
  TROUPE_CUDA_TRY(cudnnCreateCTCLossDescriptor(loss.out()));
  TROUPE_CUDA_TRY(
      cudnnSetCTCLossDescriptor_v9(loss.get(), CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                   CUDNN_CTC_ZERO_OOB_GRADIENTS, static_cast<int>(op.max_label)));
  Handle<TensorDescriptorTraits> tensor;
  TROUPE_CUDA_TRY(cudnnCreateTensorDescriptor(tensor.out()));
  const int extents[] = {static_cast<int>(op.time), static_cast<int>(op.batch),
                         static_cast<int>(op.classes)};
  const auto row = op.batch * op.classes;
  if (row > std::numeric_limits<int>::max()) {
    return Error{Errc::unsupported, 0,
                 std::string(dnn::CtcLoss::kName) + ": batch * classes is 2^31 or more"};
  }
  const int strides[] = {static_cast<int>(row), static_cast<int>(op.classes), 1};
  TROUPE_CUDA_TRY(cudnnSetTensorNdDescriptor(tensor.get(), CUDNN_DATA_FLOAT, 3, extents, strides));
  const bool with_gradients = op.gradients.present();
  const auto gradients = with_gradients ? tensor.get() : nullptr;
  std::size_t bytes = 0;
  TROUPE_CUDA_TRY(cudnnGetCTCLossWorkspaceSize_v8(handle, kAlgorithm, loss.get(), tensor.get(),
                                                  gradients, &bytes));
  TROUPE_CUDA_PROPAGATE(workspace.reserve(services, call.queue(), bytes));
  if (with_gradients) {
    // Steps behind the end of a sequence are left as they are.
    TROUPE_CUDA_PROPAGATE(services.fill(call.queue(), call.at(op.gradients), {}, sizeof(float),
                                        static_cast<std::uint64_t>(op.time * row)));
  }
  TROUPE_CUDA_TRY(cudnnCTCLoss_v8(handle, kAlgorithm, loss.get(), tensor.get(), call.at(op.x),
                                  call.at<const std::int32_t>(op.labels),
                                  call.at<const std::int32_t>(op.label_lengths),
                                  call.at<const std::int32_t>(op.input_lengths), call.at(op.costs),
                                  gradients, with_gradients ? call.at(op.gradients) : nullptr,
                                  bytes, bytes > 0 ? workspace.get() : nullptr));
  return {};
}

}  // namespace troupe::host::cuda
