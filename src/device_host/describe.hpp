#pragma once

#include <nlohmann/json_fwd.hpp>

#include "device_host/engine/engine.hpp"

namespace troupe::host {

/// A device description as the JSON that crosses to the rank, with the operations and dtypes there
/// are.
nlohmann::json describe(const DeviceInfo& device);

}  // namespace troupe::host
