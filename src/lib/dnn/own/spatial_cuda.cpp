#include "lib/dnn/own/spatial_cuda.hpp"

#include <algorithm>

#include <troupe/lib/dnn/resize.hpp>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/own/spatial_kernels.cuh"

namespace troupe::host::cuda {
namespace {

using dnn::NodeKind;
using dnn::NodeView;
using dnn::TensorView;
using kernels::Images;
using Memory = std::function<kernels::Elements(const TensorView*)>;

dnn::ResizeMode mode_of(const NodeView& node) {
  return {static_cast<dnn::Interpolation>(node.numbers[0]),
          static_cast<dnn::Coordinates>(node.numbers[1])};
}

bool channels_vary_fastest(const TensorView& images) {
  return std::ranges::all_of(dnn::spatial(images.strides),
                             [&](auto stride) { return images.strides[1] <= stride; });
}

/// Linear by corners, twice as large, of two spatial dimensions, in f32, with the channels last.
bool doubles(const NodeView& node) {
  const auto &x = *node.inputs[0], &y = *node.outputs[0];
  const auto mode = mode_of(node);
  return mode.interpolation == dnn::Interpolation::linear &&
         mode.coordinates == dnn::Coordinates::corners && x.rank() == 4 &&
         y.extents[2] == 2 * x.extents[2] && y.extents[3] == 2 * x.extents[3] &&
         x.dtype == DType::f32 && y.dtype == DType::f32 && channels_vary_fastest(x) &&
         channels_vary_fastest(y);
}

Images images_of(const TensorView* tensor, const Memory& memory) {
  if (tensor == nullptr) return {};
  Images images{memory(tensor), channels_vary_fastest(*tensor)};
  auto& elements = images.elements;
  elements.rank = 2 + kernels::kSpatial;
  std::fill_n(elements.extents, elements.rank, 1);
  std::fill_n(elements.strides, elements.rank, 0);
  std::ranges::copy(tensor->extents, elements.extents);
  std::ranges::copy(tensor->strides, elements.strides);
  return images;
}

kernels::PoolingWindows windows_of(const dnn::Windows& windows) {
  kernels::PoolingWindows result;
  std::copy_n(windows.size.begin(), windows.rank, result.size);
  std::copy_n(windows.before.begin(), windows.rank, result.before);
  std::copy_n(windows.strides.begin(), windows.rank, result.strides);
  return result;
}

Result<void> pool(const kernels::Launch& launch, const NodeView& node, const Memory& memory) {
  const auto view = dnn::PoolingView::of(node);
  const auto windows = windows_of(view.windows);
  const auto x = images_of(view.x, memory), y = images_of(view.y, memory),
             index = images_of(view.index, memory);
  const bool maxima = view.mode == dnn::Pooling::maximum,
             inside = view.mode == dnn::Pooling::average_inside;
  if (node.kind == NodeKind::pooling) {
    if (maxima) {
      TROUPE_CUDA_TRY(kernels::pool_maxima(launch, windows, x, y, index));
    } else {
      TROUPE_CUDA_TRY(kernels::pool_means(launch, windows, inside, x, y));
    }
  } else if (maxima) {
    TROUPE_CUDA_TRY(kernels::pool_maxima_backward(launch, windows, y, index, x));
  } else {
    TROUPE_CUDA_TRY(kernels::pool_means_backward(launch, windows, inside, y, x));
  }
  return {};
}

Result<void> resize(const kernels::Launch& launch, const NodeView& node, const Memory& memory) {
  using Coordinates = kernels::Resizing::Coordinates;
  const auto mode = mode_of(node);
  const kernels::Resizing resizing{
      mode.interpolation == dnn::Interpolation::nearest,
      mode.coordinates == dnn::Coordinates::centres   ? Coordinates::centres
      : mode.coordinates == dnn::Coordinates::corners ? Coordinates::corners
                                                      : Coordinates::ends};
  const auto from = images_of(node.inputs[0], memory), to = images_of(node.outputs[0], memory);
  if (node.kind == NodeKind::resize) {
    TROUPE_CUDA_TRY(kernels::resize_images(launch, resizing, from, to));
  } else {
    TROUPE_CUDA_TRY(kernels::resize_images_backward(launch, resizing, from, to));
  }
  return {};
}

}  // namespace

bool is_own_spatial(NodeKind kind) noexcept {
  return kind == NodeKind::pooling || kind == NodeKind::pooling_backward ||
         kind == NodeKind::resize || kind == NodeKind::resize_backward;
}

bool cudnn_lacks_spatial(const NodeView& node) {
  switch (node.kind) {
    case NodeKind::pooling: return node.inputs[0]->dtype == DType::bf16;
    case NodeKind::resize: return !doubles(node);
    default: return true;
  }
}

Result<void> run_own_spatial(const kernels::Launch& launch, const NodeView& node,
                             const Memory& memory) {
  const bool resizes = node.kind == NodeKind::resize || node.kind == NodeKind::resize_backward;
  return resizes ? resize(launch, node, memory) : pool(launch, node, memory);
}

}  // namespace troupe::host::cuda
