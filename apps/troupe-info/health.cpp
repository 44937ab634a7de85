#include "health.hpp"

#include <fmt/format.h>

namespace troupe::info {

nlohmann::json health_json(const GpuHealth& health) {
  auto all = nlohmann::json::object();
  const auto add = [&all](const char* name, const auto& figure) {
    if (figure) all[name] = *figure;
  };
  add("temperature_celsius", health.temperature);
  add("power_watts", health.power);
  add("corrected_errors", health.corrected_errors);
  add("uncorrected_errors", health.uncorrected_errors);
  add("remapped_rows", health.remapped_rows);
  add("remapping_pending", health.remapping_pending);
  add("remapping_failed", health.remapping_failed);
  add("slowed_by", health.slowed_by);
  add("nvlinks", health.nvlinks);
  add("nvlink_errors", health.nvlink_errors);
  return all;
}

std::string health_text(const nlohmann::json& health) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  const auto figure = [&](const char* name, const char* what) {
    if (health.contains(name)) add(fmt::format("{:.0f} {}", health[name].get<double>(), what));
  };
  figure("temperature_celsius", "C");
  figure("power_watts", "W");
  figure("corrected_errors", "corrected");
  figure("uncorrected_errors", "uncorrected errors of memory");
  figure("remapped_rows", "rows remapped");
  if (health.value("remapping_pending", false)) add("more rows after a reset of the GPU");
  if (health.value("remapping_failed", false)) add("a row that cannot be remapped");
  figure("nvlinks", "NVLinks");
  figure("nvlink_errors", "errors of theirs");
  for (const auto& reason : health.value("slowed_by", nlohmann::json::array()))
    add("slowed by: " + reason.get<std::string>());
  return text;
}

}  // namespace troupe::info
