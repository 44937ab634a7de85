#include <cub/device/device_radix_sort.cuh>

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/search.cuh"
#include "lib/sparse/transpose/kernels.cuh"

/// Elements are sorted by column; the sort is stable, so that those of a column stay in the order
/// of their rows.
namespace troupe::host::cuda::kernels {
namespace {

template <class I>
__global__ void number_kernel(std::uint64_t n, I* numbers) {
  for (auto i = first_index(); i < n; i += index_step()) numbers[i] = static_cast<I>(i);
}

/// The row of element k. (That of padding means nothing.)
template <class I>
__device__ std::int64_t row_of(const Structure<I>& from, std::int64_t k) {
  if (from.row != nullptr) return from.row[k];
  if (from.width > 0) return k / from.width;
  const std::int64_t in_group = from.slice_rows > 0 ? from.slice_rows : 1;
  const std::int64_t groups = (from.rows + in_group - 1) / in_group;
  const std::int64_t group = count_below(from.row_begin, groups + 1, k, true) - 1;
  return from.slice_rows > 0 ? group * in_group + (k - from.row_begin[group]) % in_group : group;
}

template <class I>
__global__ void find_rows_kernel(Structure<I> from, const I* place, I* row) {
  const auto n = static_cast<std::uint64_t>(from.nonzeros);
  for (auto k = first_index(); k < n; k += index_step())
    row[k] = static_cast<I>(row_of(from, place[k]));
}

template <class I>
__global__ void find_begins_kernel(std::uint64_t n, const I* ascending, std::int64_t count,
                                   I* begin) {
  for (auto i = first_index(); i < n; i += index_step())
    begin[i] = static_cast<I>(count_below(ascending, count, static_cast<std::int64_t>(i), false));
}

template <class I>
cudaError_t sort(void* memory, std::size_t& bytes, std::int64_t n, const I* keys, I* sorted_keys,
                 const I* values, I* sorted_values, cudaStream_t stream) {
  using Key = std::make_unsigned_t<I>;
  return cub::DeviceRadixSort::SortPairs(memory, bytes, reinterpret_cast<const Key*>(keys),
                                         reinterpret_cast<Key*>(sorted_keys), values, sorted_values,
                                         n, 0, 8 * sizeof(I), stream);
}

/// So many indices, in bytes; what follows them is aligned.
template <class I>
std::size_t part(std::int64_t indices) {
  constexpr std::size_t kAlignment = 256;
  return (static_cast<std::size_t>(indices) * sizeof(I) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

template <class I>
cudaError_t transposition_bytes(std::int64_t nonzeros, std::size_t* bytes) {
  I* const none = nullptr;
  *bytes = 0;
  const auto status = sort<I>(nullptr, *bytes, nonzeros, none, none, none, none, nullptr);
  *bytes += 2 * part<I>(nonzeros);
  return status;
}

template <class I>
cudaError_t find_begins(const Launch& launch, const I* ascending, std::int64_t count,
                        std::int64_t numbers, I* begin) {
  const auto n = static_cast<std::uint64_t>(numbers) + 1;
  return queue(launch, n, find_begins_kernel<I>, n, ascending, count, begin);
}

template <class I>
cudaError_t transpose(const Launch& launch, const Structure<I>& from,
                      const TransposedStructure<I>& to, void* memory, std::size_t bytes) {
  const auto n = static_cast<std::uint64_t>(from.nonzeros);
  const auto indices = part<I>(from.nonzeros);
  auto* const number = static_cast<I*>(memory);
  auto* const sorted_column = reinterpret_cast<I*>(static_cast<std::byte*>(memory) + indices);
  auto sort_bytes = bytes - 2 * indices;
  auto status = queue(launch, n, number_kernel<I>, n, number);
  if (status != cudaSuccess) return status;
  status = sort<I>(static_cast<std::byte*>(memory) + 2 * indices, sort_bytes, from.nonzeros,
                   from.column, sorted_column, number, to.place, launch.stream);
  if (status != cudaSuccess) return status;
  status = queue(launch, n, find_rows_kernel<I>, from, to.place, to.row);
  if (status != cudaSuccess) return status;
  return find_begins<I>(launch, sorted_column, from.nonzeros, from.columns, to.column_begin);
}

template cudaError_t transposition_bytes<std::int32_t>(std::int64_t, std::size_t*);
template cudaError_t transposition_bytes<std::int64_t>(std::int64_t, std::size_t*);
template cudaError_t find_begins(const Launch&, const std::int32_t*, std::int64_t, std::int64_t,
                                 std::int32_t*);
template cudaError_t find_begins(const Launch&, const std::int64_t*, std::int64_t, std::int64_t,
                                 std::int64_t*);
template cudaError_t transpose(const Launch&, const Structure<std::int32_t>&,
                               const TransposedStructure<std::int32_t>&, void*, std::size_t);
template cudaError_t transpose(const Launch&, const Structure<std::int64_t>&,
                               const TransposedStructure<std::int64_t>&, void*, std::size_t);

}  // namespace troupe::host::cuda::kernels
