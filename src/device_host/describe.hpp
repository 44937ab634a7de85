#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "device_host/engine/engine.hpp"

namespace troupe::host {

/// A device description as the JSON that crosses to the rank, with the operations and dtypes there
/// are.
nlohmann::json describe(const DeviceInfo& device);
/// As text; bytes of a path that are no UTF-8 become U+FFFD.
std::string to_text(const nlohmann::json& json);

}  // namespace troupe::host
