#include "saved.hpp"

// Jobs with --on-loss shrink: ranks that lose more device hosts than their budget has.

namespace troupe::test {
namespace {

class Members : public Saved {
 protected:
  /// These ranks are lost for good, each at its iteration.
  [[nodiscard]] static Arguments losing(
      const std::vector<std::pair<int, int>>& iteration_and_rank) {
    Arguments arguments{"--on-loss", "shrink", "--restart-budget", "0", "--rejoin-after", "0s"};
    for (const auto& [iteration, rank] : iteration_and_rank)
      arguments = arguments + Arguments{"--fault", "kill@" + std::to_string(iteration) + ":" +
                                                       std::to_string(rank)};
    return arguments;
  }
  [[nodiscard]] static int last() { return ranks_here(4) - 1; }
};

TEST_F(Members, TheOthersGoOnFromTheLastCommit) {
  if (ranks_here(4) < 3) GTEST_SKIP() << "two of three ranks are lost";
  const auto calm = solve(4, problem());
  std::string log;
  const auto report = solve(4, problem() + losing({{75, last()}, {95, 0}}), &log);
  expect_same(calm, report, false);
  EXPECT_EQ(report["ranks"], ranks_here(4));
  EXPECT_EQ(report["final_ranks"], ranks_here(4) - 2);
  ASSERT_EQ(report["recoveries"].size(), 2u);
  EXPECT_EQ(report["recoveries"][0]["kind"], "failed");
  EXPECT_NE(log.find("the world goes on without this rank"), std::string::npos) << log;
  // Not a step was done anew that was part of an earlier commit than the one before the loss: with
  // the residual history complete, nothing was begun again.
  EXPECT_EQ(report["history"].size(), calm["history"].size());
}

TEST_F(Members, WithoutPartnersTheStateOnDiskIsDealtOut) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a rank is lost";
  const auto calm = solve(4, problem());
  std::string log;
  const Arguments disk{"--partner", "off", "--checkpoint-every", "20"};
  const auto report = solve(4, saving("disk") + disk + losing({{75, last()}}), &log);
  expect_same(calm, report, false);
  EXPECT_TRUE(log.empty() || log.find("error") == std::string::npos) << log;
  // What the smaller world has saved since is another job's, of any size.
  const auto more = solve(4, saving("disk"));
  EXPECT_GE(more["restarted_from"].get<int>(), 60);
  expect_same(calm, more, false);
}

TEST_F(Members, WithoutAnyStateTheyBeginAgain) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a rank is lost";
  const auto calm = solve(4, problem());
  std::string log;
  expect_same(calm,
              solve(4, problem() + Arguments{"--partner", "off"} + losing({{75, last()}}), &log),
              false);
}

/// The stencil's size is per rank, and must not change with the number of ranks.
TEST_F(Members, TheStencilStaysWhatItWas) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a rank is lost";
  const Arguments stencil{"--stencil", "10,9,8",         "--tol", "1e-10",       "--check-every",
                          "5",         "--commit-every", "10",    "--log-level", "warn"};
  const auto calm = solve(4, stencil);
  std::string log;
  const auto report = solve(4, stencil + losing({{15, last()}}), &log);
  for (const auto* key : {"rows", "nonzeros"}) EXPECT_EQ(report[key], calm[key]);
  EXPECT_EQ(report["final_ranks"], ranks_here(4) - 1);
  EXPECT_LE(std::abs(report["iterations"].get<int>() - calm["iterations"].get<int>()), 5);
}

/// Another number of ranks has other grids: the points of a rank are no box any more.
TEST_F(Members, MultigridGoesOnWithOtherGrids) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a rank is lost";
  const Arguments stencil{"--stencil",     "8,16,8", "--precond",      "mg", "--tol",       "1e-10",
                          "--check-every", "1",      "--commit-every", "4",  "--log-level", "warn"};
  const auto calm = solve(4, stencil);
  std::string log;
  const auto report = solve(4, stencil + losing({{6, last()}}), &log);
  for (const auto* key : {"rows", "nonzeros"}) EXPECT_EQ(report[key], calm[key]);
  EXPECT_EQ(report["final_ranks"], ranks_here(4) - 1);
  EXPECT_TRUE(report["converged"].get<bool>());
}

