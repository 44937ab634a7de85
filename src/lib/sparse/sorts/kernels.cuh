#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// The order of a matrix's elements. I is std::int32_t or std::int64_t. Every function queues on
/// the launch's stream and returns.
namespace troupe::host::cuda::kernels {

cudaError_t preload_ordering();

/// row[k] = the row of element k. There are elements.
template <class I>
cudaError_t find_rows(const Launch& launch, std::int64_t rows, std::int64_t count,
                      const I* row_begin, I* row);
/// The other way: the rows ascend. There may be no elements.
template <class I>
cudaError_t find_row_begins(const Launch& launch, std::int64_t rows, std::int64_t count,
                            const I* row, I* row_begin);

/// Elements of a matrix, at least one: the row of each is told by `row` or by row_begin.
template <class I>
struct Elements {
  std::int64_t rows = 0, columns = 0, count = 0;
  const I *row = nullptr, *row_begin = nullptr, *column = nullptr;
};

/// By what elements are sorted: by the place of the block that they are in, its row first or its
/// column.
struct Ordering {
  std::int64_t block = 1;
  bool column_first = false;
};

/// How much device memory order() works in.
template <class I>
cudaError_t ordering_bytes(std::int64_t count, std::size_t* bytes);

/// place[k] = which element is the k-th in order; elements that are equal in it stay in theirs.
/// key[k] = row << key_bits(columns) | column of that element's block, or the other way round with
/// column_first: row, column and `columns` then count blocks. `memory`: ordering_bytes() of it.
template <class I>
cudaError_t order(const Launch& launch, const Elements<I>& elements, const Ordering& by,
                  std::uint64_t* key, I* place, void* memory, std::size_t bytes);

/// How many bits numbers below `extent` have.
inline int key_bits(std::int64_t extent) {
  int bits = 0;
  while (bits < 63 && std::int64_t{1} << bits < extent) ++bits;
  return bits;
}

/// sorted[k] = given[place[k]]
template <class I>
cudaError_t permute(const Launch& launch, std::int64_t count, const I* place, const I* given,
                    I* sorted);

}  // namespace troupe::host::cuda::kernels
