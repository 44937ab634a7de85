#include "device_host/describe.hpp"

#include <nlohmann/json.hpp>

namespace troupe::host {

nlohmann::json describe(const DeviceInfo& device) {
  nlohmann::json libraries = nlohmann::json::array();
  for (const auto& [name, version, file] : device.libraries)
    libraries.push_back({{"name", name}, {"version", version}, {"file", file}});
  return {{"engine", device.engine},
          {"name", device.name},
          {"uuid", device.uuid},
          {"bus_id", device.bus_id},
          {"memory_bytes", device.memory_bytes},
          {"numa_node", device.numa_node},
          {"libraries", libraries},
          {"compute_capability", device.compute_capability}};
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace troupe::host
