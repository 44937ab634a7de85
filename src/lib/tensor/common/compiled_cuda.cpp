#include "lib/tensor/common/compiled_cuda.hpp"

#include <sys/mman.h>

#include <cstring>
#include <string>

#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"
#include "lib/tensor/common/plan_cuda.hpp"

// cuTENSOR writes its kernels to a file and reads them from one: here a file in memory.

namespace troupe::host::cuda {
namespace {

constexpr std::uint64_t kKernels = 0x6e72'656b'2d74'6e;  // "nt-kern"

std::string path_of(const UniqueFd& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

}  // namespace

std::vector<std::byte> compiled_kernels(cutensorHandle_t handle, int multiprocessors) {
  const UniqueFd file(::memfd_create("troupe-tensor-kernels", MFD_CLOEXEC));
  if (!file ||
      cutensorWriteKernelCacheToFile(handle, path_of(file).c_str()) != CUTENSOR_STATUS_SUCCESS)
    return {};
  const auto kernels = ipc::read_whole(file.get());
  if (!kernels.ok() || kernels->empty() || kernels->size() > kMostKernelBytes) return {};
  const auto header = PlanHeader::here(kKernels, multiprocessors);
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), kernels->begin(), kernels->end());
  return bytes;
}

bool adopt_kernels(cutensorHandle_t handle, std::span<const std::byte> bytes, int multiprocessors) {
  PlanHeader header;
  if (bytes.size() <= sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kKernels) return false;
  if (header != PlanHeader::here(kKernels, multiprocessors)) return true;
  UniqueFd file(::memfd_create("troupe-tensor-kernels", MFD_CLOEXEC));
  if (file && ipc::write_whole(file.get(), bytes.subspan(sizeof header)).ok())
    (void)cutensorReadKernelCacheFromFile(handle, path_of(file).c_str());
  return true;
}

}  // namespace troupe::host::cuda
