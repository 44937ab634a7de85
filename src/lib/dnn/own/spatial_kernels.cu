#include <cmath>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/dnn/own/elements.cuh"
#include "lib/dnn/own/spatial_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// Of numbers that are not negative. Divisions of 32 bits are much faster.
__device__ std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return ((a | b) >> 32) == 0 ? static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b)
                              : a / b;
}
__device__ std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

/// Where an element of images is.
struct Pixel {
  std::int64_t image, channel, at[kSpatial];
};

/// The next index of a dimension: i modulo the extent, by which i is divided.
__device__ std::int64_t take_index(std::int64_t& i, std::int64_t extent) {
  if (extent == 1) return 0;
  const auto above = quotient(i, extent);
  const auto index = i - above * extent;
  i = above;
  return index;
}
/// Element i of images, counted in the order in which packed ones lie in memory.
__device__ Pixel pixel_of(const Images& images, std::uint64_t number) {
  const auto* const extents = images.elements.extents;
  auto i = static_cast<std::int64_t>(number);
  Pixel pixel;
  if (images.channels_last) pixel.channel = take_index(i, extents[1]);
  for (int d = kSpatial - 1; d >= 0; --d) pixel.at[d] = take_index(i, extents[2 + d]);
  if (!images.channels_last) pixel.channel = take_index(i, extents[1]);
  pixel.image = i;
  return pixel;
}

/// How far an element is from the first one.
__device__ std::int64_t place_of(const Images& images, const Pixel& pixel) {
  const auto* const strides = images.elements.strides;
  return pixel.image * strides[0] + pixel.channel * strides[1] + pixel.at[0] * strides[2] +
         pixel.at[1] * strides[3] + pixel.at[2] * strides[4];
}
__device__ Number load(const Images& images, const Pixel& pixel) {
  return load_number(images.elements, place_of(images, pixel));
}
__device__ void store(const Images& images, const Pixel& pixel, double value) {
  store_number(images.elements, place_of(images, pixel), of_real(static_cast<float>(value)));
}

/// The part of a window that is no padding, along a dimension: taps from `first` to before `last`.
/// Tap 0 is at element `begin` of x.
struct Taps {
  std::int64_t begin, first, last;
};
__device__ Taps taps_of(const PoolingWindows& windows, const Images& x, int d,
                        std::int64_t window) {
  const auto begin = window * windows.strides[d] - windows.before[d];
  return {begin, begin < 0 ? -begin : 0,
          smaller(windows.size[d], x.elements.extents[2 + d] - begin)};
}

/// Calls visit(tap, element of x) for each element of a window that is no padding, row-major.
template <class Visit>
__device__ void for_each_tap(const PoolingWindows& windows, const Images& x, const Pixel& window,
                             const Visit& visit) {
  const Taps a = taps_of(windows, x, 0, window.at[0]), b = taps_of(windows, x, 1, window.at[1]),
             c = taps_of(windows, x, 2, window.at[2]);
  for (auto i = a.first; i < a.last; ++i) {
    for (auto j = b.first; j < b.last; ++j) {
      for (auto k = c.first; k < c.last; ++k) {
        visit((i * windows.size[1] + j) * windows.size[2] + k,
              Pixel{window.image, window.channel, {a.begin + i, b.begin + j, c.begin + k}});
      }
    }
  }
}

/// How many elements the mean of a window is of.
__device__ double divisor(const PoolingWindows& windows, bool inside, const Images& x,
                          const Pixel& window) {
  std::int64_t count = 1;
  for (int d = 0; d < kSpatial; ++d) {
    const Taps taps = taps_of(windows, x, d, window.at[d]);
    count *= inside ? taps.last - taps.first : windows.size[d];
  }
  return static_cast<double>(count);
}

/// The windows that have an element of x, along a dimension.
struct Span {
  std::int64_t first, last;  ///< itself included
};
__device__ Span windows_with(const PoolingWindows& windows, const Images& y, int d,
                             std::int64_t element) {
  const auto stride = windows.strides[d], last_tap = element + windows.before[d];
  const auto beyond = last_tap - windows.size[d] + 1;
  return {beyond <= 0 ? 0 : quotient(beyond + stride - 1, stride),
          smaller(quotient(last_tap, stride), y.elements.extents[2 + d] - 1)};
}

/// Calls visit(tap, window) for each window that has an element of x, row-major.
template <class Visit>
__device__ void for_each_window(const PoolingWindows& windows, const Images& y,
                                const Pixel& element, const Visit& visit) {
  const Span a = windows_with(windows, y, 0, element.at[0]),
             b = windows_with(windows, y, 1, element.at[1]),
             c = windows_with(windows, y, 2, element.at[2]);
  const auto tap = [&](int d, std::int64_t window) {
    return element.at[d] + windows.before[d] - window * windows.strides[d];
  };
  for (auto i = a.first; i <= a.last; ++i) {
    for (auto j = b.first; j <= b.last; ++j) {
      for (auto k = c.first; k <= c.last; ++k) {
        visit((tap(0, i) * windows.size[1] + tap(1, j)) * windows.size[2] + tap(2, k),
              Pixel{element.image, element.channel, {i, j, k}});
      }
    }
  }
}

