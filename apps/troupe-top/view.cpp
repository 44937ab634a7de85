#include "view.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::top {
namespace {

std::string bytes(std::uint64_t count) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, kUnits[unit]);
}

std::string duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.1f} ms", 1e3 * seconds);
  if (seconds < 100) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} s", seconds);
}

/// The busiest queue.
double busiest(const RunningRank& rank) {
  double most = 0;
  for (const auto& queue : rank.queues) most = std::max(most, queue.busy);
  return most;
}

std::string host_of(const RunningRank& rank) {
  std::string text = rank.host_state;
  if (rank.host_state == "runs" || rank.host_state == "is stopped" ||
      rank.host_state == "in the rank") {
    text += !rank.recorded ? ", not recorded"
            : rank.under_way.empty()
                ? ", idle"
                : fmt::format(", {} for {}", rank.under_way, duration(rank.under_way_seconds));
  }
  if (!rank.active) text += rank.epoch == 0 ? "; the world forms" : "; the world is formed again";
  return text;
}

/// What matters most comes first: a narrow terminal cuts the rest.
constexpr auto kColumns = "  {:>4} {:>8} {:>5} {:>6} {:>10} {:>5} {:>6} {:>9}  {:<44} {}\n";

std::string heading(const RunningRank& first, std::ptrdiff_t here) {
  return fmt::format("job {}: {}\n  {} of {} ranks here, since {}\n", first.job, first.command,
                     here, first.size, duration(first.seconds)) +
         fmt::format(kColumns, "rank", "pid", "epoch", "recov.", "commands/s", "busy", "queues",
                     "held", "device host", "device");
}

std::string line(const RunningRank& rank) {
  return fmt::format(
      kColumns, rank.rank, rank.pid, rank.epoch, rank.recoveries,
      rank.commands_per_second ? fmt::format("{:.0f}", *rank.commands_per_second) : "-",
      rank.recorded ? fmt::format("{:.0f} %", 100 * busiest(rank)) : "-",
      rank.recorded ? std::to_string(rank.queues.size()) : "-", bytes(rank.held_bytes),
      host_of(rank), rank.device.empty() ? "-" : rank.device);
}

}  // namespace

std::string to_text(const std::vector<RunningRank>& ranks, const std::string& host,
                    const std::string& job) {
  if (ranks.empty()) {
    return job.empty() ? fmt::format("{}: no troupe job of this user runs here\n", host)
                       : fmt::format("{}: job {} does not run here\n", host, job);
  }
  std::string text;
  for (auto first = ranks.begin(); first != ranks.end();) {
    const auto end = std::find_if(first, ranks.end(),
                                  [&](const RunningRank& rank) { return rank.job != first->job; });
    if (first != ranks.begin()) text += '\n';
    text += host + ", " + heading(*first, end - first);
    for (; first != end; ++first) text += line(*first);
  }
  return text;
}

std::string to_json(const std::vector<RunningRank>& ranks, const std::string& host) {
  auto list = nlohmann::json::array();
  for (const auto& rank : ranks) {
    auto queues = nlohmann::json::array();
    for (const auto& queue : rank.queues)
      queues.push_back({{"queue", queue.index}, {"busy", queue.busy}});
    nlohmann::json one{{"job", rank.job},
                       {"command", rank.command},
                       {"rank", rank.rank},
                       {"size", rank.size},
                       {"pid", rank.pid},
                       {"device", rank.device},
                       {"epoch", rank.epoch},
                       {"active", rank.active},
                       {"recoveries", rank.recoveries},
                       {"held_bytes", rank.held_bytes},
                       {"seconds", rank.seconds},
                       {"host_pid", rank.host_pid},
                       {"host_state", rank.host_state},
                       {"recorded", rank.recorded},
                       {"commands", rank.commands},
                       {"queues", queues}};
    if (rank.commands_per_second) one["commands_per_second"] = *rank.commands_per_second;
    if (!rank.under_way.empty()) {
      one["under_way"] = rank.under_way;
      one["under_way_seconds"] = rank.under_way_seconds;
    }
    list.push_back(std::move(one));
  }
  const nlohmann::json all{{"host", host}, {"ranks", list}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string on_terminal(const std::string& text, unsigned columns) {
  std::string shown = "\033[H";  // to the first place
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    shown += text.substr(at, std::min<std::size_t>(end - at, columns)) + "\033[K\n";
    at = end + 1;
  }
  return shown + "\033[J";  // nothing below
}

}  // namespace troupe::top
