#include "rank/device/health/nvml.hpp"

#include <iterator>
#include <utility>

#include "common/ipc/code_file.hpp"

namespace troupe::rank_process {
namespace {

// Of NVML's interface (nvml.h).
constexpr int kCorrected = 0, kUncorrected = 1;  // nvmlMemoryErrorType_t
constexpr int kSinceLoaded = 0;                  // nvmlEccCounterType_t: volatile
constexpr int kOfGpu = 0;                        // nvmlTemperatureSensors_t
constexpr int kOfMultiprocessors = 1;            // nvmlClockType_t
constexpr int kRoomTooSmall = 7;                 // nvmlReturn_t
constexpr unsigned kMostLinks = 36;
constexpr int kLinkCounters = 4;  // nvmlNvLinkErrorCounter_t: replay, recovery, two of checksums

/// nvmlClocksEventReasons, but for those that are nobody's trouble: idle, and what the
/// administrator has set.
constexpr std::pair<unsigned long long, const char*> kSlowdowns[] = {
    {0x004, "power cap"},          {0x008, "hardware slowdown"},
    {0x010, "sync boost"},         {0x020, "thermal"},
    {0x040, "hardware thermal"},   {0x080, "power brake"},
    {0x200, "limit of the board"}, {0x400, "reliability"}};

/// nvmlDeviceGpuRecoveryAction_t, in its order.
constexpr const char* kRecoveryActions[] = {"none",
                                            "reset the GPU",
                                            "reboot the node",
                                            "drain peer-to-peer traffic",
                                            "drain peer-to-peer traffic and reset the GPU",
                                            "recover the IMEX domain",
                                            "reset the GPU's bus",
                                            "reboot the system"};
constexpr unsigned kRecoveryAction = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION

/// nvmlFieldValue_t
struct FieldValue {
  unsigned field = 0, scope = 0;
  long long timestamp_us = 0, latency_us = 0;
  unsigned type = 0;
  Nvml::Status status = 0;
  union {
    unsigned as_unsigned;
    unsigned long long bits;
  } value = {};
};
static_assert(sizeof(FieldValue) == 40);

}  // namespace

Result<Nvml> Nvml::load(const char* file) {
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const auto why = ipc::load_error({});
    const bool absent = why.code == Errc::unsupported;
    return Error{Errc::unsupported, 0,
                 "NVML: " + (absent ? std::string(file) + ": not installed" : why.message)};
  }
  const Nvml nvml(library);
  if (!nvml.call("nvmlInit_v2"))
    return Error{Errc::unsupported, 0, std::string("NVML: ") + file + ": no driver answers"};
  return nvml;
}

Result<void*> Nvml::find(const Gpu& gpu) const {
  void* handle = nullptr;
  const bool by_index = gpu.uuid.empty();
  const auto status = by_index ? status_of("nvmlDeviceGetHandleByIndex_v2", gpu.index, &handle)
                               : status_of("nvmlDeviceGetHandleByUUID", gpu.uuid.c_str(), &handle);
  if (status == 0) return handle;
  return Error{Errc::library, status,
               "NVML: it knows no GPU " + (by_index ? std::to_string(gpu.index) : gpu.uuid)};
}

Result<GpuHealth> Nvml::health(const Gpu& which) const {
  const auto found = find(which);
  if (!found.ok()) return found.error();
  void* const gpu = *found;
  GpuHealth health;
  unsigned value = 0;
  if (call("nvmlDeviceGetTemperature", gpu, kOfGpu, &value)) health.temperature = value;
  if (call("nvmlDeviceGetPowerUsage", gpu, &value)) health.power = value / 1000.0;
  read_memory(gpu, health);
  read_recovery_action(gpu, health);
  unsigned long long reasons = 0;
  if (call("nvmlDeviceGetCurrentClocksEventReasons", gpu, &reasons) ||
      call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu, &reasons)) {
    auto& slowed_by = health.slowed_by.emplace();
    for (const auto& [bit, reason] : kSlowdowns) {
      if ((reasons & bit) != 0) slowed_by.emplace_back(reason);
    }
  }
  if (call("nvmlDeviceGetClockInfo", gpu, kOfMultiprocessors, &value)) health.clock = value;
  if (call("nvmlDeviceGetMaxClockInfo", gpu, kOfMultiprocessors, &value))
    health.highest_clock = value;
  health.processes = processes(gpu);
  read_links(gpu, health);
  return health;
}

/// Asked for none of them, NVML says how many there are.
std::optional<unsigned> Nvml::processes(void* gpu) const {
  unsigned count = 0;
  const auto status = status_of("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count,
                                static_cast<void*>(nullptr));
  if (status != 0 && status != kRoomTooSmall) return std::nullopt;
  return count;
}

void Nvml::read_recovery_action(void* gpu, GpuHealth& health) const {
  FieldValue field;
  field.field = kRecoveryAction;
  if (!call("nvmlDeviceGetFieldValues", gpu, 1, &field) || field.status != 0) return;
  const auto action = field.value.as_unsigned;
  health.recovery_action = action < std::size(kRecoveryActions)
                               ? kRecoveryActions[action]
                               : "recovery action " + std::to_string(action);
}

void Nvml::read_memory(void* gpu, GpuHealth& health) const {
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