__global__ void maxima_kernel(std::uint64_t n, PoolingWindows windows, Images x, Images y,
                              Images index) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const Pixel window = pixel_of(y, i);
    float largest = -INFINITY;
    std::int64_t taken = -1;
    for_each_tap(windows, x, window, [&](std::int64_t tap, const Pixel& element) {
      const float value = load(x, element).real;
      if (taken >= 0 && (isnan(largest) || value <= largest)) return;
      largest = value;
      taken = tap;
    });
    store(y, window, largest);
    if (index.elements.first != nullptr) store(index, window, static_cast<double>(taken));
  }
}

__global__ void means_kernel(std::uint64_t n, PoolingWindows windows, bool inside, Images x,
                             Images y) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const Pixel window = pixel_of(y, i);
    double sum = 0;
    for_each_tap(windows, x, window, [&](std::int64_t, const Pixel& element) {
      sum += static_cast<double>(load(x, element).real);
    });
    store(y, window, sum / divisor(windows, inside, x, window));
  }
}

__global__ void maxima_backward_kernel(std::uint64_t n, PoolingWindows windows, Images dy,
                                       Images index, Images dx) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const Pixel element = pixel_of(dx, i);
    double sum = 0;
    for_each_window(windows, dy, element, [&](std::int64_t tap, const Pixel& window) {
      if (load(index, window).real == static_cast<float>(tap))
        sum += static_cast<double>(load(dy, window).real);
    });
    store(dx, element, sum);
  }
}

__global__ void means_backward_kernel(std::uint64_t n, PoolingWindows windows, bool inside,
                                      Images dy, Images dx) {
  for (auto i = first_index(); i < n; i += index_step()) {
    const Pixel element = pixel_of(dx, i);
    double sum = 0;
    for_each_window(windows, dy, element, [&](std::int64_t, const Pixel& window) {
      sum += static_cast<double>(load(dy, window).real) / divisor(windows, inside, dx, window);
    });
    store(dx, element, sum);
  }
}

/// The elements of x that an element of y is made of, along a dimension: 1 - beyond of `low` and
/// `beyond` of `high`.
struct Neighbours {
  std::int64_t low, high;
  double beyond;

  __device__ double weight(int i) const { return i == 0 ? 1 - beyond : beyond; }
  __device__ std::int64_t place(int i) const { return i == 0 ? low : high; }
};

/// Of element i, of `out`. Extents are below 2^31: no product overflows.
__device__ Neighbours neighbours(std::int64_t i, std::int64_t in, std::int64_t out,
                                 const Resizing& mode) {
  using Coordinates = Resizing::Coordinates;
  if (in == 1) return {0, 0, 0};
  if (mode.nearest) {  // exact, in integers
    std::int64_t floor = 0;
    switch (mode.coordinates) {
      case Coordinates::centres: floor = quotient((2 * i + 1) * in, 2 * out); break;
      case Coordinates::corners: floor = quotient(i * in, out); break;
      case Coordinates::ends:
        if (out > 1) floor = quotient(2 * i * (in - 1) + out - 1, 2 * (out - 1));
        break;
    }
    const auto place = smaller(floor, in - 1);
    return {place, place, 0};
  }
  const auto at = static_cast<double>(i), of_in = static_cast<double>(in),
             of_out = static_cast<double>(out);
  double c = 0;
  switch (mode.coordinates) {
    case Coordinates::centres: c = (at + 0.5) * of_in / of_out - 0.5; break;
    case Coordinates::corners: c = at * of_in / of_out; break;
    case Coordinates::ends:
      if (out > 1) c = at * (of_in - 1) / (of_out - 1);
      break;
  }
  c = c < 0 ? 0 : c > of_in - 1 ? of_in - 1 : c;
  const auto low = static_cast<std::int64_t>(c);
  return {low, smaller(low + 1, in - 1), c - static_cast<double>(low)};
}

/// The first element of y whose neighbours reach element j of x; `out`: there is none. Neighbours
/// never go down from one element to the next: what is near the coordinate of j is corrected.
__device__ std::int64_t first_reaching(std::int64_t j, std::int64_t in, std::int64_t out,
                                       const Resizing& mode) {
  using Coordinates = Resizing::Coordinates;
  if (j == 0) return 0;
  const auto at = static_cast<double>(j), of_in = static_cast<double>(in),
             of_out = static_cast<double>(out);
  double near = 0;
  switch (mode.coordinates) {
    case Coordinates::centres: near = (mode.nearest ? at : at - 0.5) * of_out / of_in - 0.5; break;
    case Coordinates::corners: near = (mode.nearest ? at : at - 1) * of_out / of_in; break;
    case Coordinates::ends:
      near = (mode.nearest ? at - 0.5 : at - 1) * (of_out - 1) / (of_in - 1);
      break;
  }
  auto i = smaller(static_cast<std::int64_t>(near < 0 ? 0 : near), out);
  while (i > 0 && neighbours(i - 1, in, out, mode).high >= j) --i;
  while (i < out && neighbours(i, in, out, mode).high < j) ++i;
  return i;
}

