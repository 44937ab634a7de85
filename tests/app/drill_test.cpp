#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "job.hpp"

// troupe-drill lets device hosts fail, and reports what was measured and lost.

namespace troupe::test {
namespace {

using Json = nlohmann::json;

/// Runs a drill to its end; expects success and nothing left. Its report.
Json drill(int ranks, Arguments arguments, const std::string& kept = "1MiB") {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  for (const auto& more : {"--json", file.c_str(), "--kept", kept.c_str()})
    arguments.emplace_back(more);
  Job job(ranks, arguments);
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(job.err(), "");
  EXPECT_TRUE(job.nothing_left());
  const auto report = Json::parse(read_file(file), nullptr, false);
  EXPECT_TRUE(report.is_object() && report.contains("series")) << job.out();
  return report.is_object() ? report : Json::object();
}

double number(const Json& series, const std::string& key) {
  EXPECT_TRUE(series.contains(key)) << key;
  return series.value(key, -1.0);
}

/// What holds for every series: the phases make up the total, the wall clock saw all of it but
/// what troupe counts back to the fault, and the figures are those of its repetitions.
void expect_measured(const Json& series, int repetitions, double recoveries) {
  SCOPED_TRACE(series.value("name", "unnamed"));
  EXPECT_EQ(number(series, "repetitions"), repetitions);
  EXPECT_TRUE(series.value("kept_intact", false));
  for (const auto& count : series["recoveries"]) EXPECT_EQ(count.get<double>(), recoveries);
  for (const auto& time : kRecoveryTimes) {
    const std::string phase(time.name);
    EXPECT_GE(number(series, phase + "_ms_median"), 0);
    EXPECT_LE(number(series, phase + "_ms_median"), number(series, phase + "_ms_max"));
    EXPECT_LE(number(series, phase + "_ms_max"), number(series, "total_ms_max") + 0.001) << phase;
  }
  EXPECT_GT(number(series, "quiesce_ms_median"), 0);
  EXPECT_GT(number(series, "verify_ms_median"), 0);
  for (const std::string time : {"total", "wall"}) {
    auto values = series.value(time + "_ms_values", std::vector<double>());
    ASSERT_EQ(values.size(), static_cast<std::size_t>(repetitions));
    std::sort(values.begin(), values.end());
    EXPECT_GT(values.front(), 0);
    EXPECT_EQ(number(series, time + "_ms_max"), values.back());
    const auto middle = values.size() / 2;
    EXPECT_DOUBLE_EQ(
        number(series, time + "_ms_median"),
        values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2);
  }
  EXPECT_GE(number(series, "floor_ms_median"), number(series, "detect_ms_median"));
  EXPECT_LE(number(series, "floor_ms_median"), number(series, "total_ms_max") + 0.001);
  // Sixteen all_reduces are on their way on every rank when the fault strikes.
  EXPECT_GE(number(series, "failed_commands_median"), number(series, "ranks"));
  EXPECT_GE(number(series, "lost_buffers_median"), 1);
}

TEST(Drill, MeasuresEachKindOnItsOwn) {
  const int ranks = ranks_here(3);
  const auto report =
      drill(ranks, {"--kinds", on_cuda() ? "kill,segv,trap" : "kill,segv", "--repetitions", "3"});
  EXPECT_EQ(report.value("app", ""), "troupe-drill");
  EXPECT_EQ(report.value("engine", ""), engine());
  EXPECT_EQ(report.value("ranks", 0), ranks);
  EXPECT_EQ(report.value("policy", ""), "standby world");
  ASSERT_EQ(report["series"].size(), on_cuda() ? 3u : 2u);
  EXPECT_EQ(report["series"][0].value("kind", ""), "kill");
  EXPECT_EQ(report["series"][1].value("kind", ""), "segv");
  for (const auto& series : report["series"]) {
    expect_measured(series, 3, 1);
    EXPECT_EQ(series.value("phase", ""), "none");
    // The standby world was up each time: no communicator was formed after the fault.
    EXPECT_EQ(number(series, "form_ms_max"), 0);
    EXPECT_EQ(number(series, "repeated_steps_max"), 0);
  }
}

/// Two ranks are lost for good, one of them in the recovery from the other's loss, and come back.
TEST(Drill, LostRanksGoAndComeBack) {
  const int ranks = ranks_here(4);
  if (ranks < 3) GTEST_SKIP() << "a rank must be left";
  const auto report = drill(ranks, {"--kinds", "kill", "--on-loss", "shrink", "--in-run",
                                    "--phases", "none,quiesce", "--repetitions", "2"});
  ASSERT_EQ(report["series"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& series = report["series"][i];
    SCOPED_TRACE(series.value("name", "unnamed"));
    const bool back = i % 2 != 0;
    EXPECT_EQ(series.value("name", "").find(", back") != std::string::npos, back);
    EXPECT_NE(series.value("name", "").find("on-loss shrink"), std::string::npos);
    EXPECT_TRUE(series.value("kept_intact", false));
    for (const auto& count : series["recoveries"]) EXPECT_EQ(count.get<int>(), i < 2 ? 1 : 2);
    EXPECT_GT(number(series, "quiesce_ms_median"), 0);
    EXPECT_GT(number(series, "wall_ms_median"), 0);
  }
}

/// Ranks' processes die, and come back; what was measured is a part of the state. Some die where a
/// commit is about to begin while the copies of the one before are still on their way.
TEST(Drill, RanksDie) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  for (const auto& victim : {"0", "1"}) {
    SCOPED_TRACE(victim);
    const auto report = drill(
        ranks,
        {"--kinds", "rank", "--on-rank-loss", "respawn", "--victim", victim, "--repetitions", "3"},
        "32MiB");
    ASSERT_EQ(report["series"].size(), 1u);
    const auto& series = report["series"][0];
    EXPECT_EQ(series.value("kind", ""), "rank");
    EXPECT_TRUE(series.value("kept_intact", false));
    EXPECT_EQ(number(series, "repetitions"), 3);
    for (const auto& count : series["recoveries"]) EXPECT_EQ(count.get<int>(), 1);
    // A run that began anew would have noted its last death only.
    const auto walls = series["wall_ms_values"], totals = series["total_ms_values"];
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_GT(walls[i].get<double>(), totals[i].get<double>() / 2) << i;
  }
}

/// Bits change that nothing tells of, in the state and in what no step writes.
TEST(Drill, BitsChange) {
  const auto report = drill(ranks_here(2), {"--kinds", "flip,stray-write", "--verify", "1",
                                            "--victim", "all", "--repetitions", "3"});
  ASSERT_EQ(report["series"].size(), 2u);
  for (const auto& series : report["series"]) {
    EXPECT_TRUE(series.value("kept_intact", false));
    EXPECT_EQ(number(series, "repetitions"), 3);
    for (const auto& count : series["recoveries"]) EXPECT_EQ(count.get<int>(), 0);
    for (const auto& wall : series["wall_ms_values"]) EXPECT_GT(wall.get<double>(), 0);
  }
  Job unverified(1, {"--kinds", "flip"});
  EXPECT_EQ(unverified.wait(), 2);
  EXPECT_NE(unverified.err().find("flip: with --verify 1"), std::string::npos) << unverified.err();
}

TEST(Drill, HasASecondFaultInEachPhase) {
  if (ranks_here(3) < 2) GTEST_SKIP() << "needs 2 ranks";
  std::string phases;
  for (const auto phase : kRecoveryPhases)
    phases += (phases.empty() ? "" : ",") + std::string(phase);
  const auto report = drill(ranks_here(3), {"--kinds", "kill", "--phases", phases, "--repetitions",
                                            "1", "--standby", "local", "--victim", "0"});
  ASSERT_EQ(report["series"].size(), std::size(kRecoveryPhases));
  for (const auto& series : report["series"]) {
    expect_measured(series, 1, 2);
    EXPECT_GT(number(series, "form_ms_max"), 0);
  }
  EXPECT_EQ(report["series"].back().value("name", ""), "kill in restore standby local");
}

TEST(Drill, HasAllRanksFailTogetherWithoutStandbys) {
  const int ranks = ranks_here(3);
  const auto report = drill(
      ranks, {"--kinds", "exit", "--victim", "all", "--repetitions", "1", "--standby", "off"});
  EXPECT_EQ(report.value("victims", std::vector<int>()).size(), static_cast<std::size_t>(ranks));
  ASSERT_EQ(report["series"].size(), 1u);
  expect_measured(report["series"][0], 1, ranks);
}

TEST(Drill, RepeatsStepsInARun) {
  const auto report = drill(ranks_here(2), {"--kinds", "kill", "--in-run", "--repetitions", "2"});
  ASSERT_EQ(report["series"].size(), 1u);
  expect_measured(report["series"][0], 2, 1);
  EXPECT_GE(number(report["series"][0], "repeated_steps_median"), 1);
}

TEST(Drill, SimulatesLargerWorlds) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "the second fault is another rank's";
  const auto report = drill(ranks_here(2), {"--kinds", "kill", "--repetitions", "1", "--phases",
                                            "none,verify", "--world-size", "64,4096"});
  ASSERT_EQ(report["series"].size(), 2u);
  ASSERT_EQ(report["simulated"].size(), 2u) << "one for each size, for the fault that comes alone";
  const auto& small = report["simulated"][0];
  const auto& large = report["simulated"][1];
  EXPECT_EQ(number(small, "ranks"), 64);
  EXPECT_EQ(number(large, "ranks"), 4096);
  for (const auto* world : {&small, &large}) {
    EXPECT_EQ(world->value("kind", ""), "kill");
    EXPECT_GT(number(*world, "control_ms"), 0);
    // The devices take as long as in the world that was measured.
    EXPECT_GT(number(*world, "total_ms"), number(report["series"][0], "quiesce_ms_median"));
    // In every phase every rank is told, and answers.
    EXPECT_GE(number(*world, "messages"), 8 * (number(*world, "ranks") - 1));
  }
  // The tree is deeper; 64 times the ranks are nowhere near 64 times the work for anyone.
  EXPECT_GT(number(large, "control_ms"), number(small, "control_ms"));
  EXPECT_LT(number(large, "most_messages_at_one_rank"),
            4 * number(small, "most_messages_at_one_rank"));
}

TEST(Drill, EndsWhenTheWorldDoes) {
  Job job(ranks_here(2), {"--restart-budget", "1", "--repetitions", "3", "--kept", "1MiB"});
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.complaints()[0].find("budget_exhausted"), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

void expect_refused(int ranks, const Arguments& arguments, const std::vector<std::string>& words) {
  SCOPED_TRACE(words.back());
  Job job(ranks, arguments);
  EXPECT_EQ(job.wait(), 2) << job.out() << job.err();
  const auto lines = job.complaints();
  ASSERT_EQ(lines.size(), 1u) << job.err();
  for (const auto& word : words) EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
  EXPECT_TRUE(job.nothing_left());
}

TEST(Usage, WhatCannotBeMeasuredIsRefused) {
  expect_refused(Job::kNoMpirun, {"--kinds", "kill,explode"}, {"kinds", "explode"});
  expect_refused(Job::kNoMpirun, {"--phases", "lunch"}, {"phases", "lunch"});
  expect_refused(Job::kNoMpirun, {"--phases", "form"}, {"phases", "form"});
  expect_refused(Job::kNoMpirun, {"--repetitions", "0"}, {"repetitions", "0"});
  expect_refused(Job::kNoMpirun, {"--settle", "soon"}, {"settle", "soon"});
  expect_refused(Job::kNoMpirun, {"--kept", "none"}, {"kept", "none"});
  expect_refused(Job::kNoMpirun, {"--isolation", "thread"}, {"isolation", "thread"});
  expect_refused(Job::kNoMpirun, {"--victim", "1"}, {"victim", "1"});
  expect_refused(Job::kNoMpirun, {"--victim", "one"}, {"victim", "one"});
  expect_refused(Job::kNoMpirun, {"--phases", "verify"}, {"phases", "verify"});
  for (const std::string size : {"1", "many", "100000"})
    expect_refused(Job::kNoMpirun, {"--world-size", size}, {"world-size", size});
  expect_refused(Job::kNoMpirun, {"--world-size", "8", "--standby", "local"},
                 {"world-size", "standby"});
  expect_refused(Job::kNoMpirun, {"--on-loss", "shrink"}, {"on-loss", "in-run"});
  expect_refused(Job::kNoMpirun, {"--kinds", "device-failure"}, {"kinds", "on-loss shrink"});
  if (!on_cuda()) expect_refused(2, {"--kinds", "trap"}, {"kinds", "trap"});
  expect_refused(Job::kNoMpirun,
                 {"--repetitions", "1", "--kept", "4B", "--json", "/nonexistent/report.json"},
                 {"/nonexistent/report.json"});
}

}  // namespace
}  // namespace troupe::test
