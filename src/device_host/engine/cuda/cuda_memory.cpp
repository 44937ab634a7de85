#include "device_host/engine/cuda/cuda_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "device_host/engine/cuda/shareable_memory.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

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
    const auto wanted = shareable(services_.device(), true);
    status = api_.cuMemCreate(&handle, bytes, &wanted, 0);
    if (status == CUDA_SUCCESS) return handle;
  }
  if (status != CUDA_ERROR_OUT_OF_MEMORY) {
    const auto wanted = shareable(services_.device(), false);
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
  const auto wanted = shareable(services_.device(), rdma_);
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
    auto fd = export_descriptor(api_, allocation);
    if (!fd.ok()) return fd.error();
    const auto base = map_allocation(api_, services_.device(), allocation.get(), bytes);
    if (!base) return base.error();
    Slab slab;
    slab.fd = std::move(*fd);
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

Result<std::byte*> CudaMemory::map_foreign(int fd, std::uint64_t bytes) {
  services_.enter();
  return map_descriptor(api_, services_.device(), fd, bytes);
}

void CudaMemory::unmap_foreign(std::byte* base, std::uint64_t bytes) {
  services_.enter();
  unmap(api_, base, bytes);
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
