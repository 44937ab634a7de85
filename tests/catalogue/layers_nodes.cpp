#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "catalogue/layers.hpp"
#include "catalogue/tensor_places.hpp"

// Nodes of images, norms and attention.

namespace troupe::catalogue {
namespace {

using Extents = Layers::Extents;
using Id = Layers::Id;

/// The step of a window over images of two spatial dimensions.
struct Steps {
  std::array<std::int64_t, 2> before, stride;
  explicit Steps(const dnn::ConvolutionSteps& steps)
      : before{steps.padding_before.or_all(0, 2).size[0],
               steps.padding_before.or_all(0, 2).size[1]},
        stride{steps.strides.or_all(1, 2).size[0], steps.strides.or_all(1, 2).size[1]} {}
};

/// The elements of x in a window, which is an element of the result.
std::vector<std::size_t> places_in_window(const Extents& of_x, const Extents& window,
                                          const dnn::PoolingSteps& steps) {
  const auto before = steps.padding_before.or_all(0, 2);
  const auto strides = steps.strides.rank == 0 ? steps.window : steps.strides;
  std::vector<std::size_t> places;
  for_each({steps.window.size[0], steps.window.size[1]}, [&](const Extents& tap, std::size_t) {
    const Extents from{window[0], window[1], window[2] * strides.size[0] + tap[0] - before.size[0],
                       window[3] * strides.size[1] + tap[1] - before.size[1]};
    if (from[2] < 0 || from[2] >= of_x[2] || from[3] < 0 || from[3] >= of_x[3]) return;
    places.push_back(place_in(of_x, from));
  });
  return places;
}
/// How many elements the mean is of.
double divisor(dnn::Pooling mode, const dnn::PoolingSteps& steps,
               const std::vector<std::size_t>& taken) {
  return static_cast<double>(mode == dnn::Pooling::average
                                 ? steps.window.size[0] * steps.window.size[1]
                                 : static_cast<std::int64_t>(taken.size()));
}

constexpr dnn::ResizeMode kByCorners{dnn::Interpolation::linear, dnn::Coordinates::corners};

/// The four elements of x that an element of a result twice as large is the mean of: those between
/// which it lies in each dimension; behind the last there is none.
std::array<std::size_t, 4> made_of(const Extents& of_x, const Extents& index) {
  std::array<std::size_t, 4> places{};
  for (std::size_t corner = 0; corner < places.size(); ++corner) {
    auto at = index;
    at[2] = std::min((index[2] + static_cast<std::int64_t>(corner / 2)) / 2, of_x[2] - 1);
    at[3] = std::min((index[3] + static_cast<std::int64_t>(corner % 2)) / 2, of_x[3] - 1);
    places[corner] = place_in(of_x, at);
  }
  return places;
}

}  // namespace

/// One of x, w and y is made of the other two, in all products of the definition.
Id Layers::convolve(Id made, Id x, Id w, Id y, const dnn::ConvolutionSteps& steps) {
  const auto of_x = layout(x).extents, of_w = layout(w).extents, of_y = layout(y).extents;
  const Steps moves(steps);
  Exact result(volume(layout(made).extents));
  const auto part = [&](Id tensor, std::size_t place) {
    return tensor.number == made.number ? 1.0 : exact(tensor).value[place];
  };
  for_each(of_y, [&](const Extents& out, std::size_t in_y) {
    for_each({of_w[1], of_w[2], of_w[3]}, [&](const Extents& tap, std::size_t) {
      const auto row = out[2] * moves.stride[0] + tap[1] - moves.before[0],
                 column = out[3] * moves.stride[1] + tap[2] - moves.before[1];
      if (row < 0 || row >= of_x[2] || column < 0 || column >= of_x[3]) return;
      // The channels of a group, of which w has as many.
      const auto groups = of_x[1] / of_w[1], group = out[1] / (of_w[0] / groups);
      const auto in_x = static_cast<std::size_t>(
          ((out[0] * of_x[1] + group * of_w[1] + tap[0]) * of_x[2] + row) * of_x[3] + column);
      const auto in_w = static_cast<std::size_t>(
          ((out[1] * of_w[1] + tap[0]) * of_w[2] + tap[1]) * of_w[3] + tap[2]);
      const auto place = made.number == x.number ? in_x : made.number == w.number ? in_w : in_y;
      result.value[place] += part(x, in_x) * part(w, in_w) * part(y, in_y);
    });
  });
  return keep(made, std::move(result));
}
Id Layers::convolution(Id x, Id w, const dnn::ConvolutionSteps& steps) {
  const auto made = dnn::convolution(graph_, x, w, steps);
  return convolve(made, x, w, made, steps);
}
Id Layers::convolution_data(Id dy, Id w, const Extents& extents,
                            const dnn::ConvolutionSteps& steps) {
  const auto made = dnn::convolution_data(graph_, dy, w, extents, steps);
  return convolve(made, made, w, dy, steps);
}
Id Layers::convolution_filter(Id dy, Id x, const Extents& extents,
                              const dnn::ConvolutionSteps& steps) {
  const auto made = dnn::convolution_filter(graph_, dy, x, extents, steps);
  return convolve(made, x, made, dy, steps);
}

Id Layers::pooling(dnn::Pooling mode, Id x, const dnn::PoolingSteps& steps) {
  const auto made = dnn::pooling(graph_, mode, x, steps);
  const auto of_x = layout(x).extents, extents = layout(made).extents;
  Exact result(volume(extents));
  for_each(extents, [&](const Extents& index, std::size_t i) {
    double sum = 0, sizes = 0, largest = -std::numeric_limits<double>::infinity();
    const auto taken = places_in_window(of_x, index, steps);
    for (const auto place : taken) {
      const auto value = exact(x).value[place];
      sum += value, sizes += std::abs(value);
      largest = std::max(largest, value);
    }
    result.value[i] = mode == dnn::Pooling::maximum ? largest : sum / divisor(mode, steps, taken);
    result.slack[i] = mode == dnn::Pooling::maximum ? 0 : 8 * kF32 * sizes;
  });
  return keep(made, std::move(result));
}

Id Layers::pooling_backward(dnn::Pooling mode, Id dy, Id x, const dnn::PoolingSteps& steps) {
  const auto of_x = layout(x).extents, of_y = layout(dy).extents;
  const bool maxima = mode == dnn::Pooling::maximum;
  const auto index = maxima ? dnn::max_pooling(graph_, x, steps).index : Id();
  const auto made = dnn::pooling_backward(graph_, mode, dy, index, of_x, steps);
  Exact result(volume(of_x));
  for_each(of_y, [&](const Extents& window, std::size_t i) {
    auto taken = places_in_window(of_x, window, steps);
    const auto share = exact(dy).value[i] / (maxima ? 1 : divisor(mode, steps, taken));
    // The first of equal ones.
    if (maxima) {
      taken = {*std::ranges::max_element(taken, {},
                                         [&](std::size_t place) { return exact(x).value[place]; })};
    }
    for (const auto place : taken) {
      result.value[place] += share;
      if (!maxima) result.slack[place] += 2 * kF32 * std::abs(share);
    }
  });
  return keep(made, std::move(result));
}

Id Layers::doubled(Id x) {
  const auto from = layout(x).extents;
  const auto made = dnn::resize(graph_, x, {2 * from[2], 2 * from[3]}, kByCorners);
  Exact result(volume(layout(made).extents));
  for_each(layout(made).extents, [&](const Extents& index, std::size_t i) {
    for (const auto place : made_of(from, index)) result.value[i] += exact(x).value[place] / 4;
  });
  return keep(made, std::move(result));
}
Id Layers::doubled_backward(Id dy) {
  const auto from = layout(dy).extents;
  const auto made = dnn::resize_backward(graph_, dy, {from[2] / 2, from[3] / 2}, kByCorners);
  const auto extents = layout(made).extents;
  Exact result(volume(extents));
  for_each(from, [&](const Extents& index, std::size_t i) {
    for (const auto place : made_of(extents, index)) result.value[place] += exact(dy).value[i] / 4;
  });
  return keep(made, std::move(result));
}

// Norms: the formulas are those of dnn/norms.hpp, the slack some tens of roundings in f32.

dnn::Normalized Layers::norm(dnn::Norm which, Id x, Id scale, Id bias, dnn::Phase phase) {
  constexpr float kEpsilon = 1e-5f;
  const auto made = dnn::norm(graph_, which, x, scale, bias, kEpsilon, phase);
  const auto extents = layout(x).extents, weights = layout(scale).extents;
  auto sets = extents;  // 1 where elements are normalised together
  for (std::size_t d = 0; d < sets.size(); ++d) {
    const bool together = which == dnn::Norm::instance ? d >= 2
                          : which == dnn::Norm::batch  ? d != 1
                                                       : weights[d] != 1;
    if (together) sets[d] = 1;
  }
  Exact mean(volume(sets)), inverse(volume(sets)), y(volume(extents));
  const auto count = static_cast<double>(volume(extents) / volume(sets));
  std::vector<double> variance(volume(sets)), largest(volume(sets));
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index);
    if (which != dnn::Norm::rms) mean.value[set] += exact(x).value[i] / count;
    largest[set] = std::max(largest[set], std::abs(exact(x).value[i]));
  });
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index);
    variance[set] += std::pow(exact(x).value[i] - mean.value[set], 2) / count;
  });
  for (std::size_t set = 0; set < variance.size(); ++set) {
    inverse.value[set] = 1 / std::sqrt(variance[set] + static_cast<double>(kEpsilon));
    mean.slack[set] = 16 * kF32 * largest[set];
    // A variance may be the mean of the squares less the square of the mean.
    inverse.slack[set] =
        16 * kF32 * inverse.value[set] * (1 + std::pow(largest[set] * inverse.value[set], 2));
  }
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index), weight = place_in(weights, index);
    const auto factor = exact(scale).value[weight],
               added = bias.present() ? exact(bias).value[weight] : 0;
    const auto apart = exact(x).value[i] - mean.value[set];
    y.value[i] = apart * inverse.value[set] * factor + added;
    y.slack[i] = std::abs(factor) * (std::abs(apart) * inverse.slack[set] +
                                     (inverse.value[set] + inverse.slack[set]) * mean.slack[set]) +
                 8 * kF32 * (std::abs(apart * inverse.value[set] * factor) + std::abs(added));
  });
  keep(made.y, std::move(y));
  if (made.mean.present()) keep(made.mean, std::move(mean));
  if (made.inverse_deviation.present()) keep(made.inverse_deviation, std::move(inverse));
  return made;
}

