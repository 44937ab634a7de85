#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// Where the elements of a matrix are, in device memory; I is std::int32_t or std::int64_t. A
/// column of -1 is padding. Of the rows row_begin tells as in a CSR matrix, unless the last members
/// say otherwise.
template <class I>
struct Structure {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;  ///< nonzeros: padding included
  const I *row_begin = nullptr, *column = nullptr;
  const I* row = nullptr;       ///< not nullptr: the row of each element
  std::int64_t slice_rows = 0;  ///< not 0: row_begin is of slices of so many rows, in sliced ELL
  std::int64_t width = 0;       ///< not 0: so many elements in each row
};
/// The same of the transposed matrix: element k is in column row[k] of it, and is element place[k]
/// of the other one. Rows within a column ascend.
template <class I>
struct TransposedStructure {
  I *column_begin = nullptr, *row = nullptr, *place = nullptr;
};

/// How much device memory transpose() works in.
template <class I>
cudaError_t transposition_bytes(std::int64_t nonzeros, std::size_t* bytes);

/// Queues what fills in `to`. There are nonzeros. `memory`: transposition_bytes() of it.
template <class I>
cudaError_t transpose(const Launch& launch, const Structure<I>& from,
                      const TransposedStructure<I>& to, void* memory, std::size_t bytes);

/// Queues what finds where each of the numbers 0 to `numbers` begins among `count` ascending ones:
/// begin[i] = how many of them are below i.
template <class I>
cudaError_t find_begins(const Launch& launch, const I* ascending, std::int64_t count,
                        std::int64_t numbers, I* begin);

}  // namespace troupe::host::cuda::kernels
