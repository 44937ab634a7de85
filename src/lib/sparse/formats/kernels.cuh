#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// CSR matrices in other forms. T is float, double, float2 or double2, I std::int32_t or
/// std::int64_t. Every function queues on the launch's stream and returns.
namespace troupe::host::cuda::kernels {

cudaError_t preload_formats();

/// A CSR matrix in device memory.
template <class T, class I>
struct GivenRows {
  std::int64_t rows = 0, nonzeros = 0;
  const I *row_begin = nullptr, *column = nullptr;
  const T* value = nullptr;
};

/// Elements in the order of their blocks, at least one: key and place as order() gives them.
template <class I>
struct BlockedOrder {
  std::int64_t count = 0;
  int column_bits = 0;
  const std::uint64_t* key = nullptr;
  const I* place = nullptr;
};
/// starts[k] = 1 where another block begins, else 0; starts[count] = 0.
template <class I>
cudaError_t mark_blocks(const Launch& launch, const BlockedOrder<I>& elements,
                        std::int64_t* starts);
/// row_begin[i] = how many blocks are above block row i. `before`: the starts, added up.
template <class I>
cudaError_t begin_block_rows(const Launch& launch, const BlockedOrder<I>& elements,
                             const std::int64_t* before, std::int64_t block_rows, I* row_begin);

/// How the elements of blocks lie in memory.
struct BlockShape {
  std::int64_t block = 0;
  bool by_row = true;
};
/// Where blocks go. With more than `capacity` nothing is written.
template <class T, class I>
struct BlockTarget {
  std::int64_t capacity = 0;
  I* column = nullptr;
  T* value = nullptr;
};
template <class T, class I>
cudaError_t fill_blocks(const Launch& launch, const GivenRows<T, I>& from,
                        const BlockedOrder<I>& elements, const std::int64_t* before,
                        const BlockShape& shape, const BlockTarget<T, I>& to);

/// A BSR matrix in device memory.
template <class T, class I>
struct GivenBlocks {
  std::int64_t block_rows = 0, blocks = 0;
  const I *row_begin = nullptr, *column = nullptr;
  const T* value = nullptr;
};
template <class T, class I>
cudaError_t expand_blocks(const Launch& launch, const GivenBlocks<T, I>& from,
                          const BlockShape& shape, I* row_begin, I* column, T* value);

/// entries[s] = how many entries slice s has; entries[slices] = 0.
template <class I>
cudaError_t measure_slices(const Launch& launch, std::int64_t rows, const I* row_begin,
                           std::int64_t slice_rows, std::int64_t slices, std::int64_t* entries);
/// Where slices go: slice s from entry begin[s] on. With more than `capacity` nothing is written.
template <class T, class I>
struct SliceTarget {
  std::int64_t slice_rows = 0, slices = 0, capacity = 0;
  const std::int64_t* begin = nullptr;
  I* column = nullptr;
  T* value = nullptr;
};
template <class T, class I>
cudaError_t fill_slices(const Launch& launch, const GivenRows<T, I>& from,
                        const SliceTarget<T, I>& to);

}  // namespace troupe::host::cuda::kernels
