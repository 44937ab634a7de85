#include "lib/primitives/differences/kernels.cuh"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/dispatch/dispatch_adjacent_difference.cuh>
#include <cuda/std/bit>

#include <type_traits>

namespace troupe::host::cuda::kernels {
namespace {

/// Where element i stands: CUB subtracts left neighbours, so for right ones the order is reversed.
struct Place {
  std::int64_t n;
  bool right;

  __host__ __device__ std::int64_t operator()(std::int64_t i) const {
    return right ? n - 1 - i : i;
  }
};
template <class W>
struct LoadWord {
  const W* x;
  Place place;

  __host__ __device__ W operator()(std::int64_t i) const { return x[place(i)]; }
};
template <class W>
struct StoreWord {
  W* y;
  Place place;

  __host__ __device__ void operator()(std::int64_t i, W difference) const {
    y[place(i)] = difference;
  }
};
/// What the words are is known when it runs: one set of kernels serves all types of a size.
template <class W>
struct Subtract {
  bool floating;

  __host__ __device__ W operator()(W a, W b) const {
    using Real = std::conditional_t<sizeof(W) == sizeof(float), float, double>;
    if (!floating) return a - b;
    return ::cuda::std::bit_cast<W>(::cuda::std::bit_cast<Real>(a) -
                                    ::cuda::std::bit_cast<Real>(b));
  }
};

}  // namespace

template <class W>
cudaError_t adjacent_difference(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                                const W* x, bool floating, bool right, W* y) {
  const Place place{n, right};
  const auto in = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                  LoadWord<W>{x, place});
  const auto out = thrust::make_tabulate_output_iterator(StoreWord<W>{y, place});
  // What cub::DeviceAdjacentDifference calls for one range: it keeps what a block's neighbour
  // overwrites. Here the ranges may be one, but are reached through two iterators.
  using Dispatch =
      cub::DispatchAdjacentDifference<std::remove_const_t<decltype(in)>,
                                      std::remove_const_t<decltype(out)>, Subtract<W>,
                                      std::uint64_t, cub::MayAlias::Yes, cub::ReadOption::Left>;
  return Dispatch::Dispatch(temporary.memory, temporary.bytes, in, out,
                            static_cast<std::uint64_t>(n), Subtract<W>{floating}, stream);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;

template cudaError_t adjacent_difference(Temporary&, cudaStream_t, std::int64_t, const U32*, bool,
                                         bool, U32*);
template cudaError_t adjacent_difference(Temporary&, cudaStream_t, std::int64_t, const U64*, bool,
                                         bool, U64*);

}  // namespace troupe::host::cuda::kernels
