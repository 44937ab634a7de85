#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What a GPU says of its own state, as NVML tells it. What is absent the driver does not tell.
struct GpuHealth {
  std::optional<std::uint32_t> temperature;  ///< of the GPU, in degrees Celsius
  std::optional<double> power;               ///< in watts
  /// Errors of memory and caches that ECC has found since the driver was loaded.
  std::optional<std::uint64_t> corrected_errors, uncorrected_errors;
  /// Rows of memory that spare ones have replaced, for corrected and for uncorrected errors.
  std::optional<std::uint32_t> remapped_rows;
  /// Whether a row waits for a reset of the GPU to be replaced; whether one could not be replaced.
  std::optional<bool> remapping_pending, remapping_failed;
  /// Why the clocks are lower than they could be, now: "power cap", "thermal" and so on. Empty:
  /// they are not, or the GPU is idle.
  std::optional<std::vector<std::string>> slowed_by;
  std::optional<int> nvlinks;  ///< that are up
  /// Replays, recoveries and checksum errors of these links.
  std::optional<std::uint64_t> nvlink_errors;
};

}  // namespace troupe
