#pragma once

#include <algorithm>

#include <troupe/device.hpp>

#include "burn_in.hpp"

namespace troupe::info {

/// Compares a GPU's account of itself before the load with those under load. Where there is no GPU,
/// or no NVML, nothing is known.
class HealthWatch {
 public:
  explicit HealthWatch(const Device& device) : device_(device) {
    const auto health = device.health();
    if (!health.ok()) return;
    facts_.known = true;
    facts_.corrected_before = health->corrected_errors.value_or(0);
    facts_.uncorrected_before = health->uncorrected_errors.value_or(0);
    facts_.remapped_before = health->remapped_rows.value_or(0);
    facts_.nvlink_errors_before = health->nvlink_errors.value_or(0);
    facts_.action_before = health->recovery_action.value_or("none");
    note(*health);
  }
  /// The caller has just submitted work that lasts for some milliseconds.
  void sample() {
    if (!facts_.known) return;
    const auto health = device_.health();
    if (!health.ok()) return;
    ++facts_.samples;
    note(*health);
    for (const auto& reason : health->slowed_by.value_or(std::vector<std::string>()))
      ++facts_.slowed_by[reason];
  }
  /// Errors of the last part count, too.
  void end() {
    if (const auto health = device_.health(); facts_.known && health.ok()) note(*health);
  }
  [[nodiscard]] const LoadHealth& facts() const { return facts_; }

 private:
  void note(const GpuHealth& health) {
    facts_.hottest_celsius = std::max(facts_.hottest_celsius, health.temperature.value_or(0));
    facts_.most_watts = std::max(facts_.most_watts, health.power.value_or(0));
    facts_.corrected_after = health.corrected_errors.value_or(facts_.corrected_before);
    facts_.uncorrected_after = health.uncorrected_errors.value_or(facts_.uncorrected_before);
    facts_.remapped_after = health.remapped_rows.value_or(facts_.remapped_before);
    facts_.nvlink_errors_after = health.nvlink_errors.value_or(facts_.nvlink_errors_before);
    facts_.action_after = health.recovery_action.value_or(facts_.action_before);
  }

  const Device& device_;
  LoadHealth facts_;
};

}  // namespace troupe::info
