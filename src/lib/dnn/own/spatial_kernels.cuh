#pragma once

#include <cstdint>

#include "lib/dnn/own/graph_kernels.cuh"

/// Kernels for nodes of images that cuDNN lacks: pooling and its gradients, other sizes and theirs.
/// Sums are in f64, always in the same order, which is that of the cpu engine. A gradient is
/// gathered: each of its elements adds up what it took part in. In C++17, because kernels are
/// compiled so.
namespace troupe::host::cuda::kernels {

inline constexpr int kSpatial = 3;

/// Images as if they had three spatial dimensions: the extents and strides of batch, channels and
/// those three. A missing dimension, behind the others, has extent 1 and stride 0.
struct Images {
  Elements elements;
  bool channels_last = false;  ///< the channels vary fastest
};

/// How windows move over images, in each spatial dimension.
struct PoolingWindows {
  std::int64_t size[kSpatial] = {1, 1, 1};
  std::int64_t before[kSpatial] = {0, 0, 0};  ///< padding
  std::int64_t strides[kSpatial] = {1, 1, 1};
};

/// Loads the kernels below onto the current device.
cudaError_t preload_own_spatial();

/// y = the largest element of each window, index = its place there; of equal ones the first, the
/// first NaN before all others. There may be no index. Queues on the launch's stream and returns,
/// as do those below.
cudaError_t pool_maxima(const Launch& launch, const PoolingWindows& windows, const Images& x,
                        const Images& y, const Images& index);
/// y = the mean of each window; `inside`: of those elements that are no padding.
cudaError_t pool_means(const Launch& launch, const PoolingWindows& windows, bool inside,
                       const Images& x, const Images& y);
/// Each element of dy goes to the one that the index names in its window.
cudaError_t pool_maxima_backward(const Launch& launch, const PoolingWindows& windows,
                                 const Images& dy, const Images& index, const Images& dx);
/// Each element of dy goes in equal parts to those that pool_means() took.
cudaError_t pool_means_backward(const Launch& launch, const PoolingWindows& windows, bool inside,
                                const Images& dy, const Images& dx);

/// How images are resized; see dnn::ResizeMode.
struct Resizing {
  enum class Coordinates : std::int32_t { centres, corners, ends };

  bool nearest = false;  ///< otherwise linear
  Coordinates coordinates{};
};
/// y = x resized.
cudaError_t resize_images(const Launch& launch, const Resizing& mode, const Images& x,
                          const Images& y);
/// Each element of dy goes to those of dx that it was made of, by their weights.
cudaError_t resize_images_backward(const Launch& launch, const Resizing& mode, const Images& dy,
                                   const Images& dx);

}  // namespace troupe::host::cuda::kernels
