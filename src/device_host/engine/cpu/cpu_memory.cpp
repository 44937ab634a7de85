#include "device_host/engine/cpu/cpu_memory.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "common/ipc/pages.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::host::cpu {
namespace {

Result<std::byte*> map(int fd, std::uint64_t bytes, int may = PROT_READ | PROT_WRITE) {
  void* base = ::mmap(nullptr, bytes, may, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return Error{errno == ENOMEM ? Errc::out_of_memory : Errc::io, errno,
                 std::string("mmap: ") + std::strerror(errno)};
  }
  return static_cast<std::byte*>(base);
}

}  // namespace

std::uint64_t CpuMemory::free() {
  return ipc::available_memory();
}

Result<void> CpuMemory::reserve(std::uint64_t bytes) {
  const auto total = slab_bytes_.fetch_add(bytes) + bytes;
  if (limit_ == 0 || total <= limit_) return {};
  slab_bytes_.fetch_sub(bytes);
  return Error{
      Errc::out_of_memory, 0,
      "slabs of " + std::to_string(total) + " bytes, above the limit of " + std::to_string(limit_)};
}

Result<Slab> CpuMemory::make_slab(std::uint64_t bytes) {
  if (auto reserved = reserve(bytes); !reserved) return reserved.error();
  const auto refused = [&](const Error& error) -> Result<Slab> {
    slab_bytes_.fetch_sub(bytes);
    return error;
  };
  Slab slab;
  slab.fd.reset(::memfd_create("troupe-slab", MFD_CLOEXEC));
  if (!slab.fd) return refused(ipc::system_error("memfd_create"));
  if (auto taken = ipc::take_pages(slab.fd.get(), "a slab", bytes, ipc::Look::first); !taken)
    return refused(taken.error());
  auto mapped = map(slab.fd.get(), bytes);
  if (!mapped) return refused(mapped.error());
  slab.base = *mapped;
  return slab;
}

Result<std::byte*> CpuMemory::map_slab(int fd, std::uint64_t bytes) {
  auto mapped = map(fd, bytes);
  if (mapped) slab_bytes_.fetch_add(bytes);
  return mapped;
}

void CpuMemory::unmap_slab(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
  slab_bytes_.fetch_sub(bytes);
}

Result<std::byte*> CpuMemory::map_foreign(int fd, std::uint64_t bytes) {
  return map(fd, bytes, PROT_READ);
}

void CpuMemory::unmap_foreign(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
}

Result<std::byte*> CpuMemory::map_pinned(int fd, std::uint64_t bytes) {
  return map(fd, bytes);
}

void CpuMemory::unmap_pinned(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
}

}  // namespace troupe::host::cpu
