#pragma once

#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <cstddef>
#include <cstdint>

#include <troupe/dtype.hpp>
#include <troupe/error.hpp>

#include "device_host/engine/cuda/stream_memory.hpp"

/// The product of two CSR matrices, by cuSPARSE: see sparse::Spgemm.
namespace troupe::host::cuda {

/// A factor, in device memory. Without values for either factor a product is only counted.
struct CsrFactor {
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  const void *row_begin = nullptr, *column = nullptr, *value = nullptr;
};
/// Where the product goes, in device memory: column and value have room for `capacity` elements.
struct CsrProduct {
  std::int64_t capacity = 0;
  void *row_begin = nullptr, *column = nullptr, *value = nullptr;
};
struct CsrTypes {
  DType value{}, index{};
};

/// What multiplies matrices on one queue.
class Multiplication {
 public:
  /// C = A B. The number of nonzeros of C; its columns and values are written if there is room for
  /// that many. Waits for the stream, which the handle must be set to; the handle must take scalars
  /// from the host. Errors: out_of_memory, and what cuSPARSE reports.
  Result<std::int64_t> run(cusparseHandle_t handle, cudaStream_t stream, const CsrTypes& types,
                           CsrFactor a, CsrFactor b, CsrProduct c);

 private:
  /// As much of each of the two stays allocated between products: to allocate anew costs time.
  static constexpr std::size_t kKeptBytes = std::size_t{128} << 20;

  StreamMemory estimation_, products_;
};

}  // namespace troupe::host::cuda
