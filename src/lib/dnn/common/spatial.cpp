#include "lib/dnn/common/spatial.hpp"

#include <algorithm>

#include "lib/dnn/common/tensor_checks.hpp"

namespace troupe::dnn {

std::string Windows::wrong(std::span<const std::int64_t> extents) const {
  const auto within = [](std::int64_t value, std::int64_t least) {
    return value >= least && value < kLimit;
  };
  for (std::size_t i = 0; i < kMaxSpatial; ++i) {
    if (i >= rank) {
      if (size[i] != 0 || before[i] != 0 || after[i] != 0 || strides[i] != 0 || dilations[i] != 0)
        return "a number beyond the spatial dimensions is not 0";
      continue;
    }
    if (!within(extents[i], 1) || !within(size[i], 1))
      return "an extent is not positive, or too large";
    if (!within(before[i], 0) || !within(after[i], 0)) return "a padding is negative or too large";
    if (!within(strides[i], 1) || !within(dilations[i], 1))
      return "a stride or a dilation is not positive, or too large";
    if (dilations[i] * (size[i] - 1) >= extents[i] + before[i] + after[i])
      return "a window is larger than the padded input";
  }
  return {};
}

bool is_image(std::size_t rank) noexcept {
  return rank >= 3 && rank <= 2 + kMaxSpatial;
}

bool is_of_images(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::convolution:
    case NodeKind::convolution_data:
    case NodeKind::convolution_filter:
    case NodeKind::pooling:
    case NodeKind::pooling_backward:
    case NodeKind::resize:
    case NodeKind::resize_backward: return true;
    default: return false;
  }
}

Layout image_like(const Layout& like, std::vector<std::int64_t> extents) {
  const auto& strides = like.strides;
  const bool last = is_image(strides.size()) && is_image(extents.size()) &&
                    std::all_of(strides.begin() + 2, strides.end(),
                                [&](std::int64_t stride) { return strides[1] <= stride; });
  if (!last) return Layout(std::move(extents));
  return channels_last(extents[0], extents[1], {extents.begin() + 2, extents.end()});
}

std::optional<PerDimension> numbers_of(const Sizes& sizes, std::int64_t value, std::size_t rank) {
  const auto all = sizes.or_all(value, static_cast<std::uint32_t>(rank));
  if (all.rank != rank || rank > kMaxSpatial) return std::nullopt;
  return all.size;
}

}  // namespace troupe::dnn
