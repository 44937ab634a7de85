#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/primitives/common/keys.cuh"

namespace troupe::host::cuda::kernels {
namespace {

/// A scan of a range. What is scanned are items: what load() makes of an element, combined by
/// join(), which is associative but for rounding.
template <class T>
struct PlainScan {
  using Value = T;
  using Item = T;

  const T* x;
  Scanned<T> how;

  __host__ __device__ Item neutral() const { return how.neutral; }
  __host__ __device__ Item load(std::int64_t i) const { return x[i]; }
  __host__ __device__ Item join(const Item& a, const Item& b) const { return how.combine(a, b); }
  /// What the scan gives at `own`, of which `before` are all items before it.
  __host__ __device__ T result(const Item& before, const Item& own) const {
    return with_initial(how.exclusive ? before : join(before, own));
  }
  __host__ __device__ T with_initial(T value) const {
    return how.combine(how.initial.device != nullptr ? *how.initial.device : how.initial.value,
                       value);
  }
};

/// Elements of which the last run is known.
template <class T>
struct Segment {
  T value;               ///< of that run
  std::uint32_t begins;  ///< whether it begins among these elements
};

/// A scan of each run of equal keys.
template <class T>
struct KeyedScan {
  using Value = T;
  using Item = Segment<T>;

  PlainScan<T> plain;
  Keys keys;

  __host__ __device__ Item neutral() const { return {plain.how.neutral, 0}; }
  __host__ __device__ Item load(std::int64_t i) const {
    return {plain.x[i], run_begins(keys, i) ? 1u : 0u};
  }
  __host__ __device__ Item join(const Item& a, const Item& b) const {
    if (b.begins != 0) return b;
    return {plain.join(a.value, b.value), a.begins};
  }
  __host__ __device__ T result(const Item& before, const Item& own) const {
    return plain.result(own.begins != 0 ? plain.how.neutral : before.value, own.value);
  }
};

template <class Scan>
struct Load {
  Scan scan;

  __host__ __device__ typename Scan::Item operator()(std::int64_t i) const { return scan.load(i); }
};
template <class Scan>
struct Join {
  Scan scan;

  template <class Item>
  __host__ __device__ Item operator()(const Item& a, const Item& b) const {
    return scan.join(a, b);
  }
};
/// Stores a result where all items before it are known. The element is read once more, by the
/// thread that is about to overwrite it if the scan is in place.
template <class Scan>
struct StoreResult {
  Scan scan;
  typename Scan::Value* y;

  __host__ __device__ void operator()(std::int64_t i, const typename Scan::Item& before) const {
    y[i] = scan.result(before, scan.load(i));
  }
};

template <class Scan>
__host__ __device__ auto items_of(const Scan& scan, std::int64_t first = 0) {
  return thrust::make_transform_iterator(thrust::counting_iterator<std::int64_t>(first),
                                         Load<Scan>{scan});
}

/// CUB's scan. Which parts of the range it joins first differs from run to run: for integers.
template <class Scan>
cudaError_t scan_at_once(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                         const Scan& scan, typename Scan::Value* y) {
  return cub::DeviceScan::ExclusiveScan(
      temporary.memory, temporary.bytes, items_of(scan),
      thrust::make_tabulate_output_iterator(StoreResult<Scan>{scan, y}), Join<Scan>{scan},
      scan.neutral(), n, stream);
}

// A scan for floating-point numbers, where the order of additions decides the bits. The range is
// cut into chunks whose number depends on n alone. One kernel joins the items of each chunk,
// another one joins the chunks before its own and scans that.

constexpr int kMostChunks = 1024;

template <class Scan>
struct Tile {
  using Item = typename Scan::Item;
  static constexpr int kItems = sizeof(Item) > 8 ? 4 : 8;
  static constexpr int kSize = kItems * kThreads;

