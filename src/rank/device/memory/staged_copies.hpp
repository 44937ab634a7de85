#pragma once

#include <cstddef>
#include <span>

#include <troupe/future.hpp>
#include <troupe/gpu_ref.hpp>

/// Copies between ordinary memory of the program and the device, through pinned memory.
namespace troupe::rank_process {

class DeviceCore;

Future<void> upload(DeviceCore& core, std::span<const std::byte> source, const Operand& destination,
                    DType dtype);
/// What a fault cuts off is done again, unless the program is to go back anyway.
Result<void> download(DeviceCore& core, const Operand& source, std::span<std::byte> destination,
                      DType dtype);

}  // namespace troupe::rank_process
