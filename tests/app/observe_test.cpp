#include <gtest/gtest.h>

#include <array>
#include <map>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "job.hpp"

// What a job shows of itself: its trace, its metrics, its slowest rank.

namespace troupe::test {
namespace {

using Json = nlohmann::json;

constexpr int kCountedBytes = 777 * 8;
constexpr int kSavedBytes = 1000 * 8;  // of a rank of the run
constexpr int kFirstRank = 10;         ///< process of rank 0 in a trace

Json read_json(const fs::path& path) {
  return Json::parse(read_file(path), nullptr, false);
}

std::vector<Json> events(const Json& trace, const std::string& phase, const std::string& category) {
  std::vector<Json> found;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && event.value("cat", "") == category) found.push_back(event);
  }
  return found;
}

/// Fills of the buffer that is counted, by process.
std::map<int, int> counted(const Json& trace) {
  std::map<int, int> fills;
  for (const auto& event : events(trace, "i", "submit")) {
    if (event.at("name") == "memory.fill" && event.at("args").at("bytes") == kCountedBytes)
      ++fills[event.at("pid")];
  }
  return fills;
}

std::map<int, int> of_each(int ranks, int count) {
  std::map<int, int> all;
  for (int rank = 0; rank < ranks; ++rank) all[kFirstRank + rank] = count;
  return all;
}

TEST(Observe, ATraceHasAllCommandsAndTheRecovery) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "needs 2 ranks";
  const Scratch scratch;
  const auto file = scratch.file("new/trace.json");
  Job job(ranks, {"--trace", file, "--fills", "500", "--run", "on"});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  const auto trace = read_json(file);
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace.at("otherData").at("lost"), 0);
  EXPECT_EQ(trace.at("otherData").at("ranks"), ranks);
  EXPECT_EQ(trace.at("otherData").at("recoveries"), 1) << "its first formation is none";
  EXPECT_EQ(counted(trace), of_each(ranks, 500));

  std::map<int, std::set<std::uint64_t>> tickets;
  const auto submitted = events(trace, "i", "submit");
  EXPECT_EQ(trace.at("otherData").at("commands"), submitted.size());
  for (const auto& event : submitted)
    EXPECT_TRUE(
        tickets[event.at("pid")].insert(event.at("args").at("ticket").get<std::uint64_t>()).second);

  std::set<std::string> phases;
  for (const auto& phase : events(trace, "X", "phase")) {
    if (phase.at("pid") == 1) phases.insert(phase.at("name"));
  }
  for (const auto phase : kRecoveryPhases)
    EXPECT_TRUE(phase == "form" || phases.contains(std::string(phase)))
        << phase << ": a standby world takes over, and only that phase is left out";
  std::vector<std::string> recoveries;
  for (const auto& recovery : events(trace, "X", "recovery")) {
    if (recovery.at("pid") == 1) recoveries.push_back(recovery.at("name"));
  }
  ASSERT_EQ(recoveries.size(), 1u);
  EXPECT_TRUE(recoveries[0].starts_with("recovery: rank " + std::to_string(ranks - 1)))
      << recoveries[0];
  EXPECT_FALSE(events(trace, "X", "commit").empty());

  std::map<std::uint64_t, std::array<int, 3>> arrows;
  for (const auto& [phase, place] : {std::pair{"s", 0}, std::pair{"t", 1}, std::pair{"f", 2}}) {
    for (const auto& event : events(trace, phase, "collective"))
      ++arrows[event.at("id").get<std::uint64_t>()][static_cast<std::size_t>(place)];
  }
  EXPECT_GE(arrows.size(), 30u);
  for (const auto& [id, ends] : arrows) {
    EXPECT_EQ(ends[0], 1);
    EXPECT_LE(ends[1], ranks - 2);
    EXPECT_EQ(ends[2], 1);
  }
  for (const auto& left : fs::directory_iterator(scratch.file("new")))
    EXPECT_EQ(left.path(), file) << "a part is left";
}

