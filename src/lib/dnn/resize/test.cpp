#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <string>

#include "bad_arguments.hpp"
#include "dnn_numbers.hpp"

namespace troupe::test {
namespace {

using dnn::Coordinates;
using dnn::Interpolation;

/// The share of element j of x, of `in` elements, in element i of y, of `out`; from the formulas of
/// PyTorch's documentation of interpolate, in f64.
double share(std::int64_t i, std::int64_t j, std::int64_t in, std::int64_t out,
             const dnn::ResizeMode& mode) {
  const auto at = static_cast<double>(i), of_in = static_cast<double>(in),
             of_out = static_cast<double>(out), place = static_cast<double>(j);
  const bool nearest = mode.interpolation == Interpolation::nearest;
  double c = 0;
  switch (mode.coordinates) {
    case Coordinates::centres: c = (at + 0.5) * (of_in / of_out) - 0.5; break;
    case Coordinates::corners: c = at * (of_in / of_out) - (nearest ? 0.5 : 0); break;
    case Coordinates::ends: c = out == 1 ? 0 : at * (of_in - 1) / (of_out - 1); break;
  }
  if (nearest) {
    // Away from ties, where f64 could err on either side; the tests have no others.
    return std::clamp(std::floor(c + 0.5 + 1e-9), 0.0, of_in - 1) == place ? 1 : 0;
  }
  return std::max(0.0, 1 - std::abs(std::clamp(c, 0.0, of_in - 1) - place));
}

using Spatial = std::array<std::int64_t, 3>;
Spatial spread(const dnn::Sizes& sizes) {
  Spatial all{1, 1, 1};
  std::copy_n(sizes.size.begin(), sizes.rank, all.begin());
  return all;
}
std::int64_t volume(const Spatial& extents) {
  return extents[0] * extents[1] * extents[2];
}

/// Calls visit(place in y, place in x, weight) for a batch of images with the channels last.
template <class Visit>
void for_each_share(const ResizeOptions& shape, const Visit& visit) {
  const auto x = spread(shape.extents), y = spread(shape.resized);
  const auto at = [](std::int64_t pixel, const Spatial& extents) {
    return Spatial{pixel / (extents[1] * extents[2]), pixel / extents[2] % extents[1],
                   pixel % extents[2]};
  };
  for (std::int64_t to = 0; to < volume(y); ++to) {
    for (std::int64_t from = 0; from < volume(x); ++from) {
      double weight = 1;
      for (std::size_t i = 0; i < 3; ++i)
        weight *= share(at(to, y)[i], at(from, x)[i], x[i], y[i], shape.mode);
      if (weight == 0) continue;
      for (std::int64_t n = 0; n < shape.batch; ++n) {
        for (std::int64_t c = 0; c < shape.channels; ++c) {
          visit(static_cast<std::size_t>((n * volume(y) + to) * shape.channels + c),
                static_cast<std::size_t>((n * volume(x) + from) * shape.channels + c), weight);
        }
      }
    }
  }
}

std::vector<ResizeOptions> sizes() {
  std::vector<ResizeOptions> all;
  for (const auto interpolation : {Interpolation::nearest, Interpolation::linear}) {
    for (const auto coordinates : {Coordinates::centres, Coordinates::corners, Coordinates::ends}) {
      const dnn::ResizeMode mode{interpolation, coordinates};
      all.push_back({2, 8, {5, 4}, {10, 8}, mode});
      all.push_back({1, 8, {7, 6}, {3, 9}, mode});
      all.push_back({2, 4, {6}, {11}, mode});
      all.push_back({1, 4, {3, 4, 2}, {4, 2, 5}, mode});
      all.push_back({1, 4, {4, 3}, {1, 1}, mode});
    }
  }
  return all;
}

template <class T>
class DnnResizes : public OfLayers<T> {};
using ResizeTypes = ::testing::Types<Half, BFloat16, float>;
TYPED_TEST_SUITE(DnnResizes, ResizeTypes);

TYPED_TEST(DnnResizes, ImagesAndTheirGradientsAreThoseOfTheFormula) {
  using T = TypeParam;
  const auto all = sizes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& shape = all[i];
    const auto of_x = shape.batch * shape.channels * volume(spread(shape.extents)),
               of_y = shape.batch * shape.channels * volume(spread(shape.resized));
    const auto values = uniform<T>(of_x, i), gradients = uniform<T>(of_y, 100 + i);
    std::vector<double> resized(gradients.size()), shared(values.size());
    for_each_share(shape, [&](std::size_t in_y, std::size_t in_x, double weight) {
      resized[in_y] += weight * values[in_x];
      shared[in_x] += weight * gradients[in_y];
    });
    const auto near = [&](const GpuRef<T>& memory, const std::vector<double>& exact) {
      const auto actual = widened(device().download(memory));
      for (std::size_t j = 0; j < exact.size(); ++j) {
        // One rounding to T, and those of weights and sums in f32.
        ASSERT_NEAR(actual[j], exact[j], kEpsilon<T> / 2 * std::abs(exact[j]) + 0x1p-21)
            << "shape " << i << " at " << j;
      }
    };
    const auto y = device().template alloc<T>(of_y), dx = device().template alloc<T>(of_x);
    dnn::on(device()).resize(put(narrowed<T>(values)), y, shape).get();
    near(y, resized);
    dnn::on(device()).resize_backward(put(narrowed<T>(gradients)), dx, shape).get();
    near(dx, shared);
  }
}

/// With the channels before the pixels, and beside a node that moves elements.
TEST(DnnResizesInGraphs, ChannelsMayLieFirst) {
  dnn::Graph graph;
  const auto x = graph.input(DType::f32, {1, 2, 2, 2});
  const auto y = dnn::resize(graph, x, {2, 4}, {Interpolation::nearest, Coordinates::corners});
  const auto rows = dnn::reshape(graph, y, {4, 4});
  graph.output(rows, DType::f32);
  const auto dx = dnn::resize_backward(graph, y, {2, 2}, {Interpolation::nearest, {}});
  graph.output(dx, DType::f32);
  const auto x_ref = put(narrowed<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  const auto rows_ref = device().alloc<float>(16), dx_ref = device().alloc<float>(8);
  const auto done = dnn::on(device()).run(graph, {{x, x_ref}, {rows, rows_ref}, {dx, dx_ref}});
  skip_unless_installed(done);
  if (::testing::Test::IsSkipped() || ::testing::Test::HasFatalFailure()) return;
  EXPECT_EQ(device().download(rows_ref),
            (std::vector<float>{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8}));
  EXPECT_EQ(device().download(dx_ref), (std::vector<float>{2, 4, 6, 8, 10, 12, 14, 16}));
}

TEST(DnnResizesRefused, WhatCannotBe) {
  const auto x = device().alloc<float>(256), y = device().alloc<float>(256);
  const auto refuses = [&](const std::string& why, const ResizeOptions& shape) {
    const Result<void> result = dnn::on(device()).resize(x, y, shape).wait();
    ASSERT_EQ(result.code(), Errc::invalid) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
    (void)device().take_error();
  };
  refuses("the same number of spatial dimensions", {1, 4, {4, 4}, {4}, {}});
  refuses("the same number of spatial dimensions", {1, 4, {}, {}, {}});
  refuses("an extent of tensor 1 is not positive", {1, 4, {4, 4}, {0, 4}, {}});
  refuses("unknown interpolation", {1, 4, {4}, {8}, {static_cast<Interpolation>(2), {}}});
  refuses("unknown coordinates", {1, 4, {4}, {8}, {{}, static_cast<Coordinates>(3)}});
}

}  // namespace
}  // namespace troupe::test
