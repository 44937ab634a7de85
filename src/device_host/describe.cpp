#include "device_host/describe.hpp"

#include <nlohmann/json.hpp>

namespace troupe::host {

nlohmann::json describe(const DeviceDescription& device) {
  nlohmann::json libraries = nlohmann::json::object();
  for (const auto& [name, version] : device.libraries) libraries[name] = version;
  return {{"engine", device.engine},
          {"name", device.name},
          {"uuid", device.uuid},
          {"bus_id", device.bus_id},
          {"memory_bytes", device.memory_bytes},
          {"numa_node", device.numa_node},
          {"libraries", libraries}};
}

}  // namespace troupe::host