  using Loading = cub::BlockLoad<Item, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Scanning = cub::BlockScan<Item, kThreads>;
  using Storing =
      cub::BlockStore<typename Scan::Value, kThreads, kItems, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  union Memory {
    typename Loading::TempStorage loading;
    typename Scanning::TempStorage scanning;
    typename Storing::TempStorage storing;
  };
};

/// Joins what the threads of a block have: `before` those before this one, and all.
template <class Scan>
__device__ typename Scan::Item join_threads(const Scan& scan, typename Tile<Scan>::Memory& memory,
                                            const typename Scan::Item& own,
                                            typename Scan::Item& before) {
  typename Scan::Item all;
  typename Tile<Scan>::Scanning(memory.scanning)
      .ExclusiveScan(own, before, scan.neutral(), Join<Scan>{scan}, all);
  __syncthreads();
  return all;
}

/// Loads up to a tile of items; as join_threads().
template <class Scan>
__device__ typename Scan::Item load_tile(const Scan& scan, typename Tile<Scan>::Memory& memory,
                                         std::int64_t first, int count,
                                         typename Scan::Item (&items)[Tile<Scan>::kItems],
                                         typename Scan::Item& before) {
  typename Tile<Scan>::Loading(memory.loading)
      .Load(items_of(scan, first), items, count, scan.neutral());
  __syncthreads();
  auto own = items[0];
  for (int k = 1; k < Tile<Scan>::kItems; ++k) own = scan.join(own, items[k]);
  return join_threads(scan, memory, own, before);
}

__device__ inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

template <class Scan>
__global__ void __launch_bounds__(kThreads)
    join_chunks_kernel(Scan scan, std::int64_t n, std::int64_t chunk, typename Scan::Item* joined) {
  __shared__ typename Tile<Scan>::Memory memory;
  const std::int64_t begin = blockIdx.x * chunk, end = smaller(n, begin + chunk);
  auto so_far = scan.neutral();
  for (auto first = begin; first < end; first += Tile<Scan>::kSize) {
    typename Scan::Item items[Tile<Scan>::kItems], before;
    const auto count = static_cast<int>(smaller(Tile<Scan>::kSize, end - first));
    so_far = scan.join(so_far, load_tile(scan, memory, first, count, items, before));
  }
  if (threadIdx.x == 0) joined[blockIdx.x] = so_far;
}

template <class Scan>
__global__ void __launch_bounds__(kThreads)
    scan_chunks_kernel(Scan scan, std::int64_t n, std::int64_t chunk,
                       const typename Scan::Item* joined, typename Scan::Value* y) {
  constexpr int kChunksOfThread = kMostChunks / kThreads;
  __shared__ typename Tile<Scan>::Memory memory;
  typename Scan::Item before;
  auto own = scan.neutral();
  for (int k = 0; k < kChunksOfThread; ++k) {
    const unsigned other = threadIdx.x * kChunksOfThread + static_cast<unsigned>(k);
    if (other < blockIdx.x) own = scan.join(own, joined[other]);
  }
  auto so_far = join_threads(scan, memory, own, before);
  const std::int64_t begin = blockIdx.x * chunk, end = smaller(n, begin + chunk);
  for (auto first = begin; first < end; first += Tile<Scan>::kSize) {
    typename Scan::Item items[Tile<Scan>::kItems];
    typename Scan::Value results[Tile<Scan>::kItems];
    const auto count = static_cast<int>(smaller(Tile<Scan>::kSize, end - first));
    const auto tile = load_tile(scan, memory, first, count, items, before);
    auto prefix = scan.join(so_far, before);
    for (int k = 0; k < Tile<Scan>::kItems; ++k) {
      results[k] = scan.result(prefix, items[k]);
      prefix = scan.join(prefix, items[k]);
    }
    so_far = scan.join(so_far, tile);
    typename Tile<Scan>::Storing(memory.storing).Store(y + first, results, count);
    __syncthreads();
  }
}

template <class... Parameters, class... Arguments>
cudaError_t queue_blocks(cudaStream_t stream, std::int64_t blocks, void (*kernel)(Parameters...),
                         Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

template <class Scan>
cudaError_t scan_in_order(Temporary& temporary, cudaStream_t stream, std::int64_t n,
                          const Scan& scan, typename Scan::Value* y) {
  using Item = typename Scan::Item;
  if (temporary.memory == nullptr) {
    temporary.bytes = kMostChunks * sizeof(Item);
    return cudaSuccess;
  }
  constexpr std::int64_t kSize = Tile<Scan>::kSize;
  const auto tiles = (n + kSize - 1) / kSize;
  const auto chunk = (tiles + kMostChunks - 1) / kMostChunks * kSize;
  const auto chunks = (n + chunk - 1) / chunk;
  auto* const joined = static_cast<Item*>(temporary.memory);
  if (chunks > 1) {
    const auto status =
        queue_blocks(stream, chunks - 1, join_chunks_kernel<Scan>, scan, n, chunk, joined);
    if (status != cudaSuccess) return status;
  }
  return queue_blocks(stream, chunks, scan_chunks_kernel<Scan>, scan, n, chunk, joined, y);
}

template <class Scan>
cudaError_t scan_items(Temporary& temporary, cudaStream_t stream, std::int64_t n, const Scan& scan,
                       typename Scan::Value* y) {
  if constexpr (std::is_floating_point_v<typename Scan::Value>) {
    return scan_in_order(temporary, stream, n, scan, y);
  } else {
    return scan_at_once(temporary, stream, n, scan, y);
  }
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
cudaError_t scan(Temporary& temporary, cudaStream_t stream, std::int64_t n, const T* x,
                 const Scanned<T>& how, T* y) {
  return scan_items(temporary, stream, n, PlainScan<T>{x, how}, y);
}

template <class T>
cudaError_t scan_by_key(Temporary& temporary, cudaStream_t stream, std::int64_t n, const Keys& keys,
                        const T* x, const Scanned<T>& how, T* y) {
  return scan_items(temporary, stream, n, KeyedScan<T>{{x, how}, keys}, y);
}

using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

template cudaError_t inclusive_sum(Temporary&, cudaStream_t, I64, const U32*, U32*);
template cudaError_t inclusive_sum(Temporary&, cudaStream_t, I64, const U64*, U64*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, I64, const U32*, U32*);
template cudaError_t exclusive_sum(Temporary&, cudaStream_t, I64, const U64*, U64*);

#define TROUPE_INSTANTIATE(T)                                                                \
  template cudaError_t scan(Temporary&, cudaStream_t, I64, const T*, const Scanned<T>&, T*); \
  template cudaError_t scan_by_key(Temporary&, cudaStream_t, I64, const Keys&, const T*,     \
                                   const Scanned<T>&, T*);
TROUPE_INSTANTIATE(U32)
TROUPE_INSTANTIATE(U64)
TROUPE_INSTANTIATE(float)
TROUPE_INSTANTIATE(double)
#undef TROUPE_INSTANTIATE

}  // namespace troupe::host::cuda::kernels
