#include "lib/dnn/softmax/cuda.hpp"

#include "lib/dnn/common/parts_cuda.hpp"

namespace troupe::host::cuda {
namespace {

template <class Op>
cudnnSoftmaxAlgorithm_t algorithm_of(const Op& op) {
  return op.kind == dnn::SoftmaxKind::softmax ? CUDNN_SOFTMAX_ACCURATE : CUDNN_SOFTMAX_LOG;
}
template <class Op>
cudnnSoftmaxMode_t mode_of(const Op& op) {
  return op.inner == 1 ? CUDNN_SOFTMAX_MODE_INSTANCE : CUDNN_SOFTMAX_MODE_CHANNEL;
}

}  // namespace

Result<void> softmax(cudnnHandle_t handle, const dnn::Softmax& op, const std::byte* x,
                     std::byte* y) {
  return in_parts(op, [&](cudnnTensorDescriptor_t tensor, const void* one, const void* zero,
                          std::size_t offset) {
    return cudnnSoftmaxForward(handle, algorithm_of(op), mode_of(op), one, tensor, x + offset, zero,
                               tensor, y + offset);
  });
}

Result<void> softmax_backward(cudnnHandle_t handle, const dnn::SoftmaxBackward& op,
                              const std::byte* y, const std::byte* dy, std::byte* dx) {
  return in_parts(op, [&](cudnnTensorDescriptor_t tensor, const void* one, const void* zero,
                          std::size_t offset) {
    return cudnnSoftmaxBackward(handle, algorithm_of(op), mode_of(op), one, tensor, y + offset,
                                tensor, dy + offset, zero, tensor, dx + offset);
  });
}

}  // namespace troupe::host::cuda
