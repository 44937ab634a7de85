#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "common/wire/control.hpp"
#include "common/wire/host_options.hpp"
#include "device_host/describe.hpp"
#include "device_host/device_host.hpp"

// What an engine module exports: see common/wire/host_options.hpp.

extern "C" __attribute__((visibility("default"))) int troupe_device_host_run(
    const troupe::wire::HostOptions* options) {
  using namespace troupe;
  const ipc::Socket control(UniqueFd(::dup(options->socket_fd)));
  auto host = host::DeviceHost::create(*options);
  if (!host.ok()) {
    (void)wire::send_control(control, wire::from_host::Fatal{host.error(), false});
    return wire::kExitNoEngine;
  }
  return (*host)->run();
}

extern "C" __attribute__((visibility("default"))) int troupe_device_host_list(char* buffer,
                                                                              int capacity) {
  const auto devices = troupe::host::list_devices();
  nlohmann::json list = nlohmann::json::array();
  if (devices.ok()) {
    for (const auto& device : *devices) list.push_back(troupe::host::describe(device));
  }
  const std::string text = devices.ok() ? troupe::host::to_text(list) : devices.error().message;
  const int length = std::snprintf(buffer, static_cast<std::size_t>(capacity), "%s", text.c_str());
  return devices.ok() && length < capacity ? length : -1;
}
