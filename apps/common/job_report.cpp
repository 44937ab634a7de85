#include "job_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "report_file.hpp"

namespace troupe::app {

std::vector<std::string> devices_of(Runtime& runtime) {
  auto& world = runtime.world();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return world.gather_text(fmt::format("rank {} on {}: {} {}", world.rank(), host,
                                       runtime.device().info().name, runtime.device().info().uuid));
}

nlohmann::json to_json(const std::vector<Recovery>& recoveries) {
  auto list = nlohmann::json::array();
  for (const auto& one : recoveries) {
    list.push_back({{"rank", one.rank},
                    {"kind", one.kind},
                    {"iteration", one.iteration},
                    {"epoch", one.epoch},
                    {"total_ms", one.total_ms},
                    {"lost_buffers", one.lost_buffers},
                    {"repeated_iterations", one.repeated_iterations}});
    for (const auto& time : kRecoveryTimes)
      list.back()[fmt::format("{}_ms", time.name)] = one.*time.ms;
  }
  return list;
}

std::string to_text(const std::vector<Recovery>& recoveries, std::string_view step) {
  auto text = fmt::format("Recoveries: {}\n", recoveries.size());
  for (const auto& one : recoveries) {
    // The program runs ahead of its device, which may have been lost in an earlier one.
    const auto where = one.iteration < 0 ? fmt::format(", before the first {}", step)
                                         : fmt::format(", noticed in {} {}", step, one.iteration);
    text += fmt::format("  rank {}, {}{}: {:.1f} ms until epoch {}, {} {}s repeated\n", one.rank,
                        one.kind, where, one.total_ms, one.epoch, one.repeated_iterations, step);
  }
  return text;
}

nlohmann::json to_json(const std::vector<Corruption>& corruptions) {
  auto list = nlohmann::json::array();
  for (const auto& one : corruptions) {
    list.push_back({{"found", std::string(to_string(one.found))},
                    {"rank", one.rank},
                    {"gpu", one.gpu},
                    {"host", one.host},
                    {"first_step", one.first_step},
                    {"last_step", one.last_step},
                    {"entry", one.entry},
                    {"element", one.element},
                    {"count", one.count},
                    {"wrong", one.wrong},
                    {"right", one.right},
                    {"persistent", one.persistent}});
  }
  return list;
}

std::string to_text(const std::vector<Corruption>& corruptions) {
  if (corruptions.empty()) return {};
  auto text = fmt::format("Wrong numbers: {}\n", corruptions.size());
  for (const auto& one : corruptions) text += "  " + in_words(one) + "\n";
  return text;
}

std::vector<double> slowest_times(World& world, const std::vector<double>& mine,
                                  std::int64_t first) {
  std::vector<std::vector<double>> sent(static_cast<std::size_t>(world.size()));
  sent[0].assign(mine.begin() + std::clamp<std::int64_t>(first, 0, std::ssize(mine)), mine.end());
  const auto all = world.exchange_values(sent);
  auto slowest = all[0];
  for (const auto& times : all) {
    for (std::size_t i = 0; i < slowest.size(); ++i) slowest[i] = std::max(slowest[i], times[i]);
  }
  return slowest;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void require_report_file(World& world, const std::string& path) {
  world.agree(world.rank() == 0 ? check_report_file(path) : Result<void>());
}

int conclude(World& world, bool right, const std::string& json_path,
             const std::function<std::string()>& text,
             const std::function<nlohmann::json()>& json) {
  Result<void> written;
  if (world.rank() == 0) {
    std::fputs(text().c_str(), stdout);
    std::fflush(stdout);
    if (!json_path.empty()) written = write_report_file(json_path, json_text(json(), 2));
  }
  world.agree(written);
  return right ? kExitSuccess : kExitFailure;
}

}  // namespace troupe::app
