#include "nvml_fake.hpp"

#include <chrono>
#include <cstring>
#include <tuple>

// Some functions of NVML, for one GPU of any name but GPU-2: what an old driver lacks is missing.

using troupe::test::FakeNvml;

namespace {

FakeNvml& fake() {
  static FakeNvml one;
  return one;
}

constexpr int kNotFound = 6, kNotSupported = 3, kInsufficientSize = 7, kTimeout = 10,
              kGpuIsLost = 15;

int find(void** gpu) {
  static int only;
  *gpu = &only;
  const std::lock_guard lock(fake().mutex);
  return fake().lost ? kGpuIsLost : 0;
}

struct EventData {
  void* gpu;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp_us, latency_us;
  unsigned type;
  int status;
  unsigned long long value;
};

}  // namespace

extern "C" {
FakeNvml* troupe_test_fake_nvml() {
  return &fake();
}
int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** gpu) {
  return std::strcmp(uuid, "GPU-2") != 0 ? find(gpu) : kNotFound;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  return index < 8 ? find(gpu) : kNotFound;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 76'500;
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int kind, unsigned* megahertz) {
  const std::lock_guard lock(fake().mutex);
  *megahertz = fake().clock;
  return kind == 1 ? 0 : 2;
}
int nvmlDeviceGetMaxClockInfo(void*, int kind, unsigned* megahertz) {
  *megahertz = 1980;
  return kind == 1 ? 0 : 2;
}
int nvmlDeviceGetTotalEccErrors(void*, int kind, int counter, unsigned long long* errors) {
  const std::lock_guard lock(fake().mutex);
  *errors = kind == 0 ? 7 : fake().uncorrected;
  return counter == 0 ? 0 : 2;
}
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  const std::lock_guard lock(fake().mutex);
  *corrected = 2, *uncorrected = 1, *pending = fake().pending, *failed = fake().failed;
  return 0;
}
int nvmlDeviceGetFieldValues(void*, int count, FieldValue* values) {
  if (count != 1) return kNotSupported;
  const std::lock_guard lock(fake().mutex);
  values->status = values->field == 230 ? 0 : kNotSupported;
  values->value = fake().recovery_action;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  const std::lock_guard lock(fake().mutex);
  *reasons = fake().slowdowns;
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* up) {
  const std::lock_guard lock(fake().mutex);
  *up = link < fake().links ? 1 : 0;
  return link < 4 ? 0 : 2;
}
int nvmlDeviceGetNvLinkErrorCounter(void*, unsigned link, int counter, unsigned long long* errors) {
  *errors = link + 1;
  return counter < 2 ? 0 : 3;
}
int nvmlDeviceGetSupportedEventTypes(void*, unsigned long long* types) {
  const std::lock_guard lock(fake().mutex);
  *types = 0xf;
  return fake().has_events ? 0 : kNotSupported;
}
int nvmlEventSetCreate(void** set) {
  *set = &fake();
  return 0;
}
int nvmlDeviceRegisterEvents(void*, unsigned long long types, void*) {
  const std::lock_guard lock(fake().mutex);
  if ((types & ~0xfull) != 0) return kNotSupported;
  ++fake().listeners;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  const std::lock_guard lock(fake().mutex);
  const bool fits = fake().processes <= *count;
  *count = fake().processes;
  return fits ? 0 : kInsufficientSize;
}
int nvmlEventSetFree(void*) {
  const std::lock_guard lock(fake().mutex);
  --fake().listeners;
  return 0;
}
int nvmlEventSetWait_v2(void*, EventData* data, unsigned limit_ms) {
  std::unique_lock lock(fake().mutex);
  fake().changed.wait_for(lock, std::chrono::milliseconds(limit_ms),
                          [] { return !fake().events.empty() || fake().lost; });
  if (fake().lost) return kGpuIsLost;
  if (fake().events.empty()) return kTimeout;
  std::tie(data->type, data->data) = fake().events.front();
  fake().events.pop_front();
  return 0;
}
}
