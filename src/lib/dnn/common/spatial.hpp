#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <troupe/lib/dnn/pooling.hpp>

#include "lib/dnn/graph/view.hpp"

/// Tensors of images, whose extents are batch, channels and 1 to 3 spatial ones, and windows that
/// move over them.
namespace troupe::dnn {

using PerDimension = std::array<std::int64_t, kMaxSpatial>;  ///< 0 beyond the rank

/// Windows of one size, one for each element of the result.
struct Windows {
  std::size_t rank = 0;
  PerDimension size{}, before{}, after{}, strides{}, dilations{};

  /// The message of what is wrong with them on images of these spatial extents; empty: nothing.
  [[nodiscard]] std::string wrong(std::span<const std::int64_t> extents) const;
  /// How many there are along a dimension of this extent; of what is not wrong.
  [[nodiscard]] std::int64_t count(std::int64_t extent, std::size_t i) const noexcept {
    return (extent + before[i] + after[i] - dilations[i] * (size[i] - 1) - 1) / strides[i] + 1;
  }
};

/// Whether a tensor has batch, channels and 1 to 3 spatial dimensions.
bool is_image(std::size_t rank) noexcept;
/// Whether tensors of a kind of node are images, all of the same number of dimensions.
bool is_of_images(NodeKind kind) noexcept;
/// What lies behind batch and channels.
inline std::span<const std::int64_t> spatial(std::span<const std::int64_t> extents) noexcept {
  return extents.subspan(2);
}
/// A packed tensor whose channels vary fastest if those of `like` do.
Layout image_like(const Layout& like, std::vector<std::int64_t> extents);
/// A list of the program's: its numbers, or `value` where there are none. nullopt: it has not as
/// many as there are spatial dimensions.
std::optional<PerDimension> numbers_of(const Sizes& sizes, std::int64_t value, std::size_t rank);

/// A convolution or one of its gradients.
struct ConvolutionView {
  const TensorView *x = nullptr, *w = nullptr, *y = nullptr;
  std::int64_t groups = 0;
  Windows windows;

  /// Of a node that is not wrong.
  static ConvolutionView of(const NodeView& node);
};

/// A pooling or its gradient.
struct PoolingView {
  Pooling mode{};
  const TensorView *x = nullptr, *y = nullptr, *index = nullptr;  ///< nullptr: there is none
  Windows windows;

  /// Of a node with as many numbers as it needs.
  static PoolingView of(const NodeView& node);
};

}  // namespace troupe::dnn
