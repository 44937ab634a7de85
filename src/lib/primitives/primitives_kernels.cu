#include "lib/primitives/primitives_kernels.cuh"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include "device_host/engine/cuda/launch.cuh"

// CUB counts with 64 bits where it is given a count of 64 bits.
static_assert(CUB_MAJOR_VERSION >= 3, "the selection of older versions counts with 32 bits");

namespace troupe::host::cuda::kernels {
namespace {

struct IsNonzero {
  template <class T>
  __host__ __device__ bool operator()(T value) const {
    return value != T(0);
  }
};

/// Stores what there is room for.
struct Store {
  std::int64_t* indices;
  std::int64_t capacity;

  __host__ __device__ void operator()(std::int64_t at, std::int64_t index) const {
    if (at < capacity) indices[at] = index;
  }
};

__global__ void fill_tail_kernel(const std::int64_t* count, std::uint64_t capacity,
                                 std::int64_t* indices) {
  for (auto i = static_cast<std::uint64_t>(*count) + first_index(); i < capacity; i += index_step())
    indices[i] = -1;
}

}  // namespace

int cub_version() {
  return CUB_VERSION;
}

template <class T>
cudaError_t inclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y) {
  return cub::DeviceScan::InclusiveSum(temporary.memory, temporary.bytes, x, y, n, stream);
}

template <class T>
cudaError_t exclusive_sum(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                          T* y) {
  return cub::DeviceScan::ExclusiveSum(temporary.memory, temporary.bytes, x, y, n, stream);
}

template <class T>
cudaError_t select_nonzero(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                           std::int64_t capacity, std::int64_t* indices, std::int64_t* count) {
  return cub::DeviceSelect::FlaggedIf(
      temporary.memory, temporary.bytes, thrust::counting_iterator<std::int64_t>(0), x,
      thrust::make_tabulate_output_iterator(Store{indices, capacity}), count, n, IsNonzero{},
      stream);
}

cudaError_t fill_tail(const Launch& launch, const std::int64_t* count, std::int64_t capacity,
                      std::int64_t* indices) {
  if (capacity <= 0) return cudaSuccess;
  const auto room = static_cast<std::uint64_t>(capacity);
  return queue(launch, room, fill_tail_kernel, count, room, indices);
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;

template cudaError_t inclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U32*, U32*);
template cudaError_t inclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U64*, U64*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U32*, U32*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, std::int64_t, const U64*, U64*);

template cudaError_t select_nonzero(Temporary&, cudaStream_t, std::int64_t, const U32*,
                                    std::int64_t, std::int64_t*, std::int64_t*);
template cudaError_t select_nonzero(Temporary&, cudaStream_t, std::int64_t, const U64*,
                                    std::int64_t, std::int64_t*, std::int64_t*);
template cudaError_t select_nonzero(Temporary&, cudaStream_t, std::int64_t, const float*,
                                    std::int64_t, std::int64_t*, std::int64_t*);
template cudaError_t select_nonzero(Temporary&, cudaStream_t, std::int64_t, const double*,
                                    std::int64_t, std::int64_t*, std::int64_t*);

}  // namespace troupe::host::cuda::kernels
