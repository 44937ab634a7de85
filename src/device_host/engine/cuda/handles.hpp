#pragma once

#include <cuda_runtime_api.h>

#include "device_host/engine/cuda/handle.hpp"

/// The handles of the CUDA runtime.
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

struct GraphTraits {
  using Type = cudaGraph_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type graph) { (void)cudaGraphDestroy(graph); }
};
struct GraphExecTraits {
  using Type = cudaGraphExec_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type graph) { (void)cudaGraphExecDestroy(graph); }
};

using Stream = Handle<StreamTraits>;
using Event = Handle<EventTraits>;
using DeviceMemory = Handle<DeviceMemoryTraits>;
using HostMemory = Handle<HostMemoryTraits>;

}  // namespace troupe::host::cuda
