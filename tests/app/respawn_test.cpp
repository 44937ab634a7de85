#include <troupe/recovery.hpp>

#include "report_job.hpp"

// Ranks whose processes die, and come back: the result is that of a run without, bit for bit.

namespace troupe::test {
namespace {

const Arguments kRespawn{"--on-rank-loss", "respawn"};
const Arguments kProblem{"--points",   "10,8,6", "--steps",        "200",
                         "--together", "4",      "--commit-every", "20"};

/// Runs it with these faults to a good end; its report, whose result is that of an undisturbed run.
Json struck(int ranks, const Arguments& faults) {
  const auto undisturbed = report_of(ranks, kProblem);
  auto report = report_of(ranks, kProblem + kRespawn + faults);
  EXPECT_TRUE(report.value("right", false));
  EXPECT_EQ(report["largest_error"], undisturbed["largest_error"]);
  return report;
}

/// How many recoveries of that kind there were.
int count(const Json& report, const std::string& kind) {
  int found = 0;
  for (const auto& recovery : report["recoveries"]) found += recovery["kind"] == kind ? 1 : 0;
  return found;
}
/// From the death of a process.
int deaths(const Json& report) {
  return count(report, "rank");
}

TEST(Respawn, AnyRankMayDie) {
  const int ranks = ranks_here(4);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(rank);
    const auto report = struck(ranks, {"--fault", "rank@90:" + std::to_string(rank)});
    ASSERT_EQ(report["recoveries"].size(), 1u);
    EXPECT_EQ(report["recoveries"][0]["kind"], "rank");
    EXPECT_EQ(report["recoveries"][0]["rank"], rank);
  }
}

TEST(Respawn, SeveralMayDieAtOnce) {
  const int ranks = ranks_here(4);
  if (ranks < 4) GTEST_SKIP() << "too few";
  EXPECT_EQ(deaths(struck(ranks, {"--fault", "rank@90:0", "--fault", "rank@90:2"})), 2);
  EXPECT_EQ(deaths(struck(ranks, {"--fault", "rank@90:0", "--fault", "rank@90:1", "--fault",
                                  "rank@90:2", "--fault", "rank@90:3"})),
            4);
}

/// The copy of rank 1's part is with rank 2, which dies with it. What rank 1 has left in device
/// memory is all that is left of its part.
TEST(Respawn, NeighboursMayDieAtOnce) {
  const int ranks = ranks_here(4);
  if (ranks < 4) GTEST_SKIP() << "too few";
  Job job(ranks,
          kProblem + kRespawn +
              Arguments{"--fault", "rank@90:1", "--fault", "rank@90:2", "--log-level", "info"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.out().find("Solution after step 200: right"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("going on with 4 of 4 ranks from step "), std::string::npos);
  EXPECT_EQ(job.out().find("going on with 4 of 4 ranks from step 0"), std::string::npos)
      << job.out();
  EXPECT_TRUE(job.nothing_left());
}

/// Jobs with states in a folder of the node, beside one that all see.
class NearStates : public ::testing::Test {
 protected:
  [[nodiscard]] Arguments saving(const Arguments& problem = kProblem) const {
    return problem + Arguments{"--checkpoint-dir", scratch_.file("all"), "--checkpoint-local",
                               scratch_.file("node")};
  }
  [[nodiscard]] fs::path states(const std::string& folder) const {
    return scratch_.file(folder) / "troupe-heat";
  }
  /// A job that a rank ends in step 90.
  void leave_states(const Arguments& options = {}) const {
    Job job(ranks_, saving() + options + Arguments{"--fault", "rank@90:0", "--log-level", "error"});
    EXPECT_EQ(job.wait(), 128 + SIGKILL) << job.err();
    EXPECT_TRUE(steps("all").empty());
  }
  /// The steps of the states in a folder.
  [[nodiscard]] std::vector<int> steps(const std::string& folder) const {
    std::vector<int> found;
    for (int step = 0; step <= 200; step += 20) {
      if (fs::exists(states(folder) / ("step-" + std::to_string(step)))) found.push_back(step);
    }
    return found;
  }
  void expect_same(const Json& report) const {
    EXPECT_TRUE(report.value("right", false));
    EXPECT_EQ(report["largest_error"], report_of(ranks_, kProblem)["largest_error"]);
  }

  const int ranks_ = ranks_here(3);
  const Scratch scratch_;
};

TEST_F(NearStates, AreGoneOnFrom) {
  leave_states();
  const auto left = steps("node");
  ASSERT_FALSE(left.empty());
  const auto report = report_of(ranks_, saving());
  EXPECT_EQ(report["restarted_from"], left.back());
  expect_same(report);
  EXPECT_FALSE(fs::exists(states("node"))) << "of no use behind a good end";
  // A newer state in the folder that all see comes first.
  leave_states();
  fs::create_directories(states("all"));
  fs::copy(states("node") / ("step-" + std::to_string(left.back())),
           states("all") / ("step-" + std::to_string(left.back())));
  fs::remove_all(states("node") / ("step-" + std::to_string(steps("node").back())));
  EXPECT_EQ(report_of(ranks_, saving())["restarted_from"], left.back());
}

TEST_F(NearStates, WhatIsDamagedIsNamedAndTheOlderStateUsed) {
  leave_states({"--partner", "every"});
  const auto left = steps("node");
  ASSERT_EQ(left.size(), 2u);
  const auto part = states("node") / ("step-" + std::to_string(left.back())) / "part-0.troupe";
  auto bytes = read_file(part);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(part, std::ios::binary) << bytes;
  const auto file = scratch_.file("report.json");
  Job job(ranks_, saving() + Arguments{"--json", file, "--log-level", "warn"});
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.err().find("part-0.troupe: the checksum of entry "), std::string::npos)
      << job.err();
  const auto report = Json::parse(read_file(file));
  EXPECT_EQ(report["restarted_from"], left.front());
  expect_same(report);
}

TEST_F(NearStates, OfAnotherProblemAreRefused) {
  leave_states();
  const auto refused = [&](const Arguments& options, const std::string& why) {
    Job job(ranks_, options + Arguments{"--log-level", "error"});
    EXPECT_EQ(job.wait(), 2);
    EXPECT_NE(job.err().find(why), std::string::npos) << job.err();
    EXPECT_TRUE(job.nothing_left());
  };
  refused(
      saving({"--points", "12,8,6", "--steps", "200", "--together", "4", "--commit-every", "20"}),
      "is of another problem: ");
  const auto folder = scratch_.file("all").string();
  refused(kProblem + Arguments{"--checkpoint-local", folder},
          "checkpoint-local want a folder that all ranks see, too");
  refused(kProblem + Arguments{"--checkpoint-dir", folder, "--checkpoint-local", folder},
          "another folder than checkpoint-dir");
  const auto anew = report_of(ranks_, saving() + Arguments{"--restart", "never"});
  EXPECT_EQ(anew["restarted_from"], -1);
}

/// With the processes goes all host memory. What lies on the node is left.
TEST_F(NearStates, OutliveAllRanks) {
  if (ranks_ < 2) GTEST_SKIP() << "nobody has a copy";
  Arguments faults;
  for (int rank = 0; rank < ranks_; ++rank)
    faults = faults + Arguments{"--fault", "rank@90:" + std::to_string(rank)};
  Job job(ranks_, saving() + kRespawn + faults);
  EXPECT_EQ(job.wait(), 0) << job.err();
  EXPECT_NE(job.out().find("Solution after step 200: right"), std::string::npos) << job.out();
  EXPECT_FALSE(fs::exists(states("node")));
}

TEST(Respawn, OneMayDieAgainAndAgain) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  EXPECT_EQ(deaths(struck(
                ranks, {"--fault", "rank@50:1", "--fault", "rank@110:1", "--fault", "rank@150:0"})),
            3);
}

/// In each phase of the recovery from another fault, the rank that leads and one that does not.
TEST(Respawn, InEachPhaseOfARecovery) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  for (const auto& phase : kRecoveryPhases) {
    for (const int rank : {0, ranks - 1}) {
      SCOPED_TRACE(std::string(phase) + ":" + std::to_string(rank));
      const auto report =
          struck(ranks, {"--standby", "off", "--fault", "kill@70:1", "--fault",
                         "rank@" + std::string(phase) + ":" + std::to_string(rank)});
      EXPECT_EQ(deaths(report), 1);
    }
  }
}

