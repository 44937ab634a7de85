#include "rank/device/health/health_changes.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe::rank_process {
namespace {

/// Slowdowns that are a matter of health. Others are policy: a cap of power, boosts in step.
constexpr std::array<std::string_view, 4> kUnhealthy = {"hardware slowdown", "thermal",
                                                        "hardware thermal", "power brake"};

}  // namespace

std::vector<HealthEvent> HealthChanges::look(const GpuHealth& health, bool counts_memory) {
  std::vector<HealthEvent> events;
  const auto add = [&](HealthKind kind, bool failing, std::string text) {
    events.push_back({0, kind, std::move(text), failing});
  };
  const bool pending = health.remapping_pending.value_or(false);
  if (pending && !pending_)
    add(HealthKind::remapping, true, "a row of memory waits for a reset to be replaced");
  pending_ = pending;
  const bool failed = health.remapping_failed.value_or(false);
  if (failed && !failed_) add(HealthKind::remapping, true, "a row of memory could not be replaced");
  failed_ = failed;

  const auto action = health.recovery_action.value_or("none");
  if (action != action_ && action != "none")
    add(HealthKind::recovery_action, true, "the driver wants to " + action);
  action_ = action;

  std::set<std::string> slowed_by;
  for (const auto& reason : health.slowed_by.value_or(std::vector<std::string>())) {
    if (std::find(kUnhealthy.begin(), kUnhealthy.end(), reason) == kUnhealthy.end()) continue;
    slowed_by.insert(reason);
    if (!slowed_by_.contains(reason)) add(HealthKind::slowdown, false, "slowed by: " + reason);
  }
  slowed_by_ = std::move(slowed_by);

  if (health.nvlinks) {
    const auto most = std::max(links_.value_or(*health.nvlinks), *health.nvlinks);
    if (*health.nvlinks < most && *health.nvlinks < links_now_.value_or(most)) {
      add(HealthKind::nvlink, true,
          std::to_string(*health.nvlinks) + " of " + std::to_string(most) + " NVLinks are up");
    }
    links_ = most;
    links_now_ = health.nvlinks;
  }

  if (counts_memory && health.uncorrected_errors) {
    if (*health.uncorrected_errors > uncorrected_.value_or(*health.uncorrected_errors))
      add(HealthKind::memory, false, "uncorrected errors of memory");
    uncorrected_ = health.uncorrected_errors;
  }
  return events;
}

}  // namespace troupe::rank_process
