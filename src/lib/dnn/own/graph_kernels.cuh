#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// Kernels for graphs of nodes that cuDNN lacks. In C++17, because kernels are compiled so.
namespace troupe::host::cuda::kernels {

/// What an element of a tensor is in memory.
enum class Stored : std::int32_t { f16, bf16, f32, i8, u8, i32, i64, constant };

/// Where the elements of a tensor lie: element (i0, i1, ...), counted row-major over the extents,
/// is strides[0] * i0 + strides[1] * i1 + ... elements from the first one.
struct Elements {
  static constexpr int kMaxRank = 8;

  void* first = nullptr;  ///< none: there is no such tensor, or it is a constant
  Stored stored{};
  std::int32_t rank = 1;
  std::int64_t extents[kMaxRank] = {1};
  std::int64_t strides[kMaxRank] = {0};
  float value = 0;  ///< of all elements of a constant
};

/// Loads the kernels below onto the current device.
cudaError_t preload_own_graphs();

/// to[i] = from[i] for n elements, rounded to the nearest where the type is another; what is beyond
/// an integer type becomes its largest or least. Queues on the launch's stream and returns, as do
/// those below.
cudaError_t copy_elements(const Launch& launch, std::uint64_t n, const Elements& from,
                          const Elements& to);

/// Which elements are kept: those whose word of the sequence of rng.bits is not below `threshold`.
/// Element i has the word at offset + *moved + i.
struct Draw {
  std::uint64_t seed = 0, offset = 0;
  const std::int64_t* moved = nullptr;  ///< none: 0
  std::uint64_t threshold = 0;
};
/// y[i] = kept ? scale * x[i] : 0, mask[i] = kept ? 1 : 0 for n elements. There may be no mask, or
/// neither x nor y.
cudaError_t drop_elements(const Launch& launch, std::uint64_t n, const Draw& draw, float scale,
                          const Elements& x, const Elements& y, const Elements& mask);

/// Which pairs of a row of `dim` elements are turned, by cos and `direction` times sin.
struct Rotation {
  std::int64_t dim = 0, pairs = 0;
  bool halves = true;  ///< of elements j and j + pairs, otherwise 2 j and 2 j + 1
  float direction = 1;
};
/// y = x turned, of n elements; those behind the pairs stay. cos and sin have `pairs` elements for
/// each row.
cudaError_t rotate_pairs(const Launch& launch, std::uint64_t n, const Rotation& rotation,
                         const Elements& x, const Elements& cos, const Elements& sin,
                         const Elements& y);

/// An attention's o, its gradient and stats, by batch, head, query (and dim).
struct SinkShape {
  std::int64_t batch = 0, heads = 0, queries = 0, dim = 0;
};
/// d_sink[h] = - sum of exp(sink[h] - stats[b, h, i]) * (d_o[b, h, i] . o[b, h, i]), where stats is
/// not minus infinity, always in the same order.
cudaError_t sink_backward(const Launch& launch, const SinkShape& shape, const Elements& sink,
                          const Elements& o, const Elements& d_o, const Elements& stats,
                          const Elements& d_sink);

}  // namespace troupe::host::cuda::kernels
