#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include <troupe/lib/operations.hpp>
#include <troupe/troupe.hpp>

#include "burn_in.hpp"
#include "health.hpp"
#include "libraries.hpp"
#include "look_over.hpp"
#include "operations.hpp"
#include "report_file.hpp"

// troupe-info: what a job has to work with, per rank: host, device, binding, versions, operations.

namespace troupe::info {
namespace {

/// "0-3,8" from this process's affinity mask.
std::string bound_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return "unknown";
  std::string text;
  for (int first = 0; first < CPU_SETSIZE; ++first) {
    if (CPU_ISSET(first, &set) == 0) continue;
    int last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set) != 0) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text;
}

/// The NUMA nodes that this process's memory may come from, as the kernel writes them.
std::string allowed_nodes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kKey = "Mems_allowed_list:";
    if (!line.starts_with(kKey)) continue;
    const auto value = line.find_first_not_of(" \t", kKey.size());
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "unknown";
}

/// Until the standbys of all ranks are up and have their communicator, so that their memory is
/// known; some seconds at most.
void await_standbys(Runtime& runtime) {
  auto& world = runtime.world();
  if (runtime.config().text("standby") == "off" || runtime.config().text("isolation") == "thread")
    return;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);;) {
    const auto ready =
        world.gather_values(world.standby_ready() && world.standby_memory().has_value());
    const auto late = world.gather_values(std::chrono::steady_clock::now() > end);
    if (std::find(ready.begin(), ready.end(), false) == ready.end() || late[0]) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

nlohmann::json memory_of(Runtime& runtime) {
  auto memory = nlohmann::json::object();
  const auto all = runtime.device().memory_use();
  if (!all.ok()) return memory;
  for (const auto& [cause, bytes] : *all) memory[cause] = bytes;
  return memory;
}

/// Empty: there is no GPU, or it does not tell.
nlohmann::json health_of(const Device& device) {
  const auto health = device.health();
  return health.ok() ? health_json(*health) : nlohmann::json::object();
}

/// All libraries are open from here on: what memory is used has been asked before.
nlohmann::json describe_rank(Runtime& runtime) {
  const auto& world = runtime.world();
  const auto& device = runtime.device().info();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const auto memory = memory_of(runtime);
  const auto libraries = open_libraries(runtime.device());
  return {{"rank", world.rank()},
          {"host", host},
          {"local_rank", world.local_rank()},
          {"cores", bound_cores()},
          {"actor_cores", runtime.actor_cores()},
          {"numa_nodes", allowed_nodes()},
          {"device",
           {{"name", device.name},
            {"uuid", device.uuid},
            {"bus_id", device.bus_id},
            {"memory_bytes", device.memory_bytes},
            {"standby_bytes", world.standby_memory().value_or(0)},
            {"memory_use", memory},
            {"health", health_of(runtime.device())},
            {"numa_node", device.numa_node}}},
          {"engine", device.engine},
          {"libraries", libraries}};
}

std::string to_text(const nlohmann::json& all) {
  std::string text = fmt::format("troupe: {} ranks, engine {}\n", all["ranks"].size(),
                                 all["engine"].get<std::string>());
  for (const auto& rank : all["ranks"]) {
    const auto& device = rank["device"];
    const auto standby = device["standby_bytes"].get<std::uint64_t>();
    const auto bus = device["bus_id"].get<std::string>();
    const auto bound = rank["actor_cores"].get<std::string>();
    text += fmt::format("  rank {:>3}  host {} (local rank {}), cores {}{}, NUMA nodes {}\n",
                        rank["rank"].get<int>(), rank["host"].get<std::string>(),
                        rank["local_rank"].get<int>(), rank["cores"].get<std::string>(),
                        bound.empty() ? "" : " (actors " + bound + ")",
                        rank["numa_nodes"].get<std::string>());
    text += fmt::format(
        "            {}  {}  {}{:.1f} GiB{}, NUMA node {}\n", device["name"].get<std::string>(),
        device["uuid"].get<std::string>(), bus.empty() ? "" : "bus " + bus + "  ",
        static_cast<double>(device["memory_bytes"].get<std::uint64_t>()) / (1 << 30),
        standby == 0 ? "" : fmt::format(", standby {} MiB", standby >> 20),
        device["numa_node"].get<int>() < 0 ? "unknown"
                                           : std::to_string(device["numa_node"].get<int>()));
    std::string memory;
    for (const auto& [cause, bytes] : device["memory_use"].items()) {
      memory += fmt::format("{}{} {} MiB", memory.empty() ? "" : ", ", cause,
                            bytes.get<std::uint64_t>() >> 20);
    }
    text += fmt::format("            memory: {}\n", memory);
    if (!device["health"].empty())
      text += fmt::format("            health: {}\n", health_text(device["health"]));
  }
  text += "libraries\n";
  text += libraries_text(all["ranks"]);
  text += fmt::format("  {:<11} {}\n", "MPI", all["mpi"].get<std::string>());
  return text + "operations, and the dtypes that each engine computes them in\n" +
         operations_text(all["operations"], all["engine"].get<std::string>(),
                         missing_of(all["ranks"][0]["libraries"]));
}

/// To standard output, and to the file that --json names, if any.
Result<void> show(const Config& config, const std::string& text, const nlohmann::json& json) {
  std::fputs(text.c_str(), stdout);
  const auto& file = config.text("json");
  if (file.empty()) return {};
  return app::write_report_file(file, app::json_text(json, 2));
}

int run(Runtime& runtime) {
  auto& world = runtime.world();
  const auto& file = runtime.config().text("json");
  world.agree(world.rank() == 0 ? app::check_report_file(file) : Result<void>());
  if (runtime.config().flag("operations")) {
    const auto table = operations();
    // The table covers all engines, installed here or not. It opens no library, because opening one
    // writes a line of log.
    const auto text = operations_text(table, runtime.device().info().engine, {});
    world.agree(world.rank() != 0 ? Result<void>() : show(runtime.config(), text, table));
    return kExitSuccess;
  }
  await_standbys(runtime);
  const auto texts = world.gather_text(app::json_text(describe_rank(runtime)));
  Result<void> written;
  if (world.rank() == 0) {
    nlohmann::json all = {{"app", "troupe-info"},
                          {"engine", runtime.device().info().engine},
                          {"mpi", mpi_version()},
                          {"operations", operations()},
                          {"ranks", nlohmann::json::array()}};
    for (const auto& text : texts) all["ranks"].push_back(nlohmann::json::parse(text));
    written = show(runtime.config(), to_text(all), all);
  }
  world.agree(written);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::info

namespace {

const std::vector<troupe::OptionSpec> kOptions = {
    {"check",
     troupe::OptionType::list,
     "none",
     "none|job|collectives,indices,writes",
     "job, or --check alone: looks the job over before it runs, a line for each check; the others "
     "as in all programs",
     {"none", "job", "collectives", "indices", "writes", "products"}},
    {"burn-in", troupe::OptionType::duration, "0", "TIME",
     "as --check, and puts the devices under load for about this long: tests memory and products, "
     "compares rates between ranks; 0: no load"},
    troupe::fault_option(),
    {"operations", troupe::OptionType::flag, "off", "",
     "only the table of operations: which dtypes each engine computes them in"},
    {"json", troupe::OptionType::text, "", "FILE", "write the same as JSON"}};

/// The command line with the word that --check alone stands for.
std::vector<std::string> completed(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) {
    words.emplace_back(argv[i]);
    const bool alone = i + 1 == argc || std::string_view(argv[i + 1]).starts_with('-');
    if (words.back() == "--check" && alone) words.emplace_back("job");
  }
  return words;
}

/// As main() has them: with a null pointer at the end.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace troupe;
  auto words = completed(argc, argv);
  auto arguments = pointers_to(words);
  const auto count = static_cast<int>(words.size());
  const auto config = Config::parse(count, arguments.data(), kOptions);
  const bool asks =
      config.ok() && (config->wants_help() || config->wants_version() || config->wants_print());
  const auto wants_check = [&] {
    const auto& checks = config->list("check");
    return std::find(checks.begin(), checks.end(), "job") != checks.end() ||
           config->duration("burn-in").count() > 0;
  };
  if (config.ok() && !asks && wants_check()) {
    auto more = info::arguments_of_check(count, arguments.data(), *config);
    auto all = pointers_to(more);
    const auto size = static_cast<int>(more.size());
    return info::look_over(size, all.data(), Config::parse(size, all.data(), kOptions).take());
  }
  const Program program{"troupe-info",
                        "Shows what a job has to work with: ranks, hosts, devices, binding, "
                        "versions, operations; or looks it over before it runs.",
                        kOptions};
  return run_program(count, arguments.data(), program, info::run, [](const Config& parsed) {
    const auto faults = info::faults_of_burn_in(parsed, 1);
    return faults.ok() ? Result<void>() : Result<void>(faults.error());
  });
}
