#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include <troupe/gpu_health.hpp>

namespace troupe::info {

/// What the GPU says of its state; of what it does not tell there is no field.
nlohmann::json health_json(const GpuHealth& health);
/// One line of it, without its end.
std::string health_text(const nlohmann::json& health);

}  // namespace troupe::info
