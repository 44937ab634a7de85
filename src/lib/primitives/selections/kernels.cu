#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/common/words.cuh"

// CUB counts with 64 bits where it is given a count of 64 bits.
static_assert(CUB_MAJOR_VERSION >= 3, "the selection of older versions counts with 32 bits");

namespace troupe::host::cuda::kernels {
namespace {

/// -0 is zero, a NaN is not.
template <class U>
struct IsNonzero {
  Magnitude<U> magnitude;

  __host__ __device__ bool operator()(U word) const { return magnitude(word) != 0; }
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

template <class U>
cudaError_t select_nonzero(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                           const Meaning& meaning, std::int64_t capacity, std::int64_t* indices,
                           std::int64_t* count) {
  return cub::DeviceSelect::FlaggedIf(
      temporary.memory, temporary.bytes, thrust::counting_iterator<std::int64_t>(0), x,
      store(indices, capacity), count, n, IsNonzero<U>{Magnitude<U>(meaning)}, stream);
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

/// As cub::DeviceSelect::Unique has it, but with an operator of its own.
template <class U>
cudaError_t unique(Temporary& temporary, cudaStream_t stream, std::int64_t n, const U* x,
                   const Meaning& meaning, std::int64_t capacity, U* selected,
                   std::int64_t* count) {
  const auto out = store(selected, capacity);
  using Dispatch =
      cub::DispatchSelectIf<const U*, cub::NullType*, std::remove_const_t<decltype(out)>,
                            std::int64_t*, cub::NullType, Equal<U>, std::int64_t,
                            cub::SelectImpl::Select>;
  return Dispatch::Dispatch(temporary.memory, temporary.bytes, x, nullptr, out, count,
                            cub::NullType{}, Equal<U>(meaning), n, stream);
}

/// As cub::DeviceReduce::ReduceByKey has it, but with an operator of its own.
template <class K, class V>
cudaError_t reduce_runs(Temporary& temporary, cudaStream_t stream, std::int64_t n, const K* keys,
                        const Meaning& meaning, const V* values, Combine<V> combine,
                        const Runs<K, V>& runs) {
  using Offset = unsigned long long;
  const auto unique_keys = store(runs.keys, runs.capacity);
  const auto results = store(runs.results, runs.capacity);
  const auto every = thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(0),
                                                     ValueOrOne<V>{values});
  using Dispatch = cub::DispatchReduceByKey<
      const K*, std::remove_const_t<decltype(unique_keys)>, std::remove_const_t<decltype(every)>,
      std::remove_const_t<decltype(results)>, std::int64_t*, Equal<K>, Combine<V>, Offset>;
  return Dispatch::Dispatch(temporary.memory, temporary.bytes, keys, unique_keys, every, results,
                            runs.count, Equal<K>(meaning), combine, static_cast<Offset>(n), stream);
}

using I64 = std::int64_t;
using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

#define TROUPE_INSTANTIATE(U)                                                                      \
  template cudaError_t select_nonzero(Temporary&, cudaStream_t, I64, const U*, const Meaning&,     \
                                      I64, I64*, I64*);                                            \
  template cudaError_t select_flagged(Temporary&, cudaStream_t, I64, const U*, const U8*, I64, U*, \
                                      I64*);                                                       \
  template cudaError_t partition_flagged(Temporary&, cudaStream_t, I64, const U*, const U8*, U*,   \
                                         I64*);                                                    \
  template cudaError_t unique(Temporary&, cudaStream_t, I64, const U*, const Meaning&, I64, U*,    \
                              I64*);                                                               \
  template cudaError_t reduce_runs(Temporary&, cudaStream_t, I64, const U*, const Meaning&,        \
                                   const U64*, Combine<U64>, const Runs<U, U64>&);
TROUPE_INSTANTIATE(U16)
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
#undef TROUPE_INSTANTIATE

#define TROUPE_INSTANTIATE(K)                                                               \
  template cudaError_t reduce_runs(Temporary&, cudaStream_t, I64, const K*, const Meaning&, \
                                   const U32*, Combine<U32>, const Runs<K, U32>&);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
