#include <cub/device/device_radix_sort.cuh>

#include <type_traits>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/searches.cuh"
#include "lib/sparse/transposition_kernels.cuh"

/// Elements are sorted by column; the sort is stable, so that those of a column stay in the order
/// of their rows.
namespace troupe::host::cuda::kernels {
namespace {

template <class I>
__global__ void number_kernel(std::uint64_t n, I* numbers) {
  for (auto i = first_index(); i < n; i += index_step()) numbers[i] = static_cast<I>(i);
}

template <class I>
__global__ void find_rows_kernel(Structure<I> from, const I* place, I* row) {
  const auto n = static_cast<std::uint64_t>(from.nonzeros);
  for (auto k = first_index(); k < n; k += index_step())
    row[k] = static_cast<I>(count_below(from.row_begin, from.rows + 1, place[k], true) - 1);
}

template <class I>
__global__ void find_columns_kernel(Structure<I> from, const I* sorted_column, I* column_begin) {
  const auto n = static_cast<std::uint64_t>(from.columns) + 1;
  for (auto j = first_index(); j < n; j += index_step()) {
    column_begin[j] = static_cast<I>(
        count_below(sorted_column, from.nonzeros, static_cast<std::int64_t>(j), false));
  }
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
  return queue(launch, static_cast<std::uint64_t>(from.columns) + 1, find_columns_kernel<I>, from,
               sorted_column, to.column_begin);
}

template cudaError_t transposition_bytes<std::int32_t>(std::int64_t, std::size_t*);
template cudaError_t transposition_bytes<std::int64_t>(std::int64_t, std::size_t*);
template cudaError_t transpose(const Launch&, const Structure<std::int32_t>&,
                               const TransposedStructure<std::int32_t>&, void*, std::size_t);
template cudaError_t transpose(const Launch&, const Structure<std::int64_t>&,
                               const TransposedStructure<std::int64_t>&, void*, std::size_t);

}  // namespace troupe::host::cuda::kernels
