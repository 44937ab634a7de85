#include "lib/sparse/formats/kernels.cuh"

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/search.cuh"
#include "lib/sparse/formats/repeated.cuh"

namespace troupe::host::cuda::kernels {
namespace {

constexpr unsigned kLanes = 32, kAllLanes = 0xffff'ffffu;

template <class I>
__global__ void mark_blocks_kernel(BlockedOrder<I> elements, std::int64_t* starts) {
  const auto n = static_cast<std::uint64_t>(elements.count);
  for (auto k = first_index(); k <= n; k += index_step())
    starts[k] = k < n && (k == 0 || elements.key[k] != elements.key[k - 1]) ? 1 : 0;
}

template <class I>
__global__ void begin_block_rows_kernel(BlockedOrder<I> elements, const std::int64_t* before,
                                        std::int64_t block_rows, I* row_begin) {
  const auto n = static_cast<std::uint64_t>(block_rows);
  for (auto i = first_index(); i <= n; i += index_step()) {
    const auto key = static_cast<std::int64_t>(i << elements.column_bits);
    const auto at = i < n ? count_below(elements.key, elements.count, key, false) : elements.count;
    row_begin[i] = static_cast<I>(before[at]);
  }
}

/// Where element (i, j) of a block is in it.
__device__ std::int64_t place_in(const BlockShape& shape, std::int64_t i, std::int64_t j) {
  return shape.by_row ? i * shape.block + j : j * shape.block + i;
}

template <class T>
__global__ void clear_blocks_kernel(const std::int64_t* blocks, std::int64_t capacity,
                                    std::int64_t size, T* value) {
  if (*blocks > capacity) return;
  const auto n = static_cast<std::uint64_t>(*blocks * size);
  for (auto k = first_index(); k < n; k += index_step()) value[k] = T{};
}
template <class T, class I>
__global__ void fill_blocks_kernel(GivenRows<T, I> from, BlockedOrder<I> elements,
                                   const std::int64_t* before, BlockShape shape,
                                   BlockTarget<T, I> to) {
  if (before[elements.count] > to.capacity) return;
  const auto n = static_cast<std::uint64_t>(elements.count);
  for (auto k = first_index(); k < n; k += index_step()) {
    const std::int64_t place = elements.place[k];
    const std::int64_t number = before[k + 1] - 1;
    const std::int64_t row = row_of(from.row_begin, from.rows, place);
    if (row >= from.rows) continue;  // all is 0 where a command is prepared
    const std::int64_t column = from.column[place];
    T sum;
    if (sum_at_place(from, elements, k, row, &sum))
      to.value[number * shape.block * shape.block +
               place_in(shape, row % shape.block, column % shape.block)] = sum;
    if (before[k] == number) to.column[number] = static_cast<I>(column / shape.block);
  }
}

template <class T, class I>
__global__ void begin_rows_kernel(GivenBlocks<T, I> from, std::int64_t block, I* row_begin) {
  const auto n = static_cast<std::uint64_t>(from.block_rows * block);
  for (auto row = first_index(); row <= n; row += index_step()) {
    const std::int64_t block_row = static_cast<std::int64_t>(row) / block;
    const std::int64_t i = static_cast<std::int64_t>(row) % block;
    const std::int64_t begin = from.row_begin[block_row];
    const std::int64_t count = i > 0 ? from.row_begin[block_row + 1] - begin : 0;
    row_begin[row] = static_cast<I>((begin * block + i * count) * block);
  }
}
template <class T, class I>
__global__ void expand_blocks_kernel(GivenBlocks<T, I> from, BlockShape shape, I* column,
                                     T* value) {
  const std::int64_t block = shape.block, size = block * block;
  const auto n = static_cast<std::uint64_t>(from.blocks * size);
  for (auto k = first_index(); k < n; k += index_step()) {
    const std::int64_t number = static_cast<std::int64_t>(k) / size;
    const std::int64_t row = row_of(from.row_begin, from.block_rows, number);
    if (row >= from.block_rows) continue;  // all is 0 where a command is prepared
    const std::int64_t inside = static_cast<std::int64_t>(k) % size;
    const std::int64_t i = shape.by_row ? inside / block : inside % block;
    const std::int64_t j = shape.by_row ? inside % block : inside / block;
    const std::int64_t begin = from.row_begin[row];
    const std::int64_t count = from.row_begin[row + 1] - begin;
    const std::int64_t at = (begin * block + i * count + number - begin) * block + j;
    column[at] = static_cast<I>(from.column[number] * block + j);
    value[at] = from.value[k];
  }
}

/// A warp for each slice.
template <class I>
__global__ void measure_slices_kernel(std::int64_t rows, const I* row_begin,
                                      std::int64_t slice_rows, std::int64_t slices,
                                      std::int64_t* entries) {
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kLanes);
  const auto n = static_cast<std::uint64_t>(slices);
  for (auto task = first_index() / kLanes; task <= n; task += index_step() / kLanes) {
    const std::int64_t first = static_cast<std::int64_t>(task) * slice_rows;
    const std::int64_t end = task < n && first + slice_rows < rows ? first + slice_rows : rows;
    std::int64_t longest = 0;
    for (std::int64_t row = first + lane; row < end; row += kLanes) {
      const std::int64_t length = row_begin[row + 1] - row_begin[row];
      longest = longest < length ? length : longest;
    }
    for (unsigned step = kLanes / 2; step > 0; step /= 2) {
      const std::int64_t other = __shfl_xor_sync(kAllLanes, longest, step);
      longest = longest < other ? other : longest;
    }
    if (lane == 0) entries[task] = longest * slice_rows;
  }
}

/// A thread for each row, those of the last slice that are padding included.
template <class T, class I>
__global__ void fill_slices_kernel(GivenRows<T, I> from, SliceTarget<T, I> to) {
  if (to.begin[to.slices] > to.capacity) return;
  const auto rows = static_cast<std::uint64_t>(to.slices * to.slice_rows);
  for (auto r = first_index(); r < rows; r += index_step()) {
    const auto row = static_cast<std::int64_t>(r);
    const std::int64_t slice = row / to.slice_rows;
    const std::int64_t end = to.begin[slice + 1];
    const bool given = row < from.rows;
    std::int64_t k = given ? from.row_begin[row] : 0;
    const std::int64_t last = given ? from.row_begin[row + 1] : 0;
    for (std::int64_t at = to.begin[slice] + row % to.slice_rows; at < end;
         at += to.slice_rows, ++k) {
      to.column[at] = k < last ? from.column[k] : I(-1);
      to.value[at] = k < last ? from.value[k] : T{};
    }
  }
}

template <class I>
cudaError_t load_indices() {
  return load_all(mark_blocks_kernel<I>, begin_block_rows_kernel<I>, measure_slices_kernel<I>);
}
template <class T, class I>
cudaError_t load_indexed() {
  return load_all(fill_blocks_kernel<T, I>, begin_rows_kernel<T, I>, expand_blocks_kernel<T, I>,
                  fill_slices_kernel<T, I>);
}
template <class T>
cudaError_t load_typed() {
  auto status = load(clear_blocks_kernel<T>);
  if (status == cudaSuccess) status = load_indexed<T, std::int32_t>();
  return status == cudaSuccess ? load_indexed<T, std::int64_t>() : status;
}

std::uint64_t items(std::int64_t count) {
  return static_cast<std::uint64_t>(count);
}

}  // namespace

