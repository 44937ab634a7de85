#include "rank/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace troupe::rank_process {
namespace {

/// A value of a label, as the format wants it.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else {
      if (c == '\\' || c == '"') result += '\\';
      result += c;
    }
  }
  return result;
}

class Text {
 public:
  Text(const Metrics& metrics)
      : labels_(fmt::format("job=\"{}\",rank=\"{}\"", escaped(metrics.job), metrics.rank)) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(double value) { text_ += fmt::format("{}{{{}}} {}\n", name_, labels_, value); }
  void sample(std::string_view label, std::string_view of, double value) {
    text_ += fmt::format("{}{{{},{}=\"{}\"}} {}\n", name_, labels_, label, escaped(of), value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string labels_, name_, text_;
};

double of(std::uint64_t count) {
  return static_cast<double>(count);
}

/// A sum over the states that went to disk in each way.
void add_saved(Text& text, const std::vector<SavedCheckpoint>& saved, std::string_view name,
               std::string_view help, double (*value)(const SavedCheckpoint&)) {
  text.family(name, "counter", help);
  std::map<std::string_view, double> sums;
  for (const auto& one : saved) sums[to_string(one.io)] += value(one);
  for (const auto& [io, sum] : sums) text.sample("io", io, sum);
}

void add_saved(Text& text, const std::vector<SavedCheckpoint>& saved) {
  add_saved(text, saved, "troupe_saved_states_total", "States of this run that are on disk.",
            [](const SavedCheckpoint&) { return 1.0; });
  add_saved(text, saved, "troupe_saved_bytes_total", "Bytes of these states, of all ranks.",
            [](const SavedCheckpoint& one) { return of(one.bytes); });
  add_saved(text, saved, "troupe_saving_seconds_total",
            "Time that writing them took, on the rank where it took longest.",
            [](const SavedCheckpoint& one) { return one.write_seconds; });
  add_saved(text, saved, "troupe_saving_stall_seconds_total",
            "Time that the steps were held up by them, on the rank where longest.",
            [](const SavedCheckpoint& one) { return one.stall_seconds; });
}

void add_health(Text& text, const GpuHealth& health) {
  text.family("troupe_gpu_celsius", "gauge", "The GPU's temperature.");
  if (health.temperature) text.sample(*health.temperature);
  text.family("troupe_gpu_watts", "gauge", "What the GPU takes.");
  if (health.power) text.sample(*health.power);
  text.family("troupe_gpu_megahertz", "gauge", "The clock of the GPU's multiprocessors.");
  if (health.clock) text.sample(*health.clock);
  text.family("troupe_gpu_memory_errors_total", "counter",
              "Errors of the GPU's memory since its driver was loaded.");
  if (health.corrected_errors) text.sample("kind", "corrected", of(*health.corrected_errors));
  if (health.uncorrected_errors) text.sample("kind", "uncorrected", of(*health.uncorrected_errors));
  text.family("troupe_gpu_remapped_rows", "gauge",
              "Rows of the GPU's memory that spare ones have replaced.");
  if (health.remapped_rows) text.sample(*health.remapped_rows);
  text.family("troupe_gpu_nvlink_errors_total", "counter",
              "Replays, recoveries and checksum errors of the GPU's NVLinks.");
  if (health.nvlink_errors) text.sample(of(*health.nvlink_errors));
  text.family("troupe_gpu_slowed", "gauge", "1 for each reason why the GPU's clocks are low now.");
  if (!health.slowed_by) return;
  for (const auto& reason : *health.slowed_by) text.sample("reason", reason, 1);
}

}  // namespace

std::string to_prometheus(const Metrics& metrics) {
  Text text(metrics);
  const auto& totals = metrics.totals;
  text.family("troupe_operations_total", "counter", "Operations that have ended, by library.");
  for (const auto& [library, sum] : totals.libraries)
    text.sample("library", library, of(sum.operations));
  text.family("troupe_bytes_total", "counter",
              "Bytes of the operands of the operations that have ended, by library.");
  for (const auto& [library, sum] : totals.libraries)
    text.sample("library", library, of(sum.bytes));
  text.family("troupe_errors_total", "counter",
              "Operations that have ended with an error, by its class.");
  for (const auto& [error, count] : totals.errors) text.sample("class", error, of(count));
  text.family("troupe_lost_records_total", "counter",
              "Operations that the figures above lack, because they passed too fast.");
  text.sample(of(totals.lost));
  text.family("troupe_queue_depth", "gauge",
              "Operations from the oldest that has not ended to the newest.");
  text.sample(of(metrics.queue_depth));
  text.family("troupe_epoch", "gauge", "The epoch of the world.");
  text.sample(metrics.epoch);
  text.family("troupe_commits_total", "counter", "Commits that all ranks have.");
  text.sample(of(metrics.commits));
  add_saved(text, metrics.saved);
  text.family("troupe_recoveries_total", "counter", "Losses that the world has recovered from.");
  text.sample(static_cast<double>(metrics.recoveries.size()));
  text.family("troupe_recovery_seconds_total", "counter",
              "Time that recoveries have taken, by phase; a recovery from several losses at once "
              "counts once.");
  Recovery sum;
  std::uint32_t epoch = 0;
  for (const auto& recovery : metrics.recoveries) {
    if (std::exchange(epoch, recovery.epoch) == recovery.epoch) continue;
    for (const auto& time : kRecoveryTimes) sum.*time.ms += recovery.*time.ms;
  }
  for (const auto& time : kRecoveryTimes) text.sample("phase", time.name, sum.*time.ms / 1e3);
  text.family("troupe_verified_intervals_total", "counter",
              "Intervals between commits that were done twice.");
  text.sample(static_cast<double>(metrics.verified));
  text.family("troupe_corruptions_total", "counter",
              "Wrong numbers that were found, by how often the same rank had them.");
  const auto persistent = std::count_if(metrics.corruptions.begin(), metrics.corruptions.end(),
                                        [](const auto& one) { return one.persistent; });
  text.sample("seen", "once", static_cast<double>(std::ssize(metrics.corruptions) - persistent));
  text.sample("seen", "again", static_cast<double>(persistent));
  text.family("troupe_waiting_seconds_total", "counter",
              "Time of the device in collectives, and without work before them.");
  text.sample(metrics.waiting_seconds);
  text.family("troupe_idle_seconds_total", "counter",
              "Time in which the rank had submitted nothing to its device.");
  text.sample(metrics.idle_seconds);
  text.family("troupe_slowness", "gauge",
              "How many times as long as the median rank's own work this slow rank's takes; 0: it "
              "is not slow.");
  text.sample(metrics.slowness);
  text.family("troupe_memory_bytes", "gauge", "Device memory, by what has taken it.");
  for (const auto& use : metrics.memory) text.sample("cause", use.cause, of(use.bytes));
  add_health(text, metrics.health);
  text.family("troupe_gpu_health_events_total", "counter",
              "What the GPU has said of its health while the job ran, by kind.");
  for (const auto& [kind, count] : metrics.health_events)
    text.sample("kind", to_string(kind), of(count));
  return text.take();
}

std::string metrics_file(const std::string& file, int rank) {
  auto path = std::filesystem::path(file);
  const auto extension = path.extension().string();
  path.replace_extension();
  return path.string() + "." + std::to_string(rank) + extension;
}

}  // namespace troupe::rank_process
