#pragma once

#include <chrono>
#include <optional>

#include "rank/device/health/nvml.hpp"

namespace troupe::rank_process {

/// What NVML tells of one GPU as it happens. One thread.
class NvmlEvents {
 public:
  /// Errors: unsupported, if the driver or the GPU has no events; library.
  static Result<NvmlEvents> listen(const Nvml& nvml, const Nvml::Gpu& gpu);
  NvmlEvents(NvmlEvents&& other) noexcept;
  NvmlEvents& operator=(NvmlEvents&&) = delete;
  ~NvmlEvents();

  /// Whether errors of memory are among the events: else counters tell of them.
  [[nodiscard]] bool tell_of_memory() const noexcept { return tell_of_memory_; }
  /// The next event; nullopt: none came in this time. Errors: library; no more events come.
  [[nodiscard]] Result<std::optional<HealthEvent>> wait(std::chrono::milliseconds limit);
  /// How many processes compute on the GPU now; 0: none, or NVML does not say.
  [[nodiscard]] unsigned processes() const;

 private:
  NvmlEvents(const Nvml& nvml, void* gpu, void* set) : nvml_(nvml), gpu_(gpu), set_(set) {}

  Nvml nvml_;
  void *gpu_, *set_;
  bool tell_of_memory_ = false;
};

}  // namespace troupe::rank_process
