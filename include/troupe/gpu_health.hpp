#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// What a GPU says of its own state, as NVML tells it. What is absent the driver does not tell.
struct GpuHealth {
  std::optional<std::uint32_t> temperature = {};  ///< of the GPU, in degrees Celsius
  std::optional<double> power = {};               ///< in watts
  /// Errors of memory and caches that ECC has found since the driver was loaded.
  std::optional<std::uint64_t> corrected_errors = {}, uncorrected_errors = {};
  /// Rows of memory that spare ones have replaced, for corrected and for uncorrected errors.
  std::optional<std::uint32_t> remapped_rows = {};
  /// Whether a row waits for a reset of the GPU to be replaced; whether one could not be replaced.
  std::optional<bool> remapping_pending = {}, remapping_failed = {};
  /// What the driver wants done before the GPU is relied on again: "none", "reset the GPU" and so
  /// on.
  std::optional<std::string> recovery_action = {};
  /// Why the clocks are lower than they could be, now: "power cap", "thermal" and so on. Empty:
  /// they are not, or the GPU is idle.
  std::optional<std::vector<std::string>> slowed_by = {};
  /// The clock of its multiprocessors, now and at most, in MHz.
  std::optional<std::uint32_t> clock = {}, highest_clock = {};
  std::optional<std::uint32_t> processes = {};  ///< that compute on it
  std::optional<int> nvlinks = {};              ///< that are up
  /// Replays, recoveries and checksum errors of these links.
  std::optional<std::uint64_t> nvlink_errors = {};
};

enum class HealthKind : std::uint8_t {
  application,      ///< a program's own fault, or the end of a process
  memory,           ///< errors of memory
  remapping,        ///< rows of memory that are, or cannot be, replaced
  recovery_action,  ///< the driver wants the GPU reset, or more
  slowdown,         ///< the hardware lowers the clocks: heat, or the supply of power
  nvlink,
  bus,     ///< the GPU cannot be reached any more
  driver,  ///< the GPU's own processors or its driver have failed
  other
};
std::string_view to_string(HealthKind kind) noexcept;

/// What a GPU has said of its health while a job was running.
struct HealthEvent {
  int rank = 0;  ///< of the job: whose GPU it is
  HealthKind kind = HealthKind::other;
  std::string text;       ///< "Xid 64: a row of memory cannot be replaced"
  bool failing = false;   ///< the GPU is not fit for work any more, or will not be for long
  std::uint64_t xid = 0;  ///< the number of the driver's error report; 0: it is none
};

}  // namespace troupe
