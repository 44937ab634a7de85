#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/primitives_kernels.cuh"

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
template <class T>
struct Store {
  T* elements;
  std::int64_t capacity;

  __host__ __device__ void operator()(std::int64_t at, T element) const {
    if (at < capacity) elements[at] = element;
  }
};
template <class T>
auto store(T* elements, std::int64_t capacity) {
  return thrust::make_tabulate_output_iterator(Store<T>{elements, capacity});
}

__global__ void fill_tail_kernel(const std::int64_t* count, std::uint64_t capacity,
                                 std::int64_t* indices) {
  for (auto i = static_cast<std::uint64_t>(*count) + first_index(); i < capacity; i += index_step())
    indices[i] = -1;
}

/// The values of runs, or 1 for each element. Lengths are counted by the kernels that add values.
template <class V>
struct ValueOrOne {
  const V* values;

  __host__ __device__ V operator()(std::int64_t index) const {
    return values != nullptr ? values[index] : V(1);
  }
};

}  // namespace

template <class T>
cudaError_t select_nonzero(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                           std::int64_t capacity, std::int64_t* indices, std::int64_t* count) {
  return cub::DeviceSelect::FlaggedIf(temporary.memory, temporary.bytes,
                                      thrust::counting_iterator<std::int64_t>(0), x,
                                      store(indices, capacity), count, n, IsNonzero{}, stream);
}

cudaError_t fill_tail(const Launch& launch, const std::int64_t* count, std::int64_t capacity,
                      std::int64_t* indices) {
  if (capacity <= 0) return cudaSuccess;
  const auto room = static_cast<std::uint64_t>(capacity);
  return queue(launch, room, fill_tail_kernel, count, room, indices);
}

template <class T>
cudaError_t select_flagged(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                           const std::uint8_t* flags, std::int64_t capacity, T* selected,
                           std::int64_t* count) {
  return cub::DeviceSelect::Flagged(temporary.memory, temporary.bytes, x, flags,
                                    store(selected, capacity), count, n, stream);
}

template <class T>
cudaError_t partition_flagged(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                              const std::uint8_t* flags, T* y, std::int64_t* count) {
  return cub::DevicePartition::Flagged(temporary.memory, temporary.bytes, x, flags, y, count, n,
                                       stream);
}

template <class T>
cudaError_t unique(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                   std::int64_t capacity, T* selected, std::int64_t* count) {
  return cub::DeviceSelect::Unique(temporary.memory, temporary.bytes, x, store(selected, capacity),
                                   count, n, stream);
}

template <class K, class V>
cudaError_t reduce_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n, const K* keys,
                        const V* values, Combine<V> combine, const Runs<K, V>& runs) {
  return cub::DeviceReduce::ReduceByKey(
      temporary.memory, temporary.bytes, keys, store(runs.keys, runs.capacity),
      thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                      ValueOrOne<V>{values}),
      store(runs.results, runs.capacity), runs.count, combine, n, stream);
}

using I64 = std::int64_t;
using U8 = std::uint8_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

#define TROUPE_INSTANTIATE(T)                                                                    \
  template cudaError_t select_nonzero(Temporary&, cudaStream_t, I64, const T*, I64, I64*, I64*); \
  template cudaError_t unique(Temporary&, cudaStream_t, I64, const T*, I64, T*, I64*);           \
  template cudaError_t reduce_runs(Temporary&, cudaStream_t, I64, const T*, const U32*,          \
                                   Combine<U32>, const Runs<T, U32>&);                           \
  template cudaError_t reduce_runs(Temporary&, cudaStream_t, I64, const T*, const U64*,          \
                                   Combine<U64>, const Runs<T, U64>&);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)
#undef TROUPE_INSTANTIATE

#define TROUPE_INSTANTIATE(T)                                                                      \
  template cudaError_t select_flagged(Temporary&, cudaStream_t, I64, const T*, const U8*, I64, T*, \
                                      I64*);                                                       \
  template cudaError_t partition_flagged(Temporary&, cudaStream_t, I64, const T*, const U8*, T*,   \
                                         I64*);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
