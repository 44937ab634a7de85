#include <algorithm>
#include <array>
#include <cmath>

#include <troupe/lib/dnn/resize.hpp>

#include "lib/dnn/common/spatial.hpp"
#include "lib/dnn/graph/cpu.hpp"

namespace troupe::dnn {
namespace {

/// The elements of x that an element of y is made of, along one dimension.
struct Neighbours {
  std::array<std::int64_t, 2> places{};
  std::array<double, 2> weights{1, 0};
};

/// Of element i. Extents are below 2^31: no product overflows.
Neighbours neighbours(std::int64_t i, std::int64_t in, std::int64_t out, const ResizeMode& mode) {
  if (mode.interpolation == Interpolation::nearest) {
    const auto floor = [&]() -> std::int64_t {  // exact, in integers
      switch (mode.coordinates) {
        case Coordinates::centres: return (2 * i + 1) * in / (2 * out);
        case Coordinates::corners: return i * in / out;
        case Coordinates::ends:
          return out == 1 ? 0 : (2 * i * (in - 1) + out - 1) / (2 * (out - 1));
      }
      return 0;
    };
    const auto place = std::min(floor(), in - 1);
    return {{place, place}, {1, 0}};
  }
  const auto at = static_cast<double>(i), of_in = static_cast<double>(in),
             of_out = static_cast<double>(out);
  const auto coordinate = [&] {
    switch (mode.coordinates) {
      case Coordinates::centres: return (at + 0.5) * of_in / of_out - 0.5;
      case Coordinates::corners: return at * of_in / of_out;
      case Coordinates::ends: return out == 1 ? 0 : at * (of_in - 1) / (of_out - 1);
    }
    return 0.0;
  };
  const auto c = std::clamp(coordinate(), 0.0, of_in - 1);
  const auto low = static_cast<std::int64_t>(c);
  const auto beyond = c - static_cast<double>(low);
  return {{low, std::min(low + 1, in - 1)}, {1 - beyond, beyond}};
}

/// Calls visit(place in y, place in x, weight) for what each element of a channel is made of.
template <class Visit>
void for_each_part(std::span<const std::int64_t> x, std::span<const std::int64_t> y,
                   const ResizeMode& mode, const Visit& visit) {
  std::array<std::vector<Neighbours>, kMaxSpatial> along;
  PerDimension extents{1, 1, 1};
  for (std::size_t i = 0; i < kMaxSpatial; ++i) {
    const auto out = i < y.size() ? y[i] : 1;
    if (i < x.size()) extents[i] = x[i];
    for (std::int64_t j = 0; j < out; ++j) along[i].push_back(neighbours(j, extents[i], out, mode));
  }
  std::size_t place = 0;
  for (const auto& a : along[0]) {
    for (const auto& b : along[1]) {
      for (const auto& c : along[2]) {
        for (std::size_t corner = 0; corner < 8; ++corner) {
          const auto i = corner >> 2, j = corner >> 1 & 1, k = corner & 1;
          const auto weight = a.weights[i] * b.weights[j] * c.weights[k];
          if (weight == 0) continue;
          visit(place,
                static_cast<std::size_t>((a.places[i] * extents[1] + b.places[j]) * extents[2] +
                                         c.places[k]),
                weight);
        }
        ++place;
      }
    }
  }
}

}  // namespace

void compute_resize(const NodeView& node, Contents& contents) {
  const auto *const from = node.inputs[0], *const to = node.outputs[0];
  const ResizeMode mode{static_cast<Interpolation>(node.numbers[0]),
                        static_cast<Coordinates>(node.numbers[1])};
  const bool backward = node.kind == NodeKind::resize_backward;
  const auto& read = contents.of(from);
  auto& written = contents.make(to);
  const auto channels = static_cast<std::size_t>(to->extents[0] * to->extents[1]);
  const auto of_from = read.size() / channels, of_to = written.size() / channels;
  const auto of_x = spatial((backward ? to : from)->extents),
             of_y = spatial((backward ? from : to)->extents);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto* const source = read.data() + channel * of_from;
    std::vector<double> sums(of_to);
    for_each_part(of_x, of_y, mode, [&](std::size_t in_y, std::size_t in_x, double weight) {
      if (backward) {
        sums[in_x] += weight * source[in_y];
      } else {
        sums[in_y] += weight * source[in_x];
      }
    });
    for (std::size_t i = 0; i < of_to; ++i)
      written[channel * of_to + i] = static_cast<float>(sums[i]);
  }
}

}  // namespace troupe::dnn
