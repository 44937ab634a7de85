#include "device_host/engine/cuda/shareable_memory.hpp"

#include <fcntl.h>

#include <utility>

#include "common/ipc/system_error.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

/// Address space and, once there, the mapping in it; undone unless keep() is called.
class Reservation {
 public:
  Reservation(const Driver& api, CUdeviceptr base, std::uint64_t bytes)
      : api_(api), base_(base), bytes_(bytes) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() {
    if (base_ == 0) return;
    if (mapped_) (void)api_.cuMemUnmap(base_, bytes_);
    (void)api_.cuMemAddressFree(base_, bytes_);
  }
  void mapped() noexcept { mapped_ = true; }
  CUdeviceptr keep() noexcept { return std::exchange(base_, 0); }

 private:
  const Driver& api_;
  CUdeviceptr base_;
  std::uint64_t bytes_;
  bool mapped_ = false;
};

}  // namespace

CUmemAllocationProp shareable(int device, bool rdma) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  wanted.allocFlags.gpuDirectRDMACapable = rdma ? 1 : 0;
  return wanted;
}

Result<UniqueFd> export_descriptor(const Driver& api, const Allocation& allocation) {
  int fd = -1;
  TROUPE_CUDA_TRY(api.cuMemExportToShareableHandle(&fd, allocation.get(),
                                                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  UniqueFd exported(fd);
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return ipc::system_error("fcntl");
  return exported;
}

Result<std::byte*> map_allocation(const Driver& api, int device,
                                  CUmemGenericAllocationHandle handle, std::uint64_t bytes) {
  CUdeviceptr base = 0;
  TROUPE_CUDA_TRY(api.cuMemAddressReserve(&base, bytes, 0, 0, 0));
  Reservation reservation(api, base, bytes);
  TROUPE_CUDA_TRY(api.cuMemMap(base, bytes, 0, handle, 0));
  reservation.mapped();
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  TROUPE_CUDA_TRY(api.cuMemSetAccess(base, bytes, &access, 1));
  return reinterpret_cast<std::byte*>(reservation.keep());
}

Result<std::byte*> map_descriptor(const Driver& api, int device, int fd, std::uint64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  auto* const descriptor = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
  TROUPE_CUDA_TRY(api.cuMemImportFromShareableHandle(&handle, descriptor,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const Allocation allocation(api, handle);
  return map_allocation(api, device, allocation.get(), bytes);
}

void unmap(const Driver& api, std::byte* base, std::uint64_t bytes) {
  const auto address = reinterpret_cast<CUdeviceptr>(base);
  (void)api.cuMemUnmap(address, bytes);
  (void)api.cuMemAddressFree(address, bytes);
}

}  // namespace troupe::host::cuda