cudaError_t preload_formats() {
  for (const auto load : {load_indices<std::int32_t>, load_indices<std::int64_t>, load_typed<float>,
                          load_typed<double>, load_typed<float2>, load_typed<double2>}) {
    if (const auto status = load(); status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

template <class I>
cudaError_t mark_blocks(const Launch& launch, const BlockedOrder<I>& elements,
                        std::int64_t* starts) {
  return queue(launch, items(elements.count + 1), mark_blocks_kernel<I>, elements, starts);
}

template <class I>
cudaError_t begin_block_rows(const Launch& launch, const BlockedOrder<I>& elements,
                             const std::int64_t* before, std::int64_t block_rows, I* row_begin) {
  return queue(launch, items(block_rows + 1), begin_block_rows_kernel<I>, elements, before,
               block_rows, row_begin);
}

template <class T, class I>
cudaError_t fill_blocks(const Launch& launch, const GivenRows<T, I>& from,
                        const BlockedOrder<I>& elements, const std::int64_t* before,
                        const BlockShape& shape, const BlockTarget<T, I>& to) {
  const auto size = shape.block * shape.block;
  const auto status = queue(launch, items(to.capacity * size), clear_blocks_kernel<T>,
                            before + elements.count, to.capacity, size, to.value);
  if (status != cudaSuccess) return status;
  return queue(launch, items(elements.count), fill_blocks_kernel<T, I>, from, elements, before,
               shape, to);
}

template <class T, class I>
cudaError_t expand_blocks(const Launch& launch, const GivenBlocks<T, I>& from,
                          const BlockShape& shape, I* row_begin, I* column, T* value) {
  const auto status = queue(launch, items(from.block_rows * shape.block + 1),
                            begin_rows_kernel<T, I>, from, shape.block, row_begin);
  const auto elements = items(from.blocks * shape.block * shape.block);
  if (status != cudaSuccess || elements == 0) return status;
  return queue(launch, elements, expand_blocks_kernel<T, I>, from, shape, column, value);
}

template <class I>
cudaError_t measure_slices(const Launch& launch, std::int64_t rows, const I* row_begin,
                           std::int64_t slice_rows, std::int64_t slices, std::int64_t* entries) {
  return queue(launch, items(slices + 1) * kLanes, measure_slices_kernel<I>, rows, row_begin,
               slice_rows, slices, entries);
}

template <class T, class I>
cudaError_t fill_slices(const Launch& launch, const GivenRows<T, I>& from,
                        const SliceTarget<T, I>& to) {
  const auto rows = items(to.slices * to.slice_rows);
  return rows > 0 ? queue(launch, rows, fill_slices_kernel<T, I>, from, to) : cudaSuccess;
}

#define TROUPE_INDEXED(T, I)                                                                      \
  template cudaError_t fill_blocks(const Launch&, const GivenRows<T, I>&, const BlockedOrder<I>&, \
                                   const std::int64_t*, const BlockShape&,                        \
                                   const BlockTarget<T, I>&);                                     \
  template cudaError_t expand_blocks(const Launch&, const GivenBlocks<T, I>&, const BlockShape&,  \
                                     I*, I*, T*);                                                 \
  template cudaError_t fill_slices(const Launch&, const GivenRows<T, I>&, const SliceTarget<T, I>&);
#define TROUPE_INDICES(I)                                                                  \
  template cudaError_t mark_blocks(const Launch&, const BlockedOrder<I>&, std::int64_t*);  \
  template cudaError_t begin_block_rows(const Launch&, const BlockedOrder<I>&,             \
                                        const std::int64_t*, std::int64_t, I*);            \
  template cudaError_t measure_slices(const Launch&, std::int64_t, const I*, std::int64_t, \
                                      std::int64_t, std::int64_t*);                        \
  TROUPE_INDEXED(float, I)                                                                 \
  TROUPE_INDEXED(double, I)                                                                \
  TROUPE_INDEXED(float2, I)                                                                \
  TROUPE_INDEXED(double2, I)
TROUPE_INDICES(std::int32_t)
TROUPE_INDICES(std::int64_t)
#undef TROUPE_INDICES
#undef TROUPE_INDEXED

}  // namespace troupe::host::cuda::kernels
