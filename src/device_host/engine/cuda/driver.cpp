#include "device_host/engine/cuda/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include <troupe/lib/operation.hpp>

#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

/// Behind a collective that waits for its peers wait the streams of lanes, its own among them, and
/// up to two of NCCL's; the detour must have a connection of its own. A stream that has nothing to
/// do needs none, so this is enough while no more than nine lanes wait at once, or six while
/// kernels of the program's run on all their side queues. Not more, because
/// each takes 48 MiB, and 9 ms when the process ends, which a recovery waits for.
constexpr int kConnections = 12;
constexpr int kMostConnections = 32;  ///< CUDA's limit

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<Driver> load() {
  // Never closed: the runtime library uses it until the process ends.
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    return Error{Errc::unsupported, 0, std::string("no NVIDIA driver: ") + ::dlerror()};
  }
  Driver api{};
  const bool complete =
      find(library, "cuInit", api.cuInit) &&
      find(library, "cuDriverGetVersion", api.cuDriverGetVersion) &&
      find(library, "cuDeviceGetCount", api.cuDeviceGetCount) &&
      find(library, "cuDeviceGet", api.cuDeviceGet) &&
      find(library, "cuDeviceGetName", api.cuDeviceGetName) &&
      find(library, "cuDeviceGetUuid_v2", api.cuDeviceGetUuid) &&
      find(library, "cuDeviceTotalMem_v2", api.cuDeviceTotalMem) &&
      find(library, "cuDeviceGetPCIBusId", api.cuDeviceGetPCIBusId) &&
      find(library, "cuDeviceGetAttribute", api.cuDeviceGetAttribute) &&
      find(library, "cuMemGetAllocationGranularity", api.cuMemGetAllocationGranularity) &&
      find(library, "cuMemCreate", api.cuMemCreate) &&
      find(library, "cuMemRelease", api.cuMemRelease) &&
      find(library, "cuMemExportToShareableHandle", api.cuMemExportToShareableHandle) &&
      find(library, "cuMemImportFromShareableHandle", api.cuMemImportFromShareableHandle) &&
      find(library, "cuMemAddressReserve", api.cuMemAddressReserve) &&
      find(library, "cuMemAddressFree", api.cuMemAddressFree) &&
      find(library, "cuMemMap", api.cuMemMap) && find(library, "cuMemUnmap", api.cuMemUnmap) &&
      find(library, "cuMemSetAccess", api.cuMemSetAccess) &&
      find(library, "cuEventQuery", api.cuEventQuery);
  if (!complete) {
    return Error{Errc::unsupported, 0, std::string("NVIDIA driver too old: ") + ::dlerror()};
  }
  const auto status = api.cuInit(0);
  if (status == CUDA_ERROR_NO_DEVICE) {
    return Error{Errc::unsupported, static_cast<int>(status), "no GPU"};
  }
  if (status != CUDA_SUCCESS) return error_of(status, "cuInit");
  return api;
}

}  // namespace

void enough_connections(int channels) {
  const int connections = std::min(kConnections + channels, kMostConnections);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(connections).c_str(), 0);
}

void forget_precision() {
  for (const char* const name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION",
                                 "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
    ::unsetenv(name);
  }
}

Result<const Driver*> driver() {
  static const Result<Driver> loaded = load();
  if (!loaded) return loaded.error();
  return &loaded.value();
}

}  // namespace troupe::host::cuda
