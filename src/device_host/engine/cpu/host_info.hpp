#pragma once

#include "device_host/engine/engine.hpp"

namespace troupe::host::cpu {

/// This host as a device: named after its processor; the uuid tells apart hosts, boots and
/// ordinals.
DeviceInfo describe_host(int ordinal);

}  // namespace troupe::host::cpu
