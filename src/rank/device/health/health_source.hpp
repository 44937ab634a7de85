#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "rank/device/health/nvml.hpp"

namespace troupe::rank_process {

/// Whom to ask for the health of a rank's GPU. Any thread.
class HealthSource {
 public:
  /// Of `library`: "none": nobody is asked.
  static constexpr const char *kDrivers = "libnvidia-ml.so.1", *kNone = "none";

  /// `library`: the file of NVML. It is loaded when it is first asked for.
  HealthSource(std::string library, Nvml::Gpu gpu)
      : library_(std::move(library)), gpu_(std::move(gpu)) {}

  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  [[nodiscard]] const Nvml::Gpu& gpu() const noexcept { return gpu_; }
  /// Errors: unsupported.
  [[nodiscard]] const Result<Nvml>& nvml() const;
  /// Errors: unsupported; library.
  [[nodiscard]] Result<GpuHealth> health() const;

 private:
  std::string library_;
  Nvml::Gpu gpu_;
  mutable std::mutex mutex_;
  mutable std::optional<Result<Nvml>> nvml_;
};

}  // namespace troupe::rank_process
