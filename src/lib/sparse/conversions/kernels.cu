#include "lib/sparse/conversions/kernels.cuh"

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/numbers.cuh"
#include "lib/sparse/common/search.cuh"

namespace troupe::host::cuda::kernels {
namespace {

constexpr unsigned kLanes = 32, kAllLanes = 0xffff'ffffu;

template <class T>
__global__ void clear_kernel(DenseLines<T> dense) {
  const bool along = dense.element_step == 1;
  const std::int64_t inner = along ? dense.length : dense.lines;
  const std::int64_t step = along ? dense.line_step : dense.element_step;
  const auto n = static_cast<std::uint64_t>(dense.lines * dense.length);
  for (auto k = first_index(); k < n; k += index_step()) {
    const auto at = static_cast<std::int64_t>(k);
    dense.element[at / inner * step + at % inner] = T{};
  }
}

/// Where a line of elements begins; those of coordinates ascend.
template <class T, class I>
__device__ std::int64_t begin_of(const SparseLines<T, I>& from, std::uint64_t line) {
  return from.begin != nullptr
             ? static_cast<std::int64_t>(from.begin[line])
             : count_below(from.line, from.count, static_cast<std::int64_t>(line), false);
}

/// A warp for each line, 32 elements at a time. Of those at one place the first lane adds up all,
/// in their order.
template <class T, class I>
__global__ void store_lines_kernel(SparseLines<T, I> from, DenseLines<T> dense) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  for (auto task = first_index() / kLanes; task < lines; task += index_step() / kLanes) {
    T* const line = dense.element + static_cast<std::int64_t>(task) * dense.line_step;
    const std::int64_t end = begin_of(from, task + 1);
    for (std::int64_t first = begin_of(from, task); first < end; first += kLanes) {
      const std::int64_t k = first + lane;
      const bool there = k < end;
      const auto index = there ? static_cast<long long>(from.index[k]) : -1;
      const unsigned same = __match_any_sync(kAllLanes, index);
      if (there && __ffs(static_cast<int>(same)) == static_cast<int>(lane) + 1) {
        T sum = line[index * dense.element_step];
        for (unsigned rest = same; rest != 0; rest &= rest - 1)
          sum = add(sum, from.value[first + __ffs(static_cast<int>(rest)) - 1]);
        line[index * dense.element_step] = sum;
      }
      __syncwarp();
    }
  }
}
/// A thread for each row and each column of its blocks.
template <class T, class I>
__global__ void store_blocks_kernel(BlockedElements<T, I> from, DenseLines<T> dense) {
  const auto n = static_cast<std::uint64_t>(from.rows * from.block);
  for (auto k = first_index(); k < n; k += index_step()) {
    const std::int64_t row = static_cast<std::int64_t>(k) / from.block;
    const std::int64_t inside = static_cast<std::int64_t>(k) % from.block;
    for (std::int64_t i = 0; i < from.width; ++i) {
      const std::int64_t block = from.column[row / from.block * from.width + i];
      if (block < 0) continue;  // padding
      const std::int64_t column = block * from.block + inside;
      T& element = dense.element[row * dense.line_step + column * dense.element_step];
      element = add(element, from.value[(row * from.width + i) * from.block + inside]);
    }
  }
}

/// Where lines lie side by side, a thread for each reads as fast as a warp for each does where
/// elements do. But a few lines would not fill the device.
constexpr std::int64_t kManyLines = 8192;
template <class T>
bool one_thread_each(const DenseLines<const T>& dense) {
  return dense.element_step != 1 && dense.lines >= kManyLines;
}

template <class T>
__global__ void count_by_thread_kernel(DenseLines<const T> dense, std::int64_t* counts) {
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  for (auto i = first_index(); i < lines; i += index_step()) {
    const T* const line = dense.element + static_cast<std::int64_t>(i) * dense.line_step;
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < dense.length; ++j)
      count += is_zero(line[j * dense.element_step]) ? 0 : 1;
    counts[i] = count;
  }
}
template <class T>
__global__ void count_by_warp_kernel(DenseLines<const T> dense, std::int64_t* counts) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  for (auto i = first_index() / kLanes; i < lines; i += index_step() / kLanes) {
    const T* const line = dense.element + static_cast<std::int64_t>(i) * dense.line_step;
    std::int64_t count = 0;
    for (std::int64_t first = 0; first < dense.length; first += kLanes) {
      const std::int64_t j = first + lane;
      const bool nonzero = j < dense.length && !is_zero(line[j * dense.element_step]);
      count += __popc(__ballot_sync(kAllLanes, nonzero));
    }
    if (lane == 0) counts[i] = count;
  }
}

