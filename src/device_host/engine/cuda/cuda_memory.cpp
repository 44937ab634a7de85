#include "device_host/engine/cuda/cuda_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

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

CUmemAllocationProp properties(int device, bool rdma) {
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device;
  wanted.allocFlags.gpuDirectRDMACapable = rdma ? 1 : 0;
  return wanted;
}

Error system_error(const char* call) {
  return {Errc::io, errno, std::string(call) + ": " + std::strerror(errno)};
}

}  // namespace

Result<void> CudaMemory::reserve_budget(std::uint64_t bytes) {
  const auto before = slab_bytes_.fetch_add(bytes);
  if (limit_ == 0 || before + bytes <= limit_) return {};
  slab_bytes_ -= bytes;
  return Error{Errc::out_of_memory, 0,
               fmt::format("a slab of {} bytes on top of {} is beyond the memory limit of {}",
                           bytes, before, limit_)};
}

Result<CUmemGenericAllocationHandle> CudaMemory::allocate(std::uint64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  auto status = CUDA_ERROR_NOT_SUPPORTED;
  if (rdma_) {
    const auto wanted = properties(services_.device(), true);
    status = api_.cuMemCreate(&handle, bytes, &wanted, 0);
    if (status == CUDA_SUCCESS) return handle;
  }
  if (status != CUDA_ERROR_OUT_OF_MEMORY) {
    const auto wanted = properties(services_.device(), false);
    status = api_.cuMemCreate(&handle, bytes, &wanted, 0);
    if (status == CUDA_SUCCESS) {
      rdma_ = false;
      return handle;
    }
  }
  auto error = failure(status, "cuMemCreate");
  if (error.code == Errc::out_of_memory) {
    std::size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    error.message += fmt::format(": asked for {} bytes, free {} of {}", bytes, free, total);
  }
  return error;
}

Result<std::byte*> CudaMemory::map(CUmemGenericAllocationHandle handle, std::uint64_t bytes) {
  CUdeviceptr base = 0;
  TROUPE_CUDA_TRY(api_.cuMemAddressReserve(&base, bytes, 0, 0, 0));
  Reservation reservation(api_, base, bytes);
  TROUPE_CUDA_TRY(api_.cuMemMap(base, bytes, 0, handle, 0));
  reservation.mapped();
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = services_.device();
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  TROUPE_CUDA_TRY(api_.cuMemSetAccess(base, bytes, &access, 1));
  return reinterpret_cast<std::byte*>(reservation.keep());
}

std::uint64_t CudaMemory::free() {
  services_.enter();
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

std::vector<std::pair<std::string, std::uint64_t>> CudaMemory::use() {
  services_.enter();
  auto all = services_.memory_use().all();
  all.emplace_back("slabs", slab_bytes_.load());
  return all;
}

Result<Slab> CudaMemory::make_slab(std::uint64_t bytes) {
  services_.enter();
  const auto wanted = properties(services_.device(), rdma_);
  std::size_t granularity = 0;
  TROUPE_CUDA_TRY(api_.cuMemGetAllocationGranularity(&granularity, &wanted,
                                                     CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  if (bytes == 0 || bytes % granularity != 0) {
    return Error{Errc::invalid, 0,
                 fmt::format("a slab of {} bytes is no multiple of {}", bytes, granularity)};
  }
  TROUPE_CUDA_PROPAGATE(reserve_budget(bytes));
  auto made = [&]() -> Result<Slab> {
    const auto handle = allocate(bytes);
    if (!handle) return handle.error();
    const Allocation allocation(api_, *handle);
    int fd = -1;
    TROUPE_CUDA_TRY(api_.cuMemExportToShareableHandle(&fd, allocation.get(),
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    Slab slab;
    slab.fd.reset(fd);
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return system_error("fcntl");
    const auto base = map(allocation.get(), bytes);
    if (!base) return base.error();
    slab.base = *base;
    return slab;
  }();
  if (!made) slab_bytes_ -= bytes;
  if (made.ok() && collectives_ != nullptr) collectives_->slab_mapped(made->base, bytes);
  return made;
}

Result<std::byte*> CudaMemory::map_slab(int fd, std::uint64_t bytes) {
  services_.enter();
  TROUPE_CUDA_PROPAGATE(reserve_budget(bytes));
  auto mapped = map_foreign(fd, bytes);
  if (!mapped) slab_bytes_ -= bytes;
  if (mapped.ok() && collectives_ != nullptr) collectives_->slab_mapped(*mapped, bytes);
  return mapped;
}

void CudaMemory::unmap_slab(std::byte* base, std::uint64_t bytes) {
  if (collectives_ != nullptr) collectives_->slab_unmapped(base);
  unmap_foreign(base, bytes);
  slab_bytes_ -= bytes;
}

/// Where the memory lies is the allocation's own affair; the mapping gives this device access to
/// it, over NVLink or PCIe if it is another's.
Result<std::byte*> CudaMemory::map_foreign(int fd, std::uint64_t bytes) {
  services_.enter();
  CUmemGenericAllocationHandle handle = 0;
  auto* const descriptor = reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd));
  TROUPE_CUDA_TRY(api_.cuMemImportFromShareableHandle(&handle, descriptor,
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  const Allocation allocation(api_, handle);
  return map(allocation.get(), bytes);
}

void CudaMemory::unmap_foreign(std::byte* base, std::uint64_t bytes) {
  services_.enter();
  const auto address = reinterpret_cast<CUdeviceptr>(base);
  (void)api_.cuMemUnmap(address, bytes);
  (void)api_.cuMemAddressFree(address, bytes);
}

Result<std::byte*> CudaMemory::map_pinned(int fd, std::uint64_t bytes) {
  services_.enter();
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (base == MAP_FAILED) return system_error("mmap");
  const auto status =
      cudaHostRegister(base, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (status != cudaSuccess) {
    auto error = failure(status, "cudaHostRegister");
    error.message += fmt::format(" ({} bytes)", bytes);
    (void)::munmap(base, bytes);
    return error;
  }
  return static_cast<std::byte*>(base);
}

void CudaMemory::unmap_pinned(std::byte* base, std::uint64_t bytes) {
  services_.enter();
  (void)cudaHostUnregister(base);
  (void)::munmap(base, bytes);
}

}  // namespace troupe::host::cuda
