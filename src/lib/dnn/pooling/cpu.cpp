#include <cmath>
#include <limits>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/cpu.hpp"

namespace troupe::dnn {
namespace {

/// Calls visit(window, tap, element) for each element of each window that is no padding, window by
/// window, each row-major: places in a channel of y, in the window and in a channel of x.
template <class Visit>
void for_each_tap(const PoolingView& view, const Visit& visit) {
  PerDimension x{1, 1, 1}, y{1, 1, 1}, size{1, 1, 1}, strides{1, 1, 1}, before{};
  for (std::size_t i = 0; i < view.windows.rank; ++i) {
    x[i] = view.x->extents[2 + i];
    y[i] = view.y->extents[2 + i];
    size[i] = view.windows.size[i];
    strides[i] = view.windows.strides[i];
    before[i] = view.windows.before[i];
  }
  std::size_t window = 0;
  PerDimension p{};
  for (p[0] = 0; p[0] < y[0]; ++p[0]) {
    for (p[1] = 0; p[1] < y[1]; ++p[1]) {
      for (p[2] = 0; p[2] < y[2]; ++p[2], ++window) {
        PerDimension first{}, last{};  // the part of the window that is no padding
        for (std::size_t i = 0; i < kMaxSpatial; ++i) {
          const auto begin = p[i] * strides[i] - before[i];
          first[i] = std::max<std::int64_t>(0, -begin);
          last[i] = std::min(size[i], x[i] - begin);
        }
        for (auto a = first[0]; a < last[0]; ++a) {
          for (auto b = first[1]; b < last[1]; ++b) {
            for (auto c = first[2]; c < last[2]; ++c) {
              const auto at = [&](std::size_t i, std::int64_t tap) {
                return p[i] * strides[i] - before[i] + tap;
              };
              visit(window, (a * size[1] + b) * size[2] + c,
                    static_cast<std::size_t>((at(0, a) * x[1] + at(1, b)) * x[2] + at(2, c)));
            }
          }
        }
      }
    }
  }
}

std::size_t elements(std::span<const std::int64_t> extents) {
  std::int64_t product = 1;
  for (const auto extent : extents) product *= extent;
  return static_cast<std::size_t>(product);
}

/// How many elements each window takes the mean of.
std::vector<double> divisors(const PoolingView& view) {
  const auto windows = elements(spatial(view.y->extents));
  if (view.mode != Pooling::average_inside) {
    const auto& size = view.windows.size;
    return std::vector<double>(
        windows, static_cast<double>(elements(std::span(size).first(view.windows.rank))));
  }
  std::vector<double> counts(windows);
  for_each_tap(view, [&](std::size_t window, auto, auto) { ++counts[window]; });
  return counts;
}

void maxima(const PoolingView& view, const float* x, float* y, float* index) {
  std::fill_n(y, elements(spatial(view.y->extents)), -std::numeric_limits<float>::infinity());
  std::vector<bool> begun(elements(spatial(view.y->extents)));
  for_each_tap(view, [&](std::size_t window, std::int64_t tap, std::size_t element) {
    const float value = x[element];
    if (begun[window] && (std::isnan(y[window]) || value <= y[window])) return;
    begun[window] = true;
    y[window] = value;
    if (index != nullptr) index[window] = static_cast<float>(tap);
  });
}

}  // namespace

void compute_pooling(const NodeView& node, Contents& contents) {
  const auto view = PoolingView::of(node);
  const auto of_x = elements(spatial(view.x->extents)), of_y = elements(spatial(view.y->extents));
  const auto channels = elements(view.x->extents.first(2));
  const auto* x = contents.of(view.x).data();
  auto* y = contents.make(view.y).data();
  if (view.mode == Pooling::maximum) {
    auto* index = view.index != nullptr ? contents.make(view.index).data() : nullptr;
    for (std::size_t i = 0; i < channels; ++i)
      maxima(view, x + i * of_x, y + i * of_y, index != nullptr ? index + i * of_y : nullptr);
    return;
  }
  const auto divided_by = divisors(view);
  for (std::size_t i = 0; i < channels; ++i, x += of_x, y += of_y) {
    std::vector<double> sums(of_y);
    for_each_tap(
        view, [&](std::size_t window, auto, std::size_t element) { sums[window] += x[element]; });
    for (std::size_t j = 0; j < of_y; ++j) y[j] = static_cast<float>(sums[j] / divided_by[j]);
  }
}

void compute_pooling_backward(const NodeView& node, Contents& contents) {
  const auto view = PoolingView::of(node);
  const auto of_x = elements(spatial(view.x->extents)), of_y = elements(spatial(view.y->extents));
  const auto channels = elements(view.x->extents.first(2));
  const bool of_maxima = view.mode == Pooling::maximum;
  const auto divided_by = of_maxima ? std::vector<double>() : divisors(view);
  const auto* const index = of_maxima ? contents.of(view.index).data() : nullptr;
  const auto* const dy = contents.of(view.y).data();
  auto* const dx = contents.make(view.x).data();
  for (std::size_t i = 0; i < channels; ++i) {
    std::vector<double> sums(of_x);
    for_each_tap(view, [&](std::size_t window, std::int64_t tap, std::size_t element) {
      const auto place = i * of_y + window;
      if (!of_maxima) {
        sums[element] += dy[place] / divided_by[window];
      } else if (index[place] == static_cast<float>(tap)) {
        sums[element] += dy[place];
      }
    });
    for (std::size_t j = 0; j < of_x; ++j) dx[i * of_x + j] = static_cast<float>(sums[j]);
  }
}

}  // namespace troupe::dnn
