#include "look_over.hpp"

#include <algorithm>
#include <cstdio>

#include <troupe/troupe.hpp>

#include "burn_in.hpp"
#include "burn_in_verdicts.hpp"
#include "facts.hpp"
#include "report_file.hpp"
#include "verdicts.hpp"
#include "world_checks.hpp"

namespace troupe::info {
namespace {

/// The lines so far, which rank 0 says at once: whatever becomes of the next check, they are there.
class Report {
 public:
  explicit Report(bool speaks) : speaks_(speaks) {}
  void add(const Finding& finding) {
    findings_.push_back(finding);
    if (!speaks_) return;
    std::printf("%s\n", line_of(finding).c_str());
    std::fflush(stdout);
  }
  /// Facts that go to the file beside the checks.
  void add(const char* name, nlohmann::json facts) { facts_[name] = std::move(facts); }
  [[nodiscard]] bool failed() const {
    return std::any_of(findings_.begin(), findings_.end(),
                       [](const auto& f) { return f.verdict == Verdict::failed; });
  }
  /// The last line, which scripts read.
  void end(const std::string& line) const {
    if (!speaks_) return;
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  /// Why the file cannot be written; empty: it is, or none is named.
  [[nodiscard]] std::string write(const std::string& file) const {
    if (file.empty()) return {};
    const auto written = app::write_report_file(file, app::json_text(json(), 2));
    return written.ok() ? "" : written.error().message;
  }

 private:
  [[nodiscard]] nlohmann::json json() const {
    auto checks = nlohmann::json::array();
    for (const auto& [check, verdict, found, remedy] : findings_) {
      checks.push_back({{"check", check},
                        {"result", std::string(to_string(verdict))},
                        {"found", found},
                        {"remedy", remedy}});
    }
    nlohmann::json all = {{"app", "troupe-info"}, {"failed", failed()}, {"checks", checks}};
    all.update(facts_);
    return all;
  }

  bool speaks_;
  std::vector<Finding> findings_;
  nlohmann::json facts_ = nlohmann::json::object();
};

std::vector<RankFacts> gather(const LaunchedJob& job, const RankFacts& facts) {
  std::vector<RankFacts> all;
  for (const auto& text : job.gather_text(app::json_text(nlohmann::json(facts))))
    all.push_back(nlohmann::json::parse(text).get<RankFacts>());
  return all;
}

/// A burn-in that is asked for, and the line that it ends with.
struct LoadOrder {
  std::chrono::nanoseconds time{0};  ///< 0: none
  std::vector<OrderedFault> faults;
  std::string last_line = "burn-in: not run";
};

void put_under_load(Runtime& runtime, const LaunchedJob& job, const RankFacts& facts,
                    LoadOrder& load, Report& report) {
  try {
    const auto ranks = burn_in(runtime, job, facts, load.time, load.faults);
    const auto verdicts = judge_burn_in(ranks);
    for (const auto& judged : verdicts) report.add(judged.finding);
    const auto bad = bad_hosts(verdicts, ranks);
    report.add("burn_in", {{"bad_hosts", bad}, {"ranks", ranks}});
    load.last_line = line_of_hosts(bad);
  } catch (const CollectiveException& e) {
    report.add({"burn-in", Verdict::failed, e.error().to_string(), "another --fault"});
  }
}

/// The checks of a world that is formed, or one line that says why it is not.
void try_world(int argc, char** argv, const Config& config, const LaunchedJob& job, Report& report,
               RankFacts& facts, LoadOrder& load) {
  const auto say = [&](const std::string& check, const std::string& wrong, const std::string& well,
                       Verdict otherwise, const std::string& remedy) {
    report.add(judge_told(check, job.gather_text(wrong), well, otherwise, remedy));
  };
  const std::string of_network =
      "NCCL_DEBUG=INFO tells which network NCCL chooses (NCCL_SOCKET_IFNAME, NCCL_IB_HCA); "
      "--gloo-interface names the CPU engine's";
  try {
    Runtime runtime(argc, argv, config);
    report.add({"world", Verdict::ok, "the ranks have a communicator", ""});
    say("all_reduce", try_all_reduce(runtime, job),
        "the sum over all ranks is right in every element", Verdict::failed, of_network);
    if (config.text("token-path") == "peer")
      say("peer access", try_peers(runtime, job),
          "the ranks of each node reach each other's device memory", Verdict::warning,
          "such data goes through the host's memory; nvidia-smi topo -p2p r shows what the driver "
          "allows");
    say("health", look_at_health(runtime.device()), "no GPU says anything against itself",
        Verdict::warning, "have the GPU reset or the node drained (nvidia-smi -q)");
    if (load.time.count() > 0) put_under_load(runtime, job, facts, load, report);
    for (const auto& library : runtime.device().libraries()) {
      for (const auto& loaded : library.stands_on) facts.versions[loaded.name] = loaded.version;
    }
  } catch (const Exception& e) {  // on all ranks
    report.add(
        {"world", Verdict::failed, "it cannot be formed: " + e.error().to_string(), of_network});
  }
}

/// Slurm has started several tasks that MPI does not know of: each is a job by itself, and has the
/// same to say.
bool repeats_another(const RankFacts& facts, const LaunchedJob& job) {
  const auto variable = [&facts](const char* name) {
    const auto found = facts.environment.find(name);
    return found == facts.environment.end() ? std::string() : found->second;
  };
  const auto task = variable("SLURM_PROCID");
  return job.size() == 1 && variable("OMPI_COMM_WORLD_SIZE").empty() && !task.empty() &&
         task != "0";
}

}  // namespace

std::vector<std::string> arguments_of_check(int argc, char** argv, const Config& config) {
  std::vector<std::string> arguments(argv, argv + argc);
  const std::pair<const char*, const char*> kWishes[] = {
      {"standby", "off"}, {"op-timeout", "30s"}, {"token-path", "peer"}};
  for (const auto& [name, value] : kWishes) {
    if (config.given(name)) continue;
    arguments.push_back(std::string("--") + name);
    arguments.emplace_back(value);
  }
  return arguments;
}

int look_over(int argc, char** argv, const Config& config) {
  LaunchedJob job(argc, argv);
  const auto file = job.rank() == 0 ? app::check_report_file(config.text("json")) : Result<void>();
  const auto refused = job.gather_text(file.ok() ? std::string() : file.error().message).front();
  if (!refused.empty()) {
    if (job.rank() == 0) std::fprintf(stderr, "troupe-info: %s\n", refused.c_str());
    return kExitUsage;
  }
  LoadOrder load;
  load.time = config.duration("burn-in");
  auto faults = faults_of_burn_in(config, job.size());
  if (!faults.ok()) {
    if (job.rank() == 0) std::fprintf(stderr, "troupe-info: %s\n", faults.error().message.c_str());
    return kExitUsage;
  }
  load.faults = std::move(*faults);
  auto facts = facts_of(job);
  Report report(job.rank() == 0 && !repeats_another(facts, job));
  const Wants wants{.pinned_bytes = config.bytes("pinned-pool"),
                    .ring_bytes = config.bytes("ring-size"),
                    .slab_bytes = config.bytes("slab-size"),
                    .folder = config.text("checkpoint-dir"),
                    .near = config.text("checkpoint-local")};
  add_device(facts, job.try_device(config));
  look_at_folder(job, wants.folder, facts);
  look_at_near_folder(wants.near, facts);
  auto ranks = gather(job, facts);
  for (const auto& finding :
       {judge_tasks(ranks), judge_cores(ranks), judge_places(ranks),
        judge_descriptors(ranks, wants), judge_locked_memory(ranks, wants),
        judge_shared_memory(ranks), judge_folder(ranks, wants), judge_near_folder(ranks, wants)})
    report.add(finding);
  const auto devices = judge_devices(ranks), memory = judge_host_memory(ranks, wants);
  report.add(devices);
  report.add(memory);
  if (devices.verdict == Verdict::failed || memory.verdict == Verdict::failed) {
    report.add({"world", Verdict::failed, "not tried, and with it no all_reduce", "see above"});
  } else {
    try_world(argc, argv, config, job, report, facts, load);
    ranks = gather(job, facts);
  }
  report.add(judge_versions(ranks));
  auto written = job.rank() == 0 ? report.write(config.text("json")) : std::string();
  written = job.gather_text(written).front();
  if (!written.empty() && job.rank() == 0)
    std::fprintf(stderr, "troupe-info: %s\n", written.c_str());
  if (load.time.count() > 0) report.end(load.last_line);
  return report.failed() || !written.empty() ? kExitFailure : kExitSuccess;
}

}  // namespace troupe::info