template <class T, class I>
__device__ void store_nonzero(const NonzeroTarget<T, I>& target, std::int64_t k, std::uint64_t line,
                              std::int64_t at, T value) {
  if (target.line != nullptr) target.line[k] = static_cast<I>(line);
  target.index[k] = static_cast<I>(at);
  target.value[k] = value;
}
template <class T, class I>
__global__ void store_by_thread_kernel(DenseLines<const T> dense, NonzeroTarget<T, I> target) {
  if (target.begin[dense.lines] > target.capacity) return;
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  for (auto i = first_index(); i < lines; i += index_step()) {
    const T* const line = dense.element + static_cast<std::int64_t>(i) * dense.line_step;
    std::int64_t k = target.begin[i];
    for (std::int64_t j = 0; j < dense.length; ++j) {
      const T value = line[j * dense.element_step];
      if (!is_zero(value)) store_nonzero(target, k++, i, j, value);
    }
  }
}
template <class T, class I>
__global__ void store_by_warp_kernel(DenseLines<const T> dense, NonzeroTarget<T, I> target) {
  if (target.begin[dense.lines] > target.capacity) return;
  const unsigned lane = threadIdx.x % kLanes;
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  for (auto i = first_index() / kLanes; i < lines; i += index_step() / kLanes) {
    const T* const line = dense.element + static_cast<std::int64_t>(i) * dense.line_step;
    std::int64_t k = target.begin[i];
    for (std::int64_t first = 0; first < dense.length; first += kLanes) {
      const std::int64_t j = first + lane;
      const T value = j < dense.length ? line[j * dense.element_step] : T{};
      const bool nonzero = !is_zero(value);
      const unsigned mask = __ballot_sync(kAllLanes, nonzero);
      if (nonzero) store_nonzero(target, k + __popc(mask & ((1u << lane) - 1)), i, j, value);
      k += __popc(mask);
    }
  }
}

/// Launches a kernel by thread or by warp, whichever suits the lines.
template <class T, class... Parameters, class... Arguments>
cudaError_t queue_lines(const Launch& launch, const DenseLines<const T>& dense,
                        void (*by_thread)(Parameters...), void (*by_warp)(Parameters...),
                        Arguments... arguments) {
  const auto lines = static_cast<std::uint64_t>(dense.lines);
  if (lines == 0) return cudaSuccess;
  return one_thread_each(dense) ? queue(launch, lines, by_thread, dense, arguments...)
                                : queue(launch, lines * kLanes, by_warp, dense, arguments...);
}

template <class T, class I>
cudaError_t load_indexed() {
  return load_all(store_lines_kernel<T, I>, store_blocks_kernel<T, I>, store_by_thread_kernel<T, I>,
                  store_by_warp_kernel<T, I>);
}
template <class T>
cudaError_t load_typed() {
  auto status = load_all(clear_kernel<T>, count_by_thread_kernel<T>, count_by_warp_kernel<T>);
  if (status == cudaSuccess) status = load_indexed<T, std::int32_t>();
  return status == cudaSuccess ? load_indexed<T, std::int64_t>() : status;
}

}  // namespace

cudaError_t preload_conversions() {
  for (const auto load :
       {load_typed<float>, load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class T>
cudaError_t clear(const Launch& launch, const DenseLines<T>& dense) {
  const auto n = static_cast<std::uint64_t>(dense.lines * dense.length);
  return n > 0 ? queue(launch, n, clear_kernel<T>, dense) : cudaSuccess;
}

template <class T, class I>
cudaError_t store_elements(const Launch& launch, const SparseLines<T, I>& elements,
                           const DenseLines<T>& dense) {
  if (dense.lines == 0 || dense.length == 0) return cudaSuccess;
  return queue(launch, static_cast<std::uint64_t>(dense.lines) * kLanes, store_lines_kernel<T, I>,
               elements, dense);
}

template <class T, class I>
cudaError_t store_blocks(const Launch& launch, const BlockedElements<T, I>& blocks,
                         const DenseLines<T>& dense) {
  const auto n = static_cast<std::uint64_t>(blocks.width > 0 ? blocks.rows * blocks.block : 0);
  return n > 0 ? queue(launch, n, store_blocks_kernel<T, I>, blocks, dense) : cudaSuccess;
}

template <class T>
cudaError_t count_nonzeros(const Launch& launch, const DenseLines<const T>& dense,
                           std::int64_t* counts) {
  return queue_lines(launch, dense, count_by_thread_kernel<T>, count_by_warp_kernel<T>, counts);
}

template <class T, class I>
cudaError_t store_nonzeros(const Launch& launch, const DenseLines<const T>& dense,
                           const NonzeroTarget<T, I>& target) {
  return queue_lines(launch, dense, store_by_thread_kernel<T, I>, store_by_warp_kernel<T, I>,
                     target);
}

#define TROUPE_INDEXED(T, I)                                                     \
  template cudaError_t store_elements(const Launch&, const SparseLines<T, I>&,   \
                                      const DenseLines<T>&);                     \
  template cudaError_t store_blocks(const Launch&, const BlockedElements<T, I>&, \
                                    const DenseLines<T>&);                       \
  template cudaError_t store_nonzeros(const Launch&, const DenseLines<const T>&, \
                                      const NonzeroTarget<T, I>&);
#define TROUPE_TYPED(T)                                                             \
  template cudaError_t clear(const Launch&, const DenseLines<T>&);                  \
  template cudaError_t count_nonzeros<T>(const Launch&, const DenseLines<const T>&, \
                                         std::int64_t*);                            \
  TROUPE_INDEXED(T, std::int32_t)                                                   \
  TROUPE_INDEXED(T, std::int64_t)
TROUPE_TYPED(float)
TROUPE_TYPED(double)
TROUPE_TYPED(float2)
TROUPE_TYPED(double2)
#undef TROUPE_TYPED
#undef TROUPE_INDEXED

}  // namespace troupe::host::cuda::kernels
