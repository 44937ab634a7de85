#pragma once

#include <cublasLt.h>

#include <limits>

#include "lib/blas/cuda.hpp"

/// How matrices lie in memory, as cuBLASLt is told it.
namespace troupe::host::cuda {

inline cudaDataType type_in_lt(DType dtype) {
  if (dtype == DType::f8e4m3) return CUDA_R_8F_E4M3;
  return dtype == DType::f8e5m2 ? CUDA_R_8F_E5M2 : type_of(dtype);
}

inline Result<void> set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                        const auto& value) {
  TROUPE_CUDA_TRY(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
  return {};
}

/// One operand's batch of matrices.
struct LayoutOf {
  DType dtype{};
  std::int64_t rows = 0, columns = 0, leading = 0;
  blas::Order order{};
  std::int64_t stride = 0, batch = 1;
};
inline Result<void> make_layout(Matmuls::Layout& layout, const LayoutOf& of) {
  if (of.batch > std::numeric_limits<std::int32_t>::max())
    return Error{Errc::unsupported, 0, "cuBLASLt has batches of less than 2^31 matrices"};
  TROUPE_CUDA_TRY(cublasLtMatrixLayoutCreate(layout.out(), type_in_lt(of.dtype),
                                             static_cast<std::uint64_t>(of.rows),
                                             static_cast<std::uint64_t>(of.columns), of.leading));
  if (of.order == blas::Order::row) {
    TROUPE_CUDA_PROPAGATE(set(layout.get(), CUBLASLT_MATRIX_LAYOUT_ORDER,
                              static_cast<std::int32_t>(CUBLASLT_ORDER_ROW)));
  }
  if (of.batch == 1) return {};
  TROUPE_CUDA_PROPAGATE(
      set(layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(of.batch)));
  return set(layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, of.stride);
}

}  // namespace troupe::host::cuda
