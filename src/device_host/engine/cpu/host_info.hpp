#pragma once

#include <cstdint>

#include "device_host/engine/engine.hpp"

namespace troupe::host::cpu {

/// This host as a device: named after its processor; the uuid tells apart hosts, boots and
/// ordinals.
DeviceInfo describe_host(int ordinal);

/// Bytes that can be had without swapping (MemAvailable); 0: unknown.
std::uint64_t available_memory();

}  // namespace troupe::host::cpu