TEST_F(Members, ASmallerWorldCanBeAskedToStop) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a rank is lost";
  const auto calm = solve(4, problem());
  const Arguments loss{"--on-loss", "shrink",  "--rejoin-after",
                       "0s",        "--fault", "device-failure@75:" + std::to_string(last())};
  Job job(ranks_here(4),
          endless(95) + loss + Arguments{"--checkpoint-dir", scratch_.file("states").string()});
  ASSERT_TRUE(within(60s, [&] { return job.err().find("goes on without") != std::string::npos; }));
  stop(job, ranks_here(4));
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.complaints()[0].find("its state is on disk"), std::string::npos) << job.err();
  EXPECT_EQ(solve(4, saving("states"))["converged"], true);
}

/// A GPU that is gone for good: by default the end of the job.
TEST_F(Members, AFailedDeviceIsNotReplaced) {
  const auto calm = solve(4, problem());
  const Arguments broken{"--fault", "device-failure@75:" + std::to_string(last())};
  const auto end = fail(4, problem() + broken, 1);
  EXPECT_NE(end.find("rank " + std::to_string(last())), std::string::npos) << end;
  EXPECT_NE(end.find("device_failed"), std::string::npos) << end;

  const Arguments every{"--checkpoint-every", "20"};
  // The commit of 70 waits for that of 60 to be on disk.
  const auto stop =
      fail(4, saving("states", 5) + every + broken + Arguments{"--on-loss", "stop"}, 75);
  EXPECT_NE(stop.find("the state of step 60 is on disk"), std::string::npos) << stop;
  expect_same(calm, solve(4, saving("states")), true);

  if (ranks_here(4) < 2) return;
  std::string log;
  const auto report = solve(4, problem() + broken + Arguments{"--on-loss", "shrink"}, &log);
  expect_same(calm, report, false);
  EXPECT_EQ(report["final_ranks"], ranks_here(4) - 1);
}

/// A GPU that says it is failing is left behind a commit, while it still works.
TEST_F(Members, AFailingGpuIsLeft) {
  const auto calm = solve(4, problem());
  const Arguments ails{"--fault",        "failing-gpu@25:" + std::to_string(last()),
                       "--on-loss",      "shrink",
                       "--rejoin-after", "1ms"};
  for (const std::string policy : {"shrink", "warn"}) {
    SCOPED_TRACE(policy);
    const bool leaves = policy == "shrink" && last() > 0;
    std::string log;
    const auto report = solve(4, problem() + ails + Arguments{"--on-health", policy}, &log);
    expect_same(calm, report, !leaves);
    EXPECT_EQ(report["final_ranks"], ranks_here(4) - (leaves ? 1 : 0));
    ASSERT_EQ(report["health"].size(), 1u);
    EXPECT_EQ(report["health"][0]["rank"], last());
    EXPECT_EQ(report["health"][0]["failing"], true);
    EXPECT_NE(log.find("the GPU is failing: this GPU is failing, as --fault orders"),
              std::string::npos)
        << log;
    if (!leaves) {
      EXPECT_EQ(report["recoveries"].size(), 0u);
      continue;
    }
    // It does not come back, however well it works.
    ASSERT_EQ(report["recoveries"].size(), 1u);
    EXPECT_EQ(report["recoveries"][0]["kind"], "withdrawn");
    EXPECT_EQ(report["recoveries"][0]["rank"], last());
  }
}

/// Without --on-loss shrink a failing GPU stays, and a line says why.
TEST_F(Members, AFailingGpuThatCannotBeLeftStays) {
  std::string log;
  const auto report =
      solve(4, problem() + Arguments{"--fault", "failing-gpu@25:0", "--on-health", "shrink"}, &log);
  EXPECT_EQ(report["final_ranks"], ranks_here(4));
  EXPECT_EQ(report["recoveries"].size(), 0u);
  EXPECT_NE(log.find("the GPU stays"), std::string::npos) << log;
}

/// Nobody is left to go on; what they had is brought to disk by ranks without a device.
TEST_F(Members, WhenTheLastIsLostTheStateIsSaved) {
  const auto calm = solve(4, problem());
  std::vector<std::pair<int, int>> all;
  for (int rank = 0; rank <= last(); ++rank) all.emplace_back(75, rank);
  const auto complaint = fail(4, saving("states") + losing(all), 75);
  if (ranks_here(4) < 2) return;  // nobody has a copy
  EXPECT_NE(complaint.find("is on disk"), std::string::npos) << complaint;
  const auto report = solve(4, saving("states"));
  EXPECT_GE(report["restarted_from"].get<int>(), 50);
  expect_same(calm, report, true);
}

}  // namespace
}  // namespace troupe::test
