#include "device_host/engine/cuda/memory_use.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>

namespace troupe::host::cuda {

/// The few functions of NVML's interface that are used (NVML API Reference Guide); it comes with
/// the driver, its header does not come with the toolkit everywhere.
std::optional<std::uint64_t> free_memory_of(const std::string& bus_id) {
  struct Memory {
    unsigned long long total, free, used;
  };
  using Device = void*;
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  const auto find = [library](const char* name) { return ::dlsym(library, name); };
  const auto init = reinterpret_cast<int (*)()>(find("nvmlInit_v2"));
  const auto end = reinterpret_cast<int (*)()>(find("nvmlShutdown"));
  const auto device_of =
      reinterpret_cast<int (*)(const char*, Device*)>(find("nvmlDeviceGetHandleByPciBusId_v2"));
  const auto memory_of =
      reinterpret_cast<int (*)(Device, Memory*)>(find("nvmlDeviceGetMemoryInfo"));
  std::optional<std::uint64_t> free;
  if (init != nullptr && end != nullptr && device_of != nullptr && memory_of != nullptr &&
      init() == 0) {
    Device device = nullptr;
    Memory memory{};
    if (device_of(bus_id.c_str(), &device) == 0 && memory_of(device, &memory) == 0)
      free = memory.free;
    (void)end();
  }
  (void)::dlclose(library);
  return free;
}

void MemoryUse::add(const std::string& cause, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_[cause] += bytes;
}

void MemoryUse::forget(const std::string& cause) {
  const std::lock_guard lock(mutex_);
  bytes_.erase(cause);
}

std::vector<std::pair<std::string, std::uint64_t>> MemoryUse::all() const {
  std::vector<std::pair<std::string, std::uint64_t>> list;
  const std::lock_guard lock(mutex_);
  for (const auto& [cause, bytes] : bytes_)
    list.emplace_back(cause, static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes)));
  list.emplace_back("workspaces", look().pool);
  return list;
}

MemoryUse::Look MemoryUse::look() {
  Look look;
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) look.free = free;
  int device = 0;
  cudaMemPool_t pool = nullptr;
  std::uint64_t reserved = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess &&
      cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) == cudaSuccess)
    look.pool = reserved;
  return look;
}

}  // namespace troupe::host::cuda
