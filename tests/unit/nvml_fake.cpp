#include <cstring>

// Some functions of NVML, for one GPU: what an old driver lacks is missing.

extern "C" {
int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** gpu) {
  static int only;
  *gpu = &only;
  return std::strcmp(uuid, "GPU-1") == 0 ? 0 : 2;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 76'500;
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void*, int kind, int counter, unsigned long long* errors) {
  *errors = kind == 0 ? 7 : 1;
  return counter == 0 ? 0 : 2;
}
int nvmlDeviceGetRemappedRows(void*, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = 2, *uncorrected = 1, *pending = 1, *failed = 0;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 0x45;  // idle, power cap, hardware thermal
  return 0;
}
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* up) {
  *up = link != 1 ? 1 : 0;
  return link < 3 ? 0 : 2;
}
int nvmlDeviceGetNvLinkErrorCounter(void*, unsigned link, int counter, unsigned long long* errors) {
  *errors = link + 1;
  return counter < 2 ? 0 : 3;
}
}
