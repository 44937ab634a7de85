#include "rank/device/health/nvml_events.hpp"

#include <utility>

#include "rank/device/health/xid.hpp"

namespace troupe::rank_process {
namespace {

// nvmlEventType
constexpr unsigned long long kSingleBit = 0x1, kDoubleBit = 0x2, kXid = 0x8;
/// What an event of each type says. An Xid says more: see event_of_xid.
struct Type {
  unsigned long long bit;
  HealthKind kind;
  bool failing;
  const char* text;
};
constexpr Type kTypes[] = {
    {kSingleBit, HealthKind::memory, false, "a single-bit error of memory was corrected"},
    {kDoubleBit, HealthKind::memory, false, "a double-bit error of memory"},
    {0x200, HealthKind::memory, false, "single-bit errors of memory come thick and fast"},
    {0x400, HealthKind::remapping, false, "a piece of memory is to be replaced"},
    {0x800, HealthKind::remapping, true, "a piece of memory cannot be replaced"},
    {0x1000, HealthKind::memory, false, "poisoned data was met, and contained"},
    {0x2000, HealthKind::memory, true, "poisoned data was met, and not contained"},
    {0x4000, HealthKind::bus, true, "the GPU is unavailable"},
    {0x8000, HealthKind::recovery_action, false, "the recovery action has changed"}};

constexpr Nvml::Status kNoEvent = 10;  // NVML_ERROR_TIMEOUT

/// nvmlEventData_t
struct EventData {
  void* gpu = nullptr;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
static_assert(sizeof(EventData) == 32);

HealthEvent event_of(const EventData& data) {
  if (data.type == kXid) return event_of_xid(data.data);
  for (const auto& type : kTypes) {
    if (data.type == type.bit) return {0, type.kind, type.text, type.failing};
  }
  return {0, HealthKind::other, "an NVML event of type " + std::to_string(data.type), false};
}

}  // namespace

Result<NvmlEvents> NvmlEvents::listen(const Nvml& nvml, const Nvml::Gpu& which) {
  const auto gpu = nvml.find(which);
  if (!gpu.ok()) return gpu.error();
  unsigned long long supported = 0;
  if (!nvml.call("nvmlDeviceGetSupportedEventTypes", *gpu, &supported))
    return Error{Errc::unsupported, 0, "NVML: the GPU has no events"};
  unsigned long long wanted = kXid;
  for (const auto& type : kTypes) wanted |= type.bit;
  wanted &= supported;
  void* set = nullptr;
  if (wanted == 0 || !nvml.call("nvmlEventSetCreate", &set))
    return Error{Errc::unsupported, 0, "NVML: the GPU has no events"};
  NvmlEvents events(nvml, *gpu, set);
  if (const auto status = nvml.status_of("nvmlDeviceRegisterEvents", *gpu, wanted, set);
      status != 0) {
    return Error{Errc::library, status, "NVML: its events cannot be had"};
  }
  events.tell_of_memory_ = (wanted & kDoubleBit) != 0;
  return events;
}

NvmlEvents::NvmlEvents(NvmlEvents&& other) noexcept
    : nvml_(other.nvml_),
      gpu_(other.gpu_),
      set_(std::exchange(other.set_, nullptr)),
      tell_of_memory_(other.tell_of_memory_) {}

NvmlEvents::~NvmlEvents() {
  if (set_ != nullptr) (void)nvml_.call("nvmlEventSetFree", set_);
}

Result<std::optional<HealthEvent>> NvmlEvents::wait(std::chrono::milliseconds limit) {
  EventData data;
  const auto status =
      nvml_.status_of("nvmlEventSetWait_v2", set_, &data, static_cast<unsigned>(limit.count()));
  if (status == 0) return std::optional(event_of(data));
  if (status == kNoEvent) return std::optional<HealthEvent>();
  return Error{
      Errc::library, status,
      status == Nvml::kGpuIsLost ? "NVML: the GPU is lost" : "NVML: it tells no more events"};
}

unsigned NvmlEvents::processes() const {
  return nvml_.processes(gpu_).value_or(0);
}

}  // namespace troupe::rank_process
