#include "lib/dnn/lrn/cuda.hpp"

#include "lib/dnn/common/parts_cuda.hpp"

namespace troupe::host::cuda {
namespace {

struct LrnDescriptorTraits {
  using Type = cudnnLRNDescriptor_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type descriptor) { (void)cudnnDestroyLRNDescriptor(descriptor); }
};

Result<Handle<LrnDescriptorTraits>> descriptor_of(const dnn::LrnRule& rule) {
  Handle<LrnDescriptorTraits> descriptor;
  TROUPE_CUDA_TRY(cudnnCreateLRNDescriptor(descriptor.out()));
  TROUPE_CUDA_TRY(cudnnSetLRNDescriptor(descriptor.get(), static_cast<unsigned>(rule.window),
                                        rule.alpha, rule.beta, rule.k));
  return descriptor;
}

}  // namespace

Result<void> lrn(cudnnHandle_t handle, const dnn::Lrn& op, const std::byte* x, std::byte* y) {
  const auto descriptor = descriptor_of(op.rule);
  if (!descriptor) return descriptor.error();
  return in_parts(op, [&](cudnnTensorDescriptor_t tensor, const void* one, const void* zero,
                          std::size_t offset) {
    return cudnnLRNCrossChannelForward(handle, descriptor->get(), CUDNN_LRN_CROSS_CHANNEL_DIM1, one,
                                       tensor, x + offset, zero, tensor, y + offset);
  });
}

Result<void> lrn_backward(cudnnHandle_t handle, const dnn::LrnBackward& op, const std::byte* x,
                          const std::byte* y, const std::byte* dy, std::byte* dx) {
  const auto descriptor = descriptor_of(op.rule);
  if (!descriptor) return descriptor.error();
  return in_parts(op, [&](cudnnTensorDescriptor_t tensor, const void* one, const void* zero,
                          std::size_t offset) {
    return cudnnLRNCrossChannelBackward(handle, descriptor->get(), CUDNN_LRN_CROSS_CHANNEL_DIM1,
                                        one, tensor, y + offset, tensor, dy + offset, tensor,
                                        x + offset, zero, tensor, dx + offset);
  });
}

}  // namespace troupe::host::cuda
