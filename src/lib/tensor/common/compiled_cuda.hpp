#pragma once

#include <cutensor.h>

#include <cstddef>
#include <span>
#include <vector>

namespace troupe::host::cuda {

/// All kernels that cuTENSOR has compiled in this process, for compiled_kernels' successors; empty
/// where there are none, or more than kMostKernelBytes.
std::vector<std::byte> compiled_kernels(cutensorHandle_t handle, int multiprocessors);
/// Whether the bytes are such kernels. cuTENSOR need not compile these; it leaves those of another
/// GPU or version alone.
bool adopt_kernels(cutensorHandle_t handle, std::span<const std::byte> bytes, int multiprocessors);

inline constexpr std::size_t kMostKernelBytes = std::size_t{8} << 20;

}  // namespace troupe::host::cuda