dnn::NormGradients Layers::norm_backward(dnn::Norm which, Id dy, Id x, Id scale, Id mean,
                                         Id inverse_deviation) {
  const bool with_dbias = which != dnn::Norm::rms;
  const auto made = dnn::norm_backward(graph_, which, dy, x, scale, mean, inverse_deviation);
  const auto extents = layout(x).extents, weights = layout(scale).extents,
             sets = layout(inverse_deviation).extents;
  const auto count = static_cast<double>(volume(extents) / volume(sets));
  Exact dx(volume(extents)), dscale(volume(weights)), dbias(volume(weights));
  std::vector<double> means(volume(sets)), along(volume(sets)), sizes(volume(sets));
  // Of each element: how far from the mean, in deviations, and the gradient of that.
  const auto at = [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index), weight = place_in(weights, index);
    const auto middle = mean.present() ? exact(mean).value[set] : 0;
    return std::array{(exact(x).value[i] - middle) * exact(inverse_deviation).value[set],
                      exact(dy).value[i] * exact(scale).value[weight]};
  };
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index), weight = place_in(weights, index);
    const auto [apart, gradient] = at(index, i);
    if (with_dbias) means[set] += gradient / count;
    along[set] += apart * gradient / count;
    sizes[set] += std::abs(gradient) * (1 + std::abs(apart)) / count;
    const auto term = exact(dy).value[i] * apart;
    dscale.value[weight] += term, dscale.slack[weight] += 16 * kF32 * std::abs(term);
    dbias.value[weight] += exact(dy).value[i];
  });
  for_each(extents, [&](const Extents& index, std::size_t i) {
    const auto set = place_in(sets, index);
    const auto [apart, gradient] = at(index, i);
    const auto inverse = exact(inverse_deviation).value[set];
    dx.value[i] = inverse * (gradient - means[set] - apart * along[set]);
    dx.slack[i] =
        32 * kF32 * std::abs(inverse) * (std::abs(gradient) + (1 + std::abs(apart)) * sizes[set]);
  });
  keep(made.dx, std::move(dx));
  keep(made.dscale, std::move(dscale));
  if (made.dbias.present()) keep(made.dbias, std::move(dbias));
  return made;
}