__global__ void resize_kernel(std::uint64_t n, Resizing mode, Images x, Images y) {
  const auto *const in = x.elements.extents + 2, *const out = y.elements.extents + 2;
  for (auto number = first_index(); number < n; number += index_step()) {
    const Pixel pixel = pixel_of(y, number);
    const Neighbours a = neighbours(pixel.at[0], in[0], out[0], mode),
                     b = neighbours(pixel.at[1], in[1], out[1], mode),
                     c = neighbours(pixel.at[2], in[2], out[2], mode);
    double sum = 0;
    for (int corner = 0; corner < 8; ++corner) {
      const int i = corner >> 2, j = corner >> 1 & 1, k = corner & 1;
      const double weight = a.weight(i) * b.weight(j) * c.weight(k);
      if (weight == 0) continue;
      const Pixel from{pixel.image, pixel.channel, {a.place(i), b.place(j), c.place(k)}};
      sum += weight * static_cast<double>(load(x, from).real);
    }
    store(y, pixel, sum);
  }
}

__global__ void resize_backward_kernel(std::uint64_t n, Resizing mode, Images dy, Images dx) {
  const auto *const in = dx.elements.extents + 2, *const out = dy.elements.extents + 2;
  for (auto number = first_index(); number < n; number += index_step()) {
    const Pixel pixel = pixel_of(dx, number);
    const auto first = [&](int d) { return first_reaching(pixel.at[d], in[d], out[d], mode); };
    // What element i of y, from the first one on, takes of the pixel; less than 0: it and what
    // comes after it is made of elements behind the pixel.
    const auto share = [&](int d, std::int64_t i) {
      const Neighbours made_of = neighbours(i, in[d], out[d], mode);
      return made_of.low > pixel.at[d]    ? -1.0
             : made_of.low == pixel.at[d] ? made_of.weight(0)
                                          : made_of.weight(1);
    };
    const std::int64_t first_a = first(0), first_b = first(1), first_c = first(2);
    double sum = 0;
    for (auto i = first_a; i < out[0]; ++i) {
      const double a = share(0, i);
      if (a < 0) break;
      for (auto j = first_b; j < out[1]; ++j) {
        const double b = share(1, j);
        if (b < 0) break;
        for (auto k = first_c; k < out[2]; ++k) {
          const double c = share(2, k);
          if (c < 0) break;
          const double weight = a * b * c;
          if (weight == 0) continue;
          sum +=
              weight * static_cast<double>(load(dy, {pixel.image, pixel.channel, {i, j, k}}).real);
        }
      }
    }
    store(dx, pixel, sum);
  }
}

std::uint64_t count_of(const Images& images) {
  std::uint64_t count = 1;
  for (int d = 0; d < images.elements.rank; ++d)
    count *= static_cast<std::uint64_t>(images.elements.extents[d]);
  return count;
}

}  // namespace

cudaError_t preload_own_spatial() {
  return load_all(&maxima_kernel, &means_kernel, &maxima_backward_kernel, &means_backward_kernel,
                  &resize_kernel, &resize_backward_kernel);
}

cudaError_t pool_maxima(const Launch& launch, const PoolingWindows& windows, const Images& x,
                        const Images& y, const Images& index) {
  const auto n = count_of(y);
  return queue(launch, n, &maxima_kernel, n, windows, x, y, index);
}
cudaError_t pool_means(const Launch& launch, const PoolingWindows& windows, bool inside,
                       const Images& x, const Images& y) {
  const auto n = count_of(y);
  return queue(launch, n, &means_kernel, n, windows, inside, x, y);
}
cudaError_t pool_maxima_backward(const Launch& launch, const PoolingWindows& windows,
                                 const Images& dy, const Images& index, const Images& dx) {
  const auto n = count_of(dx);
  return queue(launch, n, &maxima_backward_kernel, n, windows, dy, index, dx);
}
cudaError_t pool_means_backward(const Launch& launch, const PoolingWindows& windows, bool inside,
                                const Images& dy, const Images& dx) {
  const auto n = count_of(dx);
  return queue(launch, n, &means_backward_kernel, n, windows, inside, dy, dx);
}

cudaError_t resize_images(const Launch& launch, const Resizing& mode, const Images& x,
                          const Images& y) {
  const auto n = count_of(y);
  return queue(launch, n, &resize_kernel, n, mode, x, y);
}
cudaError_t resize_images_backward(const Launch& launch, const Resizing& mode, const Images& dy,
                                   const Images& dx) {
  const auto n = count_of(dx);
  return queue(launch, n, &resize_backward_kernel, n, mode, dy, dx);
}

}  // namespace troupe::host::cuda::kernels
