#pragma once

#include <atomic>
#include <cstdint>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/cuda_services.hpp"
#include "device_host/engine/cuda/driver.hpp"
#include "device_host/engine/engine_memory.hpp"

namespace troupe::host::cuda {

/// Slabs and pinned memory on a CUDA device, by the driver's virtual memory management: physical
/// memory that other processes can map.
class CudaMemory final : public EngineMemory {
 public:
  /// `collectives`: is told of slabs where they are to be registered with communicators
  /// (EngineOptions::register_buffers); nullptr elsewhere.
  CudaMemory(CudaServices& services, const Driver& api, std::uint64_t limit, bool rdma)
      : services_(services), api_(api), limit_(limit), rdma_(rdma) {}
  void register_with(CollectiveHalf* collectives) { collectives_ = collectives; }

  std::uint64_t free() override;
  std::vector<std::pair<std::string, std::uint64_t>> use() override;
  Result<Slab> make_slab(std::uint64_t bytes) override;
  Result<std::byte*> map_slab(int fd, std::uint64_t bytes) override;
  void unmap_slab(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_foreign(int fd, std::uint64_t bytes) override;
  void unmap_foreign(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_pinned(int fd, std::uint64_t bytes) override;
  void unmap_pinned(std::byte* base, std::uint64_t bytes) override;

 private:
  /// Asks for memory that network adapters can reach, if the device offers that and it works.
  Result<CUmemGenericAllocationHandle> allocate(std::uint64_t bytes);
  /// Counts the bytes against the limit; the caller takes them off again if it fails.
  Result<void> reserve_budget(std::uint64_t bytes);

  CudaServices& services_;
  const Driver& api_;
  const std::uint64_t limit_;
  std::atomic<bool> rdma_;  ///< cleared if slabs cannot be made for GPUDirect RDMA after all
  std::atomic<std::uint64_t> slab_bytes_{0};
  CollectiveHalf* collectives_ = nullptr;  ///< that slabs are registered with
};

}  // namespace troupe::host::cuda