dnn::AttentionOutputs Layers::attention(const dnn::AttentionInputs& in,
                                        const dnn::AttentionRule& rule) {
  const auto made = dnn::attention(graph_, in, rule, true);
  const auto of_q = layout(in.q).extents, of_k = layout(in.k).extents, of_v = layout(in.v).extents,
             of_o = layout(made.o).extents;
  const auto scale =
      rule.scale ? static_cast<double>(*rule.scale) : 1 / std::sqrt(static_cast<double>(of_q[3]));
  Exact o(volume(of_o)), stats(volume(layout(made.stats).extents));
  for_each({of_q[0], of_q[1], of_q[2]}, [&](const Extents& query, std::size_t row) {
    const auto head = query[1] / (of_q[1] / of_k[1]);
    const auto place = [&](const Extents& extents, std::int64_t h, std::int64_t i, std::int64_t d) {
      return place_in(extents, {query[0], h, i, d});
    };
    std::vector<double> weight;
    double sum = 0;
    for (std::int64_t j = 0; j < of_k[2]; ++j) {
      if (rule.mask.right && j > query[2] + *rule.mask.right) break;
      double score = 0;
      for (std::int64_t d = 0; d < of_q[3]; ++d)
        score += exact(in.q).value[place(of_q, query[1], query[2], d)] *
                 exact(in.k).value[place(of_k, head, j, d)];
      sum += weight.emplace_back(std::exp(score * scale));
    }
    stats.value[row] = std::log(sum);
    stats.slack[row] = 0x1p-16 * (1 + std::abs(stats.value[row]));
    for (std::int64_t d = 0; d < of_v[3]; ++d) {
      const auto to = place(of_o, query[1], query[2], d);
      for (std::size_t j = 0; j < weight.size(); ++j) {
        const auto term =
            weight[j] / sum * exact(in.v).value[place(of_v, head, static_cast<std::int64_t>(j), d)];
        o.value[to] += term;
        // The weights are rounded to the type of q; bf16 has the widest spacing.
        o.slack[to] += 0x1p-8 * std::abs(term);
      }
      o.slack[to] += 0x1p-16;
    }
  });
  keep(made.o, std::move(o));
  keep(made.stats, std::move(stats));
  return made;
}

}  // namespace troupe::catalogue
