#include "rank/device/nvml.hpp"

#include <dlfcn.h>

#include <utility>

namespace troupe::rank_process {
namespace {

// Of NVML's interface (nvml.h): functions return 0 where they succeed, and a GPU is a pointer.
using Status = int;
constexpr int kCorrected = 0, kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr int kSinceLoaded = 0;                  // nvmlEccCounterType_t: volatile
constexpr int kOfGpu = 0;                        // nvmlTemperatureSensors_t
constexpr unsigned kMostLinks = 36;
constexpr int kLinkCounters = 4;  // nvmlNvLinkErrorCounter_t: replay, recovery, two of checksums

/// nvmlClocksEventReasons, but for those that are nobody's trouble: idle, and what the
/// administrator has set.
constexpr std::pair<unsigned long long, const char*> kSlowdowns[] = {
    {0x004, "power cap"},          {0x008, "hardware slowdown"},
    {0x010, "sync boost"},         {0x020, "thermal"},
    {0x040, "hardware thermal"},   {0x080, "power brake"},
    {0x200, "limit of the board"}, {0x400, "reliability"}};

}  // namespace

Result<Nvml> Nvml::load(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Errc::unsupported, 0, std::string("NVML: ") + file + ": not installed"};
  const Nvml nvml(library);
  if (!nvml.call("nvmlInit_v2"))
    return Error{Errc::unsupported, 0, std::string("NVML: ") + file + ": no driver answers"};
  return nvml;
}

const Result<Nvml>& Nvml::driver() {
  static const auto one = load("libnvidia-ml.so.1");
  return one;
}

void* Nvml::find(const char* name) const {
  return ::dlsym(library_, name);
}

/// Whether it is there and succeeds.
template <class... Arguments>
bool Nvml::call(const char* name, Arguments... arguments) const {
  const auto function = reinterpret_cast<Status (*)(Arguments...)>(find(name));
  return function != nullptr && function(arguments...) == 0;
}

Result<GpuHealth> Nvml::health(const std::string& uuid) const {
  void* gpu = nullptr;
  if (!call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &gpu))
    return Error{Errc::library, 0, "NVML: it knows no GPU " + uuid};
  GpuHealth health;
  unsigned value = 0;
  if (call("nvmlDeviceGetTemperature", gpu, kOfGpu, &value)) health.temperature = value;
  if (call("nvmlDeviceGetPowerUsage", gpu, &value)) health.power = value / 1000.0;
  read_memory_errors(gpu, health);
  unsigned long long reasons = 0;
  if (call("nvmlDeviceGetCurrentClocksEventReasons", gpu, &reasons) ||
      call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu, &reasons)) {
    auto& slowed_by = health.slowed_by.emplace();
    for (const auto& [bit, reason] : kSlowdowns) {
      if ((reasons & bit) != 0) slowed_by.emplace_back(reason);
    }
  }
  read_links(gpu, health);
  return health;
}

void Nvml::read_memory_errors(void* gpu, GpuHealth& health) const {
  unsigned long long errors = 0;
  if (call("nvmlDeviceGetTotalEccErrors", gpu, kCorrected, kSinceLoaded, &errors))
    health.corrected_errors = errors;
  if (call("nvmlDeviceGetTotalEccErrors", gpu, kUncorrected, kSinceLoaded, &errors))
    health.uncorrected_errors = errors;
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (call("nvmlDeviceGetRemappedRows", gpu, &corrected, &uncorrected, &pending, &failed)) {
    health.remapped_rows = corrected + uncorrected;
    health.remapping_pending = pending != 0;
    health.remapping_failed = failed != 0;
  }
}

void Nvml::read_links(void* gpu, GpuHealth& health) const {
  for (unsigned link = 0; link < kMostLinks; ++link) {
    int up = 0;
    if (!call("nvmlDeviceGetNvLinkState", gpu, link, &up)) continue;
    health.nvlinks = health.nvlinks.value_or(0) + (up != 0 ? 1 : 0);
    for (int counter = 0; up != 0 && counter < kLinkCounters; ++counter) {
      unsigned long long errors = 0;
      if (call("nvmlDeviceGetNvLinkErrorCounter", gpu, link, counter, &errors))
        health.nvlink_errors = health.nvlink_errors.value_or(0) + errors;
    }
  }
}

}  // namespace troupe::rank_process
