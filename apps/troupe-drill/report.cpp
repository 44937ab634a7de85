#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "larger_worlds.hpp"
#include "report_file.hpp"

namespace troupe::drill {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

template <class Get>
std::vector<double> values(const Series& series, Get get) {
  std::vector<double> list;
  for (const auto& outcome : series.outcomes) list.push_back(static_cast<double>(get(outcome)));
  return list;
}

struct Column {
  std::string name;
  std::vector<double> values;
};

std::vector<Column> times(const Series& series) {
  std::vector<Column> columns;
  const auto add = [&](std::string_view name, double Recovery::*ms) {
    columns.push_back(
        {std::string(name), values(series, [&](const Outcome& o) { return o.sum().*ms; })});
  };
  for (const auto& time : kRecoveryTimes) add(time.name, time.ms);
  add("total", &Recovery::total_ms);
  columns.push_back({"wall", values(series, [](const Outcome& o) { return o.wall_ms; })});
  columns.push_back({"floor", values(series, [](const Outcome& o) {
                       return o.sum().detect_ms + o.sum().end_ms;
                     })});
  return columns;
}

std::vector<Column> losses(const Series& series) {
  return {{"lost_buffers", values(series, [](const Outcome& o) { return o.sum().lost_buffers; })},
          {"failed_commands", values(series, [](const Outcome& o) { return o.failed_commands; })},
          {"repeated_steps",
           values(series, [](const Outcome& o) { return o.sum().repeated_iterations; })}};
}

std::string name_of(const Series& series) {
  const auto& attack = series.attack;
  const auto kind = attack.name();
  return (attack.phase.empty() ? kind : kind + " in " + attack.phase) +
         (series.back ? ", back" : "");
}

Json to_json(const Series& series, const Setting& setting) {
  Json json = {{"name", name_of(series) + " " + setting.policy},
               {"kind", series.attack.name()},
               {"phase", series.attack.phase.empty() ? "none" : series.attack.phase},
               {"ranks", setting.ranks},
               {"repetitions", series.outcomes.size()},
               {"kept_intact", series.kept_intact()}};
  for (const auto& column : times(series)) {
    json[column.name + "_ms_median"] = median(column.values);
    json[column.name + "_ms_max"] = largest(column.values);
  }
  for (const auto& column : losses(series)) {
    json[column.name + "_median"] = median(column.values);
    json[column.name + "_max"] = largest(column.values);
  }
  json["recoveries"] = values(series, [](const Outcome& o) { return o.recoveries.size(); });
  json["total_ms_values"] = values(series, [](const Outcome& o) { return o.sum().total_ms; });
  json["wall_ms_values"] = values(series, [](const Outcome& o) { return o.wall_ms; });
  return json;
}

Json to_json(const LargerWorld& world) {
  return {{"kind", to_string(world.kind)}, {"ranks", world.ranks},
          {"total_ms", world.total_ms},    {"control_ms", world.control_ms},
          {"messages", world.messages},    {"most_messages_at_one_rank", world.most_at_one_rank}};
}

}  // namespace

double Series::median(double Recovery::*time) const {
  return drill::median(values(*this, [&](const Outcome& o) { return o.sum().*time; }));
}

bool Series::kept_intact() const {
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const Outcome& outcome) { return outcome.kept_intact; });
}

std::string policy_of(const Config& config) {
  const bool shrinks = config.text("on-loss") == "shrink";
  return "standby " + config.text("standby") + (shrinks ? ", on-loss shrink" : "");
}

std::string heading(const Setting& setting, const Options& options) {
  const bool twice = std::any_of(options.attacks.begin(), options.attacks.end(),
                                 [](const Attack& attack) { return !attack.phase.empty(); });
  auto text = fmt::format(
      "\n{} ranks, {}, {}: {} repetitions{}; the fault is rank {}'s{}\n"
      "times in ms, medians above maxima; wall: from the fault to the last rank's verified "
      "all_reduce\n"
      "floor: of that, what the driver and the system take: to tell of the fault, and to end the "
      "lost process where that is waited for\n"
      "lost: buffers whose contents went, commands that failed, steps to be repeated; over all "
      "ranks\n"
      "  {:<24}",
      setting.ranks, setting.device, setting.policy, options.repetitions,
      options.in_run || options.ranks_die || options.silent ? " in World::run" : "",
      fmt::join(options.victims, ", "),
      twice ? fmt::format(", the one in a phase rank {}'s", options.second.value()) : "", "fault");
  for (const auto& time : kRecoveryTimes) text += fmt::format(" {:>8}", time.name);
  text += fmt::format(" {:>8}", "total");
  return text + fmt::format(" {:>8} {:>8}  {:>7} {:>8} {:>5}  kept buffer\n", "wall", "floor",
                            "buffers", "commands", "steps");
}

std::string to_text(const Series& series) {
  auto medians = fmt::format("  {:<24}", name_of(series));
  auto maxima = fmt::format("  {:<24}", "");
  for (const auto& column : times(series)) {
    medians += fmt::format(" {:>8.1f}", median(column.values));
    maxima += fmt::format(" {:>8.1f}", largest(column.values));
  }
  const auto lost = losses(series);
  constexpr auto kLosses = "  {:>7} {:>8} {:>5}";
  medians +=
      fmt::format(kLosses, median(lost[0].values), median(lost[1].values), median(lost[2].values));
  maxima += fmt::format(kLosses, largest(lost[0].values), largest(lost[1].values),
                        largest(lost[2].values));
  return medians + (series.kept_intact() ? "  intact\n" : "  CHANGED\n") + maxima + "\n";
}

std::string to_text(const std::vector<HealthEvent>& health) {
  std::string text = health.empty() ? "" : "\nhealth of GPUs\n";
  for (const auto& event : health) {
    text += fmt::format("  rank {} {}: {} ({})\n", event.rank,
                        event.failing ? "is failing" : "says", event.text, to_string(event.kind));
  }
  return text;
}

Result<void> write_json(const std::vector<Series>& series,
                        const std::vector<LargerWorld>& simulated,
                        const std::vector<HealthEvent>& health, const Setting& setting,
                        const Options& options) {
  const Json header = {{"app", "troupe-drill"},           {"engine", setting.engine},
                       {"device", setting.device},        {"ranks", setting.ranks},
                       {"policy", setting.policy},        {"repetitions", options.repetitions},
                       {"in_run", options.in_run},        {"victims", options.victims},
                       {"kept_bytes", options.kept_bytes}};
  auto text = app::json_text(header);
  text.pop_back();  // its closing brace
  const auto append = [&](const char* key, const std::vector<Json>& lines) {
    text += fmt::format(",\n\"{}\":[", key);
    for (const auto* gap = "\n"; const auto& line : lines) {
      text += gap + app::json_text(line);
      gap = ",\n";
    }
    text += "]";
  };
  std::vector<Json> measured, larger, said;
  for (const auto& one : series) measured.push_back(to_json(one, setting));
  for (const auto& world : simulated) larger.push_back(to_json(world));
  append("series", measured);
  append("simulated", larger);
  for (const auto& event : health) {
    said.push_back({{"rank", event.rank},
                    {"kind", std::string(to_string(event.kind))},
                    {"text", event.text},
                    {"failing", event.failing}});
  }
  append("health", said);
  return app::write_report_file(options.json, text + "\n}");
}

}  // namespace troupe::drill
