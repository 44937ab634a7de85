#pragma once

#include <cstddef>
#include <cstdint>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"
#include "device_host/engine/cuda/driver.hpp"

/// Memory of a device that other processes can map: a descriptor names it, and it lives as long as
/// a process has the descriptor or a mapping. Any thread; the device must be current.
namespace troupe::host::cuda {

/// Physical memory, until it is released; mappings and exported descriptors keep it alive beyond
/// that.
class Allocation {
 public:
  Allocation(const Driver& api, CUmemGenericAllocationHandle handle) : api_(api), handle_(handle) {}
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  ~Allocation() { (void)api_.cuMemRelease(handle_); }
  [[nodiscard]] CUmemGenericAllocationHandle get() const noexcept { return handle_; }

 private:
  const Driver& api_;
  CUmemGenericAllocationHandle handle_;
};

/// The properties of memory of the device that has descriptors; `rdma`: network cards can reach it.
CUmemAllocationProp shareable(int device, bool rdma);
/// A descriptor of the memory, closed in processes that this one starts. Errors: the driver's, io.
Result<UniqueFd> export_descriptor(const Driver& api, const Allocation& allocation);

/// Maps memory into new address space, readable and writable by the device. Errors: the driver's.
Result<std::byte*> map_allocation(const Driver& api, int device,
                                  CUmemGenericAllocationHandle handle, std::uint64_t bytes);
/// The same of memory that another process has exported. The memory lies where its owner has made
/// it; if that is another device, this one reaches it over NVLink or PCIe.
Result<std::byte*> map_descriptor(const Driver& api, int device, int fd, std::uint64_t bytes);
/// Undoes either of them. Nothing may use the memory any more.
void unmap(const Driver& api, std::byte* base, std::uint64_t bytes);

}  // namespace troupe::host::cuda
