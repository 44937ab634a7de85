#include "driver.hpp"

#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "catalogue/random.hpp"
#include "child.hpp"
#include "job.hpp"
#include "program.hpp"
#include "reduce.hpp"

namespace troupe::torture {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kStarts = 60;  ///< of a job whose runs are asked to stop: each time it comes further

/// Removed with all that is in it; a file system that was mounted in it is unmounted.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& parent) {
    auto text = (std::filesystem::absolute(parent) / "troupe-torture-XXXXXX").string();
    if (::mkdtemp(text.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "a folder for the job");
    path_ = text;
    std::filesystem::create_directory(states());
    std::filesystem::create_directory(near());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    if (mounted_) ::umount2(states().c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path states() const { return path_ / "states"; }
  [[nodiscard]] std::filesystem::path near() const { return path_ / "near"; }
  /// Makes the folder of states a small or a read-only file system; false where that is not
  /// allowed.
  bool mount(JobSpec::Disk disk) {
    const unsigned long flags = disk == JobSpec::Disk::read_only ? MS_RDONLY : 0;
    mounted_ = ::mount("none", states().c_str(), "tmpfs", flags, "size=256k") == 0;
    return mounted_;
  }

 private:
  std::filesystem::path path_;
  bool mounted_ = false;
};

struct Verdict {
  bool good = true;
  std::string what;    ///< the finding
  std::string replay;  ///< the line that brings it again
};

/// The text behind `key` in its line of the output.
std::string line_behind(const std::string& output, const std::string& key) {
  const auto at = output.find(key);
  if (at == std::string::npos) return {};
  return output.substr(at, output.find('\n', at) - at);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// Starts the job of a seed, kills and restarts it as the spec says, and judges its end.
Verdict run_job_of(std::uint64_t seed, std::int64_t programs, const JobSpec& spec,
                   const std::string& executable, std::chrono::nanoseconds limit) {
  static int number = 0;
  Folder folder(spec.folders);
  std::vector<std::string> arguments{"--oversubscribe",          "--bind-to", "none", "-n",
                                     std::to_string(spec.ranks), executable};
  arguments.insert(arguments.end(),
                   {"--seed", std::to_string(seed), "--programs", std::to_string(programs)});
  arguments.insert(arguments.end(), spec.options.begin(), spec.options.end());
  const bool disk_fails = spec.disk != JobSpec::Disk::good && folder.mount(spec.disk);
  if (spec.kills > 0 || disk_fails || spec.near || seed % 2 == 0)
    arguments.insert(arguments.end(), {"--folder", folder.states().string()});
  if (spec.near) arguments.insert(arguments.end(), {"--checkpoint-local", folder.near().string()});
  if (disk_fails) arguments.insert(arguments.end(), {"--disk-fails", "on"});
  const auto command = "mpirun " + joined(arguments);
  Random random(derive(seed, 77));
  for (int start = 0;; ++start) {
    Child child(arguments, folder.path(), fmt::format("{}.{}", ::getpid(), ++number));
    if (start < spec.kills) {
      if (!child.ends_within(std::chrono::milliseconds(random.between(500, 4000)))) {
        child.kill();
        if (const auto left = child.left_behind(); !left.empty())
          return {false, "a killed job leaves behind:" + left, command};
        continue;
      }
    }
    const auto ended = child.wait(limit);
    if (!ended.in_time)
      return {false, fmt::format("the job does not end:\n{}", ended.output), command};
    // A run that was asked to stop goes on in the next job.
    if (ended.status == 75 && spec.kills > 0 && start < kStarts) continue;
    const bool good = ended.status == 0 || (ended.status == 75 && spec.may_end_early);
    if (!good) {
      const auto found = line_behind(ended.output, "FINDING"),
                 replay = line_behind(ended.output, "replay: ");
      if (found.empty())
        return {false, fmt::format("the job ends with status {}:\n{}", ended.status, ended.output),
                command};
      return {false, found, replay.size() > 8 ? replay.substr(8) : command};
    }
    if (const auto left = child.left_behind(); !left.empty())
      return {false, "the job leaves behind:" + left, command};
    // Whoever goes on from states of a job has need of them; else a run that has ended has none.
    const bool keeps = spec.kills > 0 || disk_fails || ended.status != 0;
    if (!keeps &&
        !(std::filesystem::is_empty(folder.states()) && std::filesystem::is_empty(folder.near())))
      return {false, "the job leaves states behind", command};
    std::fputs(ended.output.c_str(), stdout);
    return {};
  }
}

/// The seed that the replay line names.
std::uint64_t seed_in(const std::string& replay, std::uint64_t fallback) {
  const auto at = replay.find("--seed ");
  return at == std::string::npos ? fallback : std::strtoull(replay.c_str() + at + 7, nullptr, 10);
}

/// Makes the failing program of a seed smaller; prints the line that replays what is left.
void reduce_and_print(std::uint64_t seed, const JobSpec& spec, const Config& config,
                      const std::string& executable, std::chrono::nanoseconds limit) {
  const auto size = generate(seed, recipe_of(config, spec.ranks, "cpu")).operations;
  int runs = 0;
  const auto fails = [&](const std::vector<bool>& left_out) {
    auto smaller = spec;
    if (const auto text = to_ranges(left_out); !text.empty())
      smaller.options.insert(smaller.options.end(), {"--leave-out", text});
    // What depends on time does not fail each time.
    for (int attempt = 0; attempt < 3; ++attempt) {
      ++runs;
      const auto verdict = run_job_of(seed, 1, smaller, executable, limit);
      if (!verdict.good && verdict.what.find("no exact values") == std::string::npos) return true;
    }
    return false;
  };
  if (!fails(std::vector<bool>(size, false))) {
    std::printf("three runs of seed %llu alone do not fail: it cannot be reduced\n",
                static_cast<unsigned long long>(seed));
    return;
  }
  const auto left_out = reduce(size, fails);
  const auto left = static_cast<std::size_t>(std::count(left_out.begin(), left_out.end(), false));
  std::printf(
      "reduced, in %d runs, to %zu of %u operations:\nmpirun -n %d troupe-torture --seed %llu "
      "--programs 1 %s --leave-out %s\n",
      runs, left, size, spec.ranks, static_cast<unsigned long long>(seed),
      joined(spec.options).c_str(), to_ranges(left_out).c_str());
  std::fflush(stdout);
}

}  // namespace

JobSpec draw_job(std::uint64_t seed, const Config& config) {
  Random random(derive(seed, 55));
  JobSpec spec;
  spec.folders = config.text("folder");
  if (spec.folders.empty()) spec.folders = std::filesystem::temp_directory_path();
  const auto ranks = config.integer("ranks");
  static const std::vector<int> kRanks{1, 2, 2, 2, 2, 3, 3, 4, 4, 2, 3, 5, 6, 8};
  spec.ranks = ranks > 0 ? static_cast<int>(ranks) : random.of(kRanks);
  const auto place_of = [&](const char* name) {
    return std::find(spec.options.begin(), spec.options.end(), "--" + std::string(name));
  };
  // What is drawn last counts.
  const auto option = [&](const char* name, const std::string& value) {
    if (config.source(name) == "command line") return;
    if (const auto place = place_of(name); place != spec.options.end()) {
      place[1] = value;
    } else {
      spec.options.insert(spec.options.end(), {"--" + std::string(name), value});
    }
  };
  const auto choose = [&](const char* name, std::initializer_list<const char*> values) {
    const std::vector<const char*> list(values);
    const std::string value = random.of(list);
    if (!value.empty()) option(name, value);  // empty: the default
  };
  option("heartbeat-timeout", "1500ms");
  choose("ring-size", {"", "64KiB", "256KiB"});
  choose("standby", {"", "", "local", "off"});
  choose("token-path", {"", "peer", "network", "network", "nccl"});
  choose("replay", {"", "", "off"});
  choose("spin", {"", "0s", "1ms"});
  choose("completion", {"", "", "host_fn", "sync"});
  choose("pinned-pool", {"", "0B", "1MiB"});
  choose("partner", {"", "on", "every"});
  choose("verify", {"", "", "", "1", "1", "2"});
  choose("check", {"", "", "", "writes", "writes,collectives"});
  choose("check-writes-budget", {"", "1"});
  choose("checkpoint-io", {"", "direct", "pinned"});
  if (random.one_in(3)) {
    option("slab-size", "2MiB");
    choose("descriptors", {"96", "256", ""});
  }
  if (random.one_in(12)) {
    option("restart-budget", std::to_string(random.below(2)));
    spec.may_end_early = true;
  }
  const bool respawns = config.text("on-rank-loss") == "respawn";
  if (!respawns && random.one_in(10)) {
    option("rounds", "run");
    option("resume", "on");
    spec.kills = static_cast<int>(random.between(1, 3));
  } else if (!respawns && spec.ranks > 1 && random.one_in(10)) {
    option("on-loss", "shrink");
    if (!spec.may_end_early) option("restart-budget", std::to_string(random.below(2)));
    choose("rejoin-after", {"0s", "200ms", "1s"});
    choose("partner", {"", "", "off"});
    choose("on-health", {"", "shrink"});
    spec.may_end_early = true;  // nobody may be left
  } else if (respawns || (spec.ranks > 1 && random.one_in(8))) {
    option("on-rank-loss", "respawn");
    option("descriptors", "0");  // connections take many
    option("partner", random.one_in(2) ? "on" : "every");
    if (random.one_in(3)) {
      option("on-loss", "shrink");
      spec.may_end_early = true;
    }
  } else if (config.source("disk-fails") != "command line" && random.one_in(12)) {
    spec.disk = random.one_in(2) ? JobSpec::Disk::full : JobSpec::Disk::read_only;
  }
  if (random.one_in(8)) option("faults", "many");
  const auto is_set = [&](const char* name) { return place_of(name) != spec.options.end(); };
  if (!respawns && !is_set("on-loss") && !is_set("on-rank-loss") && !is_set("faults") &&
      random.one_in(20)) {
    option("isolation", "thread");
    option("faults", "off");
    // There a heartbeat that is late ends the rank.
    option("heartbeat-timeout", "50s");
    option("phase-timeout", "55s");
  }
  spec.near = random.one_in(4);
  return spec;
}

int drive(const Config& config, const std::string& executable) {
  if (const auto& folder = config.text("folder");
      !folder.empty() && ::access(folder.c_str(), W_OK | X_OK) != 0) {
    std::fprintf(stderr, "troupe-torture: --folder: %s: %s\n", folder.c_str(),
                 std::strerror(errno));
    return kExitUsage;
  }
  const auto first = static_cast<std::uint64_t>(config.integer("seed"));
  const auto limit = 10 * config.duration("deadline");
  const auto start = Clock::now();
  const auto until = start + std::chrono::duration<double>(60 * config.real("minutes"));
  const auto programs = std::max<std::int64_t>(1, config.integer("programs"));
  for (auto seed = first;; seed += static_cast<std::uint64_t>(programs)) {
    auto spec = draw_job(seed, config);
    // What was given to the driver holds for its jobs.
    auto given = this_program().options;
    const auto runtime = runtime_options();
    given.insert(given.end(), runtime.begin(), runtime.end());
    for (const auto& one : given) {
      for (const auto& own : {"seed", "programs", "minutes", "reduce", "ranks", "folder"})
        if (one.name == own) goto next;
      if (config.source(one.name) == "command line")
        spec.options.insert(spec.options.end(), {"--" + one.name, config.text(one.name)});
    next:;
    }
    std::printf("seed %llu: %d ranks, %s\n", static_cast<unsigned long long>(seed), spec.ranks,
                joined(spec.options).c_str());
    std::fflush(stdout);
    const auto verdict = run_job_of(seed, programs, spec, executable, limit);
    if (!verdict.good) {
      std::fprintf(stderr, "%s\nreplay: %s\n", verdict.what.c_str(), verdict.replay.c_str());
      if (config.flag("reduce"))
        reduce_and_print(seed_in(verdict.replay, seed), spec, config, executable, limit);
      return kExitFailure;
    }
    if (Clock::now() >= until) return kExitSuccess;
  }
}

}  // namespace troupe::torture
