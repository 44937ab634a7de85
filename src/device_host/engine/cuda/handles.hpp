#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include "device_host/engine/cuda/handle.hpp"

/// The handles the engine owns.
namespace troupe::host::cuda {

struct StreamTraits {
  using Type = cudaStream_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type stream) { (void)cudaStreamDestroy(stream); }
};
struct EventTraits {
  using Type = cudaEvent_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type event) { (void)cudaEventDestroy(event); }
};
struct DeviceMemoryTraits {
  using Type = void*;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type memory) { (void)cudaFree(memory); }
};
struct HostMemoryTraits {
  using Type = void*;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type memory) { (void)cudaFreeHost(memory); }
};
struct BlasTraits {
  using Type = cublasHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cublasDestroy(handle); }
};
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
struct VectorTraits {
  using Type = cusparseDnVecDescr_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type vector) { (void)cusparseDestroyDnVec(vector); }
};

using Stream = Handle<StreamTraits>;
using Event = Handle<EventTraits>;
using DeviceMemory = Handle<DeviceMemoryTraits>;
using HostMemory = Handle<HostMemoryTraits>;
using BlasHandle = Handle<BlasTraits>;
using SparseHandle = Handle<SparseTraits>;
using Matrix = Handle<MatrixTraits>;
using DenseVector = Handle<VectorTraits>;

}  // namespace troupe::host::cuda
