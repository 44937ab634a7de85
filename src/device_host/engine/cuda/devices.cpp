#include "device_host/engine/cuda/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include "device_host/engine/cuda/status.hpp"
#include "device_host/engine/library.hpp"

namespace troupe::host::cuda {
namespace {

/// The UUID as nvidia-smi writes it.
std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// The kernel's answer for a PCI device; -1 if it does not know or there is one node only.
int numa_node_of(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file("/sys/bus/pci/devices/" + bus_id + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

/// 13020 is "13.2": how CUDA numbers its driver and runtime.
std::string cuda_version(int code) {
  return fmt::format("{}.{}", code / 1000, code % 1000 / 10);
}

/// What the engine itself is linked with: to ask its libraries would load them.
std::vector<LoadedLibrary> own_libraries(const Driver& api) {
  int driver_code = 0, runtime_code = 0;
  (void)api.cuDriverGetVersion(&driver_code);
  (void)cudaRuntimeGetVersion(&runtime_code);
  return located({{"CUDA driver", cuda_version(driver_code), api.cuDriverGetVersion},
                  {"CUDA runtime", cuda_version(runtime_code), &cudaRuntimeGetVersion}});
}

}  // namespace

Result<int> count_devices(const Driver& api) {
  int count = 0;
  TROUPE_CUDA_TRY(api.cuDeviceGetCount(&count));
  return count;
}

Result<DeviceInfo> describe_device(const Driver& api, int ordinal) {
  CUdevice device = 0;
  TROUPE_CUDA_TRY(api.cuDeviceGet(&device, ordinal));
  std::array<char, 256> name{};
  TROUPE_CUDA_TRY(api.cuDeviceGetName(name.data(), static_cast<int>(name.size()), device));
  CUuuid uuid{};
  TROUPE_CUDA_TRY(api.cuDeviceGetUuid(&uuid, device));
  std::array<char, 32> bus_id{};
  TROUPE_CUDA_TRY(api.cuDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  std::size_t memory = 0;
  TROUPE_CUDA_TRY(api.cuDeviceTotalMem(&memory, device));
  const auto facts = facts_of_device(api, ordinal);
  if (!facts) return facts.error();
  return DeviceInfo{"cuda",
                    name.data(),
                    uuid_text(uuid),
                    bus_id.data(),
                    memory,
                    numa_node_of(bus_id.data()),
                    own_libraries(api),
                    facts->compute_major * 10 + facts->compute_minor};
}

Result<DeviceFacts> facts_of_device(const Driver& api, int ordinal) {
  CUdevice device = 0;
  TROUPE_CUDA_TRY(api.cuDeviceGet(&device, ordinal));
  DeviceFacts facts;
  int mapping = 0, descriptors = 0, rdma = 0;
  const std::pair<CUdevice_attribute, int*> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &facts.compute_major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &facts.compute_minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts.multiprocessors},
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &mapping},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &descriptors},
      {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, &rdma}};
  for (const auto& [attribute, value] : wanted) {
    TROUPE_CUDA_TRY(api.cuDeviceGetAttribute(value, attribute, device));
  }
  facts.shares_memory = mapping != 0 && descriptors != 0;
  facts.rdma = rdma != 0;
  return facts;
}

}  // namespace troupe::host::cuda

namespace troupe::host {

Result<std::vector<DeviceInfo>> list_devices() {
  const auto api = cuda::driver();
  if (!api) return api.error();
  const auto count = cuda::count_devices(**api);
  if (!count) return count.error();
  if (*count == 0) return Error{Errc::unsupported, 0, "no GPU"};
  std::vector<DeviceInfo> devices;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    auto device = cuda::describe_device(**api, ordinal);
    if (!device) return device.error();
    devices.push_back(std::move(*device));
  }
  return devices;
}

}  // namespace troupe::host