/// A process that is stopped answers nobody. It is ended, and has died like any other.
TEST(Respawn, ARankThatIsStopped) {
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  for (const int rank : {0, ranks - 1}) {
    SCOPED_TRACE(rank);
    const Scratch scratch;
    const auto file = scratch.file("report.json");
    Job job(ranks,
            kProblem + kRespawn +
                Arguments{"--rank-silence", "1s", "--fault", "stop@90:" + std::to_string(rank),
                          "--json", file, "--log-level", "error"});
    EXPECT_EQ(job.wait(), 0) << job.err();
    EXPECT_NE(job.err().find("rank " + std::to_string(rank) + " has not answered for 1"),
              std::string::npos)
        << job.err();
    EXPECT_TRUE(job.nothing_left());
    const auto report = Json::parse(read_file(file));
    EXPECT_TRUE(report["right"]);
    EXPECT_EQ(deaths(report), 1);
  }
}

/// A rank whose GPU is lost for good, or says that it is failing, goes to a spare place: the same
/// number of ranks, the same result. Where there is none, it is as without spare places.
TEST(Respawn, ARankWhoseGpuIsLostGoesToASparePlace) {
  const int ranks = ranks_here(4) - 1;
  if (ranks < 2) GTEST_SKIP() << "no place to spare, or nobody has a copy";
  const auto undisturbed = report_of(ranks, kProblem);
  const std::pair<std::string, Arguments> cases[] = {
      {"device-failure@90:0", {}}, {"failing-gpu@90:1", {"--on-health", "replace"}}};
  for (const auto& [fault, options] : cases) {
    SCOPED_TRACE(fault);
    const Scratch scratch;
    const auto file = scratch.file("report.json");
    Job job(ranks + 1, kProblem + kRespawn + options +
                           Arguments{"--spares", "1", "--fault", fault, "--json", file,
                                     "--log-level", "error"});
    EXPECT_EQ(job.wait(), 0) << job.err();
    EXPECT_TRUE(job.nothing_left());
    const auto report = Json::parse(read_file(file));
    EXPECT_TRUE(report["right"]);
    EXPECT_EQ(report["largest_error"], undisturbed["largest_error"]);
    EXPECT_EQ(count(report, "node"), 1);
  }
  Job job(ranks, kProblem + kRespawn +
                     Arguments{"--fault", "device-failure@90:0", "--log-level", "error"});
  EXPECT_EQ(job.wait(), 1) << job.err();  // no state is on disk
  EXPECT_TRUE(job.nothing_left());
}

