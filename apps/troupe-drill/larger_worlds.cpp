#include "larger_worlds.hpp"

#include <fmt/format.h>

#include "simulation/reformation.hpp"

namespace troupe::drill {

std::vector<LargerWorld> simulate(const std::vector<Series>& series, const Options& options) {
  std::vector<LargerWorld> worlds;
  simulation::Parameters parameters;
  if (!options.world_sizes.empty())
    parameters.handling_us = simulation::measure_handling_us(parameters);
  for (const auto& one : series) {
    if (!one.attack.phase.empty()) continue;
    // With the messages of the measured world in them: bounds from above.
    parameters.quiesce_ms = one.median(&Recovery::quiesce_ms);
    parameters.promote_ms = one.median(&Recovery::replace_ms);
    parameters.verify_ms = one.median(&Recovery::verify_ms);
    parameters.restore_ms = one.median(&Recovery::restore_ms);
    for (const int ranks : options.world_sizes) {
      parameters.ranks = ranks;
      const auto simulated = simulation::lose_one(parameters);
      worlds.push_back({.kind = one.attack.kind,
                        .ranks = ranks,
                        .total_ms = one.median(&Recovery::detect_ms) + simulated.total_ms,
                        .control_ms = simulated.control_ms,
                        .messages = simulated.messages,
                        .most_at_one_rank = simulated.most_at_one_rank});
    }
  }
  return worlds;
}

std::string to_text(const std::vector<LargerWorld>& worlds) {
  auto text = fmt::format(
      "\nsimulated: the protocol message by message, the devices' work as measured above; ms\n"
      "  {:<24} {:>8} {:>8} {:>8} {:>9} {:>15}\n",
      "fault", "ranks", "total", "control", "messages", "most at a rank");
  for (const auto& world : worlds) {
    text += fmt::format("  {:<24} {:>8} {:>8.1f} {:>8.1f} {:>9} {:>15}\n", to_string(world.kind),
                        world.ranks, world.total_ms, world.control_ms, world.messages,
                        world.most_at_one_rank);
  }
  return text;
}

}  // namespace troupe::drill
