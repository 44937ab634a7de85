#pragma once

#include <cstddef>
#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

namespace troupe::host::cuda::kernels {

/// Where the elements of a CSR matrix are, in device memory; I is std::int32_t or std::int64_t.
template <class I>
struct Structure {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  const I *row_begin = nullptr, *column = nullptr;
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

}  // namespace troupe::host::cuda::kernels
