#include "device_host/engine/cpu/cpu_engine.hpp"
#include "device_host/engine/cpu/host_info.hpp"

// The cpu engine as an engine module has it; a module of another engine that stands on CpuEngine
// has functions of its own.

namespace troupe::host {

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options) {
  try {
    return std::unique_ptr<Engine>(std::make_unique<cpu::CpuEngine>(options));
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::exception& exception) {
    return Error{Errc::library, 0, exception.what()};
  }
}

Result<std::vector<DeviceInfo>> list_devices() {
  return std::vector{cpu::describe_host(0)};
}

}  // namespace troupe::host
