#include "rank/device/health/health_log.hpp"

namespace troupe {

std::string_view to_string(HealthKind kind) noexcept {
  switch (kind) {
    case HealthKind::application: return "application";
    case HealthKind::memory: return "memory";
    case HealthKind::remapping: return "remapping";
    case HealthKind::recovery_action: return "recovery-action";
    case HealthKind::slowdown: return "slowdown";
    case HealthKind::nvlink: return "nvlink";
    case HealthKind::bus: return "bus";
    case HealthKind::driver: return "driver";
    case HealthKind::other: break;
  }
  return "other";
}

namespace rank_process {

bool HealthLog::add(const HealthEvent& event) {
  const std::lock_guard lock(mutex_);
  ++counts_[event.kind];
  return said_.size() < kMost && said_.insert(event.text).second;
}

std::map<HealthKind, std::uint64_t> HealthLog::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace rank_process
}  // namespace troupe
