#pragma once

#include <cusparse.h>

#include <troupe/dtype.hpp>

#include "device_host/engine/cuda/library.hpp"

/// The handles of cuSPARSE, and its names for types.
namespace troupe::host::cuda {

struct SparseTraits {
  using Type = cusparseHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cusparseDestroy(handle); }
};
struct MatrixTraits {
  using Type = cusparseConstSpMatDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type matrix) { (void)cusparseDestroySpMat(matrix); }
};
struct WritableMatrixTraits {
  using Type = cusparseSpMatDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type matrix) { (void)cusparseDestroySpMat(matrix); }
};
struct VectorTraits {
  using Type = cusparseDnVecDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type vector) { (void)cusparseDestroyDnVec(vector); }
};
struct DenseMatrixTraits {
  using Type = cusparseConstDnMatDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type matrix) { (void)cusparseDestroyDnMat(matrix); }
};
struct ProductTraits {
  using Type = cusparseSpGEMMDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type product) { (void)cusparseSpGEMM_destroyDescr(product); }
};
using SparseHandle = Handle<SparseTraits>;
using Matrix = Handle<MatrixTraits>;
using WritableMatrix = Handle<WritableMatrixTraits>;
using DenseVector = Handle<VectorTraits>;
using DenseMatrix = Handle<DenseMatrixTraits>;

inline cudaDataType value_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::c64: return CUDA_C_32F;
    case DType::c128: return CUDA_C_64F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::i8: return CUDA_R_8I;
    case DType::i32: return CUDA_R_32I;
    default: return CUDA_R_64F;  // check() lets no other one pass
  }
}
inline cusparseIndexType_t index_type(DType dtype) {
  return dtype == DType::i32 ? CUSPARSE_INDEX_32I : CUSPARSE_INDEX_64I;
}

}  // namespace troupe::host::cuda
