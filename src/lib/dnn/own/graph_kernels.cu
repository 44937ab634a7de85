#include "common/core/philox_block.hpp"
#include "device_host/engine/cuda/launch.cuh"
#include "lib/dnn/own/elements.cuh"
#include "lib/dnn/own/graph_kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

// Parameters whose arrays are indexed are __grid_constant__: else each thread copies them to its
// stack.

__global__ void copy_kernel(std::uint64_t n, const __grid_constant__ Elements from,
                            const __grid_constant__ Elements to) {
  for (auto i = first_index(); i < n; i += index_step())
    store_number(to, place(to, i), load_number(from, place(from, i)));
}

__global__ void drop_kernel(std::uint64_t n, Draw draw, float scale,
                            const __grid_constant__ Elements x, const __grid_constant__ Elements y,
                            const __grid_constant__ Elements mask) {
  const auto offset =
      draw.offset + (draw.moved == nullptr ? 0 : static_cast<std::uint64_t>(*draw.moved));
  for (auto i = first_index(); i < n; i += index_step()) {
    const bool kept = rng_numbers::philox_word(draw.seed, offset + i) >= draw.threshold;
    if (mask.first != nullptr) store_number(mask, place(mask, i), of_real(kept ? 1 : 0));
    if (y.first == nullptr) continue;
    store_number(y, place(y, i), of_real(kept ? load_number(x, place(x, i)).real * scale : 0));
  }
}

__global__ void rotate_kernel(std::uint64_t n, Rotation rotation,
                              const __grid_constant__ Elements x,
                              const __grid_constant__ Elements cos,
                              const __grid_constant__ Elements sin,
                              const __grid_constant__ Elements y) {
  const auto dim = static_cast<std::uint64_t>(rotation.dim),
             pairs = static_cast<std::uint64_t>(rotation.pairs);
  for (auto i = first_index(); i < n; i += index_step()) {
    const auto row = i / dim, d = i % dim;
    const Number own = load_number(x, place(x, i));
    if (d >= 2 * pairs) {
      store_number(y, place(y, i), own);
      continue;
    }
    const bool is_first = rotation.halves ? d < pairs : d % 2 == 0;
    const auto pair = rotation.halves ? (is_first ? d : d - pairs) : d / 2;
    const auto apart = rotation.halves ? pairs : 1;
    const auto other = load_number(x, place(x, is_first ? i + apart : i - apart)).real;
    const auto angle = row * pairs + pair;
    const float c = load_number(cos, place(cos, angle)).real;
    const float s = rotation.direction * load_number(sin, place(sin, angle)).real;
    store_number(y, place(y, i), of_real(own.real * c + (is_first ? -s : s) * other));
  }
}

/// One block for each head.
__global__ void sink_backward_kernel(SinkShape shape, const __grid_constant__ Elements sink,
                                     const __grid_constant__ Elements o,
                                     const __grid_constant__ Elements d_o,
                                     const __grid_constant__ Elements stats,
                                     const __grid_constant__ Elements d_sink) {
  __shared__ float sums[kThreads];
  for (std::int64_t h = blockIdx.x; h < shape.heads; h += gridDim.x) {
    const float score = load_number(sink, place(sink, static_cast<std::uint64_t>(h))).real;
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < shape.batch * shape.queries; i += kThreads) {
      const auto row = static_cast<std::uint64_t>(
          (i / shape.queries * shape.heads + h) * shape.queries + i % shape.queries);
      const float log_sum = load_number(stats, place(stats, row)).real;
      if (isinf(log_sum) && log_sum < 0) continue;
      float projected = 0;
      for (std::int64_t d = 0; d < shape.dim; ++d) {
        const auto at = row * static_cast<std::uint64_t>(shape.dim) + static_cast<std::uint64_t>(d);
        projected += load_number(o, place(o, at)).real * load_number(d_o, place(d_o, at)).real;
      }
      sum -= expf(score - log_sum) * projected;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned others = kThreads / 2; others > 0; others /= 2) {
      if (threadIdx.x < others) sums[threadIdx.x] += sums[threadIdx.x + others];
      __syncthreads();
    }
    if (threadIdx.x == 0)
      store_number(d_sink, place(d_sink, static_cast<std::uint64_t>(h)), of_real(sums[0]));
    __syncthreads();
  }
}

}  // namespace

cudaError_t preload_own_graphs() {
  return load_all(&copy_kernel, &drop_kernel, &rotate_kernel, &sink_backward_kernel);
}

cudaError_t copy_elements(const Launch& launch, std::uint64_t n, const Elements& from,
                          const Elements& to) {
  return queue(launch, n, &copy_kernel, n, from, to);
}

cudaError_t drop_elements(const Launch& launch, std::uint64_t n, const Draw& draw, float scale,
                          const Elements& x, const Elements& y, const Elements& mask) {
  return queue(launch, n, &drop_kernel, n, draw, scale, x, y, mask);
}

cudaError_t rotate_pairs(const Launch& launch, std::uint64_t n, const Rotation& rotation,
                         const Elements& x, const Elements& cos, const Elements& sin,
                         const Elements& y) {
  return queue(launch, n, &rotate_kernel, n, rotation, x, cos, sin, y);
}

cudaError_t sink_backward(const Launch& launch, const SinkShape& shape, const Elements& sink,
                          const Elements& o, const Elements& d_o, const Elements& stats,
                          const Elements& d_sink) {
  const auto threads = static_cast<std::uint64_t>(shape.heads) * kThreads;
  return queue(launch, threads, &sink_backward_kernel, shape, sink, o, d_o, stats, d_sink);
}

}  // namespace troupe::host::cuda::kernels
