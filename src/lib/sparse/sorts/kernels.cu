#include <cub/device/device_radix_sort.cuh>

#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/search.cuh"
#include "lib/sparse/sorts/kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using Key = std::uint64_t;

template <class I>
__global__ void find_rows_kernel(std::uint64_t n, std::int64_t rows, const I* row_begin, I* row) {
  for (auto k = first_index(); k < n; k += index_step())
    row[k] = static_cast<I>(row_of(row_begin, rows, static_cast<std::int64_t>(k)));
}

template <class I>
__global__ void find_row_begins_kernel(std::uint64_t n, std::int64_t count, const I* row,
                                       I* row_begin) {
  for (auto i = first_index(); i < n; i += index_step())
    row_begin[i] = static_cast<I>(count_below(row, count, static_cast<std::int64_t>(i), false));
}

template <class I>
__global__ void make_keys_kernel(Elements<I> elements, Ordering by, int minor_bits, Key* key,
                                 I* number) {
  const auto n = static_cast<std::uint64_t>(elements.count);
  for (auto k = first_index(); k < n; k += index_step()) {
    const auto at = static_cast<std::int64_t>(k);
    const std::int64_t row = elements.row != nullptr
                                 ? static_cast<std::int64_t>(elements.row[k])
                                 : row_of(elements.row_begin, elements.rows, at);
    const auto i = static_cast<Key>(row / by.block);
    const auto j = static_cast<Key>(elements.column[k] / by.block);
    key[k] = by.column_first ? j << minor_bits | i : i << minor_bits | j;
    number[k] = static_cast<I>(at);
  }
}

template <class I>
__global__ void permute_kernel(std::uint64_t n, const I* place, const I* given, I* sorted) {
  for (auto k = first_index(); k < n; k += index_step()) sorted[k] = given[place[k]];
}

template <class I>
cudaError_t load_typed() {
  return load_all(find_rows_kernel<I>, find_row_begins_kernel<I>, make_keys_kernel<I>,
                  permute_kernel<I>);
}

/// So many elements, in bytes; what follows them is aligned.
template <class T>
std::size_t part(std::int64_t count) {
  constexpr std::size_t kAlignment = 256;
  return (static_cast<std::size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
}

/// The lowest `bits` bits of the keys count.
template <class I>
cudaError_t sort(void* memory, std::size_t& bytes, std::int64_t n, int bits, const Key* keys,
                 Key* sorted_keys, const I* values, I* sorted_values, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, sorted_keys, values, sorted_values, n,
                                         0, bits > 0 ? bits : 1, stream);
}

}  // namespace

cudaError_t preload_ordering() {
  const auto status = load_typed<std::int32_t>();
  return status == cudaSuccess ? load_typed<std::int64_t>() : status;
}

template <class I>
cudaError_t find_rows(const Launch& launch, std::int64_t rows, std::int64_t count,
                      const I* row_begin, I* row) {
  const auto n = static_cast<std::uint64_t>(count);
  return queue(launch, n, find_rows_kernel<I>, n, rows, row_begin, row);
}

template <class I>
cudaError_t find_row_begins(const Launch& launch, std::int64_t rows, std::int64_t count,
                            const I* row, I* row_begin) {
  const auto n = static_cast<std::uint64_t>(rows) + 1;
  return queue(launch, n, find_row_begins_kernel<I>, n, count, row, row_begin);
}

template <class I>
cudaError_t ordering_bytes(std::int64_t count, std::size_t* bytes) {
  constexpr int kAllBits = 8 * sizeof(Key);
  Key* const no_key = nullptr;
  I* const no_value = nullptr;
  *bytes = 0;
  const auto status =
      sort<I>(nullptr, *bytes, count, kAllBits, no_key, no_key, no_value, no_value, nullptr);
  *bytes += part<Key>(count) + part<I>(count);
  return status;
}

template <class I>
cudaError_t order(const Launch& launch, const Elements<I>& elements, const Ordering& by,
                  std::uint64_t* key, I* place, void* memory, std::size_t bytes) {
  const auto blocks = [&](std::int64_t extent) {
    return extent / by.block + (extent % by.block != 0 ? 1 : 0);
  };
  const auto n = elements.count;
  const int row_bits = key_bits(blocks(elements.rows));
  const int column_bits = key_bits(blocks(elements.columns));
  auto* const keys = static_cast<Key*>(memory);
  auto* const numbers = reinterpret_cast<I*>(static_cast<std::byte*>(memory) + part<Key>(n));
  const auto before = part<Key>(n) + part<I>(n);
  auto sort_bytes = bytes - before;
  const auto status = queue(launch, static_cast<std::uint64_t>(n), make_keys_kernel<I>, elements,
                            by, by.column_first ? row_bits : column_bits, keys, numbers);
  if (status != cudaSuccess) return status;
  return sort<I>(static_cast<std::byte*>(memory) + before, sort_bytes, n, row_bits + column_bits,
                 keys, key, numbers, place, launch.stream);
}

template <class I>
cudaError_t permute(const Launch& launch, std::int64_t count, const I* place, const I* given,
                    I* sorted) {
  const auto n = static_cast<std::uint64_t>(count);
  return queue(launch, n, permute_kernel<I>, n, place, given, sorted);
}

#define TROUPE_ORDERING(I)                                                                       \
  template cudaError_t find_rows(const Launch&, std::int64_t, std::int64_t, const I*, I*);       \
  template cudaError_t find_row_begins(const Launch&, std::int64_t, std::int64_t, const I*, I*); \
  template cudaError_t ordering_bytes<I>(std::int64_t, std::size_t*);                            \
  template cudaError_t order(const Launch&, const Elements<I>&, const Ordering&, std::uint64_t*, \
                             I*, void*, std::size_t);                                            \
  template cudaError_t permute(const Launch&, std::int64_t, const I*, const I*, I*);
TROUPE_ORDERING(std::int32_t)
TROUPE_ORDERING(std::int64_t)
#undef TROUPE_ORDERING

}  // namespace troupe::host::cuda::kernels