TEST(Observe, RanksThatShareNoFolderSendTheirParts) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "needs 2 ranks";
  const Scratch scratch;
  Job job(ranks, {"--trace", "trace.json", "--trace-kernels", "on", "--fills", "50"},
          {.environment = {"OBSERVED_APART=" + scratch.file("apart").string()}});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto trace = read_json(scratch.file("apart/0/trace.json"));
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(counted(trace), of_each(ranks, 50));
  // With CUPTI all that the GPU did for them is there.
  if (on_cuda() && job.err().find("without what the GPU does") == std::string::npos) {
    std::map<int, std::set<std::uint64_t>> done;
    for (const auto& event : events(trace, "X", "gpu"))
      done[event.at("pid")].insert(event.at("args").at("ticket").get<std::uint64_t>());
    for (const auto& event : events(trace, "i", "submit")) {
      const auto ticket = event.at("args").at("ticket").get<std::uint64_t>();
      if (event.at("args").at("bytes") == kCountedBytes) {
        EXPECT_TRUE(done[event.at("pid")].contains(ticket)) << ticket;
      }
    }
  }
  for (const auto& left : fs::recursive_directory_iterator(scratch.file("apart")))
    EXPECT_TRUE(left.is_directory() || left.path().filename() == "trace.json") << left.path();
}

TEST(Observe, WhatAnAbruptEndLeavesIsMergedByHand) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  const auto file = scratch.file("trace.json").string();
  Job job(ranks, {"--trace", file, "--fills", "200", "--stay", "on"});
  std::string merge = std::string(TROUPE_TEST_FLIGHT) + " --trace " + file;
  for (int rank = 0; rank < ranks; ++rank) merge += " " + file + ".part." + std::to_string(rank);
  const auto end = std::chrono::steady_clock::now() + 100s;
  const auto merged = [&] {
    if (std::system((merge + " >/dev/null 2>&1").c_str()) != 0) return false;
    return counted(read_json(file)) == of_each(ranks, 200);
  };
  while (!merged() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(20ms);
  job.kill_all();
  EXPECT_TRUE(merged());
  EXPECT_TRUE(job.nothing_left());
}

/// Values of a metric by rank and its own label, of a file in Prometheus' text format.
struct MetricsFile {
  std::map<std::string, std::map<std::string, double>> samples;
  std::set<std::string> typed;
  bool good = true;

  explicit MetricsFile(const fs::path& path) {
    static const std::regex sample(
        R"re(([a-z_]+)\{job="[^"]+",rank="[0-9]+"(?:,[a-z]+="([^"]*)")?\} ([0-9.e+-]+))re");
    static const std::regex type("# TYPE ([a-z_]+) (counter|gauge)");
    std::istringstream text(read_file(path));
    std::smatch found;
    for (std::string line; std::getline(text, line);) {
      if (std::regex_match(line, found, sample)) {
        samples[found[1]][found[2]] = std::stod(found[3]);
      } else if (std::regex_match(line, found, type)) {
        good = typed.insert(found[1]).second && good;
      } else {
        good = line.starts_with("# HELP ") && good;
      }
    }
  }
};

std::set<std::string> documented_metrics() {
  std::set<std::string> names;
  std::istringstream text(read_file(fs::path(TROUPE_SOURCE_DIR) / "docs" / "observing.md"));
  static const std::regex row(R"(\| `(troupe_[a-z_]+)(\{[a-z]+\})?` \|.*)");
  std::smatch found;
  for (std::string line; std::getline(text, line);) {
    if (std::regex_match(line, found, row)) names.insert(found[1]);
  }
  return names;
}

