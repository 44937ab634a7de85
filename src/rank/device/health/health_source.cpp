#include "rank/device/health/health_source.hpp"

namespace troupe::rank_process {

const Result<Nvml>& HealthSource::nvml() const {
  const std::lock_guard lock(mutex_);
  if (!nvml_) {
    nvml_ = library_ == kNone
                ? Result<Nvml>(Error{Errc::unsupported, 0, "health: there is no GPU to ask"})
                : Nvml::load(library_.c_str());
  }
  return *nvml_;
}

Result<GpuHealth> HealthSource::health() const {
  const auto& loaded = nvml();
  return loaded.ok() ? loaded->health(gpu_) : loaded.error();
}

}  // namespace troupe::rank_process