TEST(Respawn, MoreDeathsThanTheBudgetEndTheJob) {
  const int ranks = ranks_here(2);
  Job job(ranks, kProblem + kRespawn +
                     Arguments{"--restart-budget", "1", "--fault", "rank@50:0", "--fault",
                               "rank@90:0", "--log-level", "error"});
  EXPECT_EQ(job.wait(), 75) << job.err();
  EXPECT_NE(job.err().find("more often than restart-budget = 1 allows"), std::string::npos)
      << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Respawn, WithoutItTheJobEndsWithTheRank) {
  Job job(ranks_here(2), kProblem + Arguments{"--fault", "rank@50:0", "--log-level", "error"});
  EXPECT_EQ(job.wait(), 128 + SIGKILL) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Respawn, WhatItCannotGoTogetherWith) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--on-rank-loss", "respawn", "--isolation", "thread"}, "isolation = process"},
      {{"--on-rank-loss", "respawn", "--partner", "off"}, "partner = on"},
      {{"--on-rank-loss", "respawn", "--rehearse"}, "rehearse"},
      {{"--spares", "1"}, "on-rank-loss = respawn"},
      {{"--on-rank-loss", "respawn", "--on-health", "replace"}, "wants spares"},
      {{"--on-rank-loss", "perhaps"}, "on-rank-loss"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