TEST(Observe, MetricsAreThoseThatAreDocumented) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  Job job(ranks, {"--metrics", scratch.file("job.prom"), "--fills", "100", "--run", "on",
                  "--checkpoint-dir", scratch.file("states"), "--checkpoint-every", "10",
                  "--checkpoint-io", "pinned"});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  for (int rank = 0; rank < ranks; ++rank) {
    const MetricsFile metrics(scratch.file("job." + std::to_string(rank) + ".prom"));
    EXPECT_TRUE(metrics.good) << read_file(scratch.file("job." + std::to_string(rank) + ".prom"));
    EXPECT_EQ(metrics.typed, documented_metrics());
    const auto value = [&](const std::string& name, const std::string& label = "") {
      const auto samples = metrics.samples.find(name);
      if (samples == metrics.samples.end() || !samples->second.contains(label)) return -1.0;
      return samples->second.at(label);
    };
    EXPECT_GE(value("troupe_operations_total", "memory"), 100);
    EXPECT_GE(value("troupe_bytes_total", "memory"), 100.0 * kCountedBytes);
    EXPECT_GE(value("troupe_operations_total", "collective"), 31);
    EXPECT_EQ(value("troupe_lost_records_total"), 0);
    EXPECT_EQ(value("troupe_recoveries_total"), 1);
    EXPECT_GT(value("troupe_recovery_seconds_total", "replace"), 0);
    EXPECT_GE(value("troupe_commits_total"), 3);
    // The state of step 10 may not be on disk yet when the device host is killed in step 12.
    EXPECT_GE(value("troupe_saved_states_total", "pinned"), 2);
    EXPECT_GE(value("troupe_saved_bytes_total", "pinned"), 2.0 * ranks * kSavedBytes);
    EXPECT_GT(value("troupe_saving_seconds_total", "pinned"), 0);
    EXPECT_EQ(value("troupe_epoch"), 2);
    EXPECT_EQ(value("troupe_queue_depth"), 0);
    EXPECT_FALSE(metrics.samples.at("troupe_memory_bytes").empty());
  }
}

TEST(Observe, WhatAGpuSaysOfItsHealthIsCountedAndNamedAtTheEnd) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  Job job(ranks, {"--metrics", scratch.file("job.prom"), "--ails", "on"});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  const MetricsFile metrics(scratch.file("job.0.prom"));
  ASSERT_TRUE(metrics.samples.contains("troupe_gpu_health_events_total"));
  EXPECT_EQ(metrics.samples.at("troupe_gpu_health_events_total").at("memory"), 3);
  const auto said = job.out() + job.err();
  const std::string once = "the GPU says: some memory is bad";
  const auto first = said.find(once);
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(once, first + 1), std::string::npos) << "it is said again and again";
  EXPECT_NE(said.find("health: the GPU of rank 0 has said: some memory is bad"), std::string::npos)
      << said;
}

TEST(Observe, TheRankThatIsWaitedForIsNamed) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "needs 2 ranks";
  Job job(ranks, {"--late", "1"});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_TRUE(std::regex_search(
      job.out(),
      std::regex(R"(slowest: rank 1 \(host \S+\) arrived last in (9[0-9]|100) % of 15)")))
      << job.out();
}

TEST(Observe, NobodyIsNamedAfterAFewCollectives) {
  const int ranks = ranks_here(2);
  Job job(ranks, {"--run", "on"});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(job.out().find("slowest"), std::string::npos) << job.out();
}

TEST(Observe, AFileThatCannotBeWrittenIsOneLineAtTheStart) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  scratch.write("file", "in the way");
  const std::vector<Arguments> wrong{{"--trace", scratch.file("file/trace.json")},
                                     {"--trace", scratch.file("")},
                                     {"--metrics", scratch.file("file/job.prom")}};
  for (const auto& arguments : wrong) {
    Job job(ranks, arguments);
    EXPECT_EQ(job.wait(), 2) << arguments[1];
    const auto lines = job.complaints();
    ASSERT_EQ(lines.size(), 1u) << job.err();
    EXPECT_NE(lines[0].find(arguments[0].substr(2) + ": "), std::string::npos) << lines[0];
    EXPECT_TRUE(job.nothing_left());
  }
}

}  // namespace
}  // namespace troupe::test
