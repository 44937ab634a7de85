#include "common/ipc/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Result<SharedMemory> SharedMemory::create(const std::string& label, std::size_t bytes, Look look) {
  UniqueFd fd(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_error("memfd_create");
  if (auto taken = take_pages(fd.get(), label, bytes, look); !taken) return taken.error();
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return system_error("fcntl");
  return map(std::move(fd), bytes);
}

bool SharedMemory::keeps_size(int fd) noexcept {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Result<SharedMemory> SharedMemory::map(UniqueFd fd, std::size_t bytes) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("fstat");
  if (static_cast<std::size_t>(info.st_size) < bytes) {
    return Error{Errc::invalid, 0, "a shared-memory segment is shorter than announced"};
  }
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return system_error("mmap");
  SharedMemory memory;
  memory.fd_ = std::move(fd);
  memory.data_ = static_cast<std::byte*>(address);
  memory.size_ = bytes;
  return memory;
}

}  // namespace troupe::ipc
