#include "saved.hpp"

// States on disk: jobs that end in every way there is, and others that go on from what they left.

namespace troupe::test {
namespace {

TEST_F(Saved, AKilledJobGoesOnWithAsManyRanksAndWithOthers) {
  const auto calm = solve(4, problem());
  EXPECT_EQ(calm["restarted_from"], -1);
  leave_states("killed");
  for (const int ranks : {4, 2, 3, 1, 5}) {
    if (ranks_here(ranks) != ranks) continue;
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    const auto report = solve(ranks, saving(copy("killed")));
    EXPECT_EQ(report["restarted_from"], 60);
    EXPECT_EQ(report["ranks"], ranks);
    expect_same(calm, report, ranks == ranks_here(4));
  }
}

TEST_F(Saved, WhatIsDamagedIsNamedAndTheOlderStateUsed) {
  const auto calm = solve(4, problem());
  leave_states("killed");
  const auto part = "part-" + std::to_string(ranks_here(4) - 1) + ".troupe";

  const auto shorter = copy("killed");
  const auto file = states(shorter) / "step-60" / part;
  fs::resize_file(file, fs::file_size(file) - 1);
  std::string log;
  auto report = solve(4, saving(shorter), &log);
  EXPECT_EQ(report["restarted_from"], 40);
  expect_same(calm, report, true);
  EXPECT_NE(log.find(file.string() + ": it has "), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;

  const auto flipped = copy("killed");
  const auto data = states(flipped) / "step-60" / "part-0.troupe";
  auto bytes = read_file(data);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  std::ofstream(data, std::ios::binary) << bytes;
  report = solve(2, saving(copy(flipped)), &log);
  EXPECT_EQ(report["restarted_from"], 40);
  EXPECT_NE(log.find("part-0.troupe: the checksum of entry "), std::string::npos) << log;

  // Nothing good is left: better to stop than to begin anew and overwrite what may be repaired.
  fs::remove(states(flipped) / "step-40" / "manifest.json");
  const auto complaint = fail(4, saving(flipped), 2);
  EXPECT_NE(complaint.find("part-0.troupe"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("step-40/manifest.json"), std::string::npos) << complaint;
  EXPECT_EQ(contents(flipped), (std::set<std::string>{"step-40", "step-60"}));
}

TEST_F(Saved, RestartSaysWhereToGoOnFrom) {
  leave_states("killed");
  EXPECT_EQ(solve(4, saving(copy("killed")) + Arguments{"--restart", "40"})["restarted_from"], 40);
  const auto folder = copy("killed");
  const auto anew =
      solve(4, saving(folder) + Arguments{"--restart", "never", "--checkpoint-every", "50"});
  EXPECT_EQ(anew["restarted_from"], -1);
  EXPECT_EQ(contents(folder), (std::set<std::string>{"step-50", "step-100"}))
      << "what an earlier run left is not mixed up with this one's";
  EXPECT_NE(fail(4, saving("killed") + Arguments{"--restart", "50"}, 2).find("step 50"),
            std::string::npos);
  EXPECT_NE(fail(4, saving("killed") + Arguments{"--precond", "jacobi"}, 2).find("problem"),
            std::string::npos);
  for (const int ranks : {4, 2}) {
    const auto complaint = fail(ranks, saving("killed") + Arguments{"--dtype", "f32"}, 2);
    EXPECT_NE(complaint.find("step 60"), std::string::npos) << complaint;
    EXPECT_NE(complaint.find("dtype"), std::string::npos) << complaint;
  }
  EXPECT_NE(fail(2, problem() + Arguments{"--checkpoint-every", "5"}, 2).find("--checkpoint-dir"),
            std::string::npos);
}

TEST_F(Saved, TheReportTellsOfStatesOnDisk) {
  const auto report = solve(4, saving("states") + Arguments{"--checkpoint-every", "15"});
  const auto& list = report["checkpoints"];
  ASSERT_EQ(list.size(), (report["iterations"].get<std::size_t>() - 1) / 15);
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i]["iteration"], 15 * (i + 1));
    // x, r, p and the order of 1600 rows, 8 bytes each, and a little more.
    EXPECT_GE(list[i]["bytes"].get<int>(), 4 * 8 * 1600);
    EXPECT_LE(list[i]["bytes"].get<int>(), 4 * 8 * 1600 + 4 * 8192);
    EXPECT_GT(list[i]["seconds"].get<double>(), 0);
    EXPECT_GE(list[i]["stall_seconds"].get<double>(), 0);
  }
}

TEST_F(Saved, FaultsInBetweenDoNoHarm) {
  const auto calm = solve(4, problem());
  const auto arguments = saving("states") + Arguments{"--checkpoint-every", "10"};
  const auto last = std::to_string(ranks_here(4) - 1);
  std::string log;
  const auto report =
      solve(4,
            arguments + Arguments{"--fault", "kill@20:0", "--fault", "exit@41:" + last, "--fault",
                                  "kill@60:0", "--partner", "on"},
            &log);
  expect_same(calm, report, true);
  EXPECT_EQ(report["recoveries"].size(), 3u);
  const auto newest = "step-" + std::to_string((report["iterations"].get<int>() - 1) / 10 * 10);
  EXPECT_TRUE(contents("states").contains(newest)) << newest;
  fs::remove_all(states("states") / newest);
  expect_same(calm, solve(4, saving("states")), true);
}

TEST_F(Saved, ASignalSavesTheStateAndEndsWithSeventyFive) {
  const Arguments folder{"--checkpoint-dir", scratch_.file("states").string()};
  {
    Job job(ranks_here(4), endless() + folder);
    ASSERT_TRUE(within(60s, [&] { return job.out().find("iteration") != std::string::npos; }));
    stop(job, ranks_here(4));
    EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
    EXPECT_TRUE(job.nothing_left());
    ASSERT_EQ(job.complaints().size(), 1u) << job.err();
    EXPECT_NE(job.complaints()[0].find("its state is on disk"), std::string::npos);
  }
  const auto found = contents("states");
  ASSERT_EQ(found.size(), 1u);
  const auto report = solve(3, problem() + folder);
  EXPECT_EQ("step-" + std::to_string(report["restarted_from"].get<std::int64_t>()), *found.begin());
  EXPECT_TRUE(report["converged"].get<bool>());
}

/// Nothing is there to go on from: to requeue the job would be to lose its work again and again.
TEST_F(Saved, ASignalWithoutAFolderEndsWithOne) {
  Job job(ranks_here(2), endless());
  ASSERT_TRUE(under_way(job));
  stop(job, ranks_here(2));
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.complaints()[0].find("nothing is saved"), std::string::npos);
}

TEST_F(Saved, AStateThatDoesNotReachTheDiskIsNotToldOf) {
  const SmallDisk disk(scratch_.file("disk"), "1m");
  if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here";
  const auto stopped = [&](int status, int iteration = 75) {
    Job job(ranks_here(2),
            endless(iteration) + Arguments{"--checkpoint-dir", disk.file("").string()});
    EXPECT_TRUE(under_way(job)) << job.out() << job.err();
    if (status != 0) disk.fill();
    stop(job, ranks_here(2));
    EXPECT_EQ(job.wait(), status == 0 ? 75 : status) << job.out() << job.err();
    EXPECT_EQ(job.err().find("out_of_memory"), std::string::npos) << job.err();
    EXPECT_EQ(status != 0, job.err().find("No space left on device") != std::string::npos)
        << job.err();
    EXPECT_EQ(job.complaints().size(), 1u) << job.err();
    fs::remove(disk.file("filler"));
    return job.complaints().empty() ? "" : job.complaints()[0];
  };
  EXPECT_NE(stopped(1).find("could not be saved, and no other is on disk"), std::string::npos);
  EXPECT_NE(stopped(0).find("its state is on disk"), std::string::npos);
  // There is the older one to go on from.
  const auto older = stopped(75, 95);  // the state that is there is of step 90 at the most
  EXPECT_NE(older.find("its state could not be saved, that of step "), std::string::npos) << older;
}

TEST_F(Saved, TheRoomThatStatesNeedIsLookedForFirst) {
  {
    const SmallDisk disk(scratch_.file("tiny"), "32k");
    if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here";
    const auto complaint =
        fail(2, problem() + Arguments{"--checkpoint-dir", disk.file("").string()}, 2);
    EXPECT_NE(complaint.find("a state takes 5"), std::string::npos) << complaint;
    EXPECT_NE(complaint.find(" KiB, and there is room for 2"), std::string::npos) << complaint;
  }
  const SmallDisk disk(scratch_.file("small"), "140k");
  std::string log;
  const auto report = solve(
      2,
      problem() + Arguments{"--checkpoint-dir", disk.file("").string(), "--checkpoint-every", "20"},
      &log);
  EXPECT_TRUE(report["converged"].get<bool>());
  EXPECT_NE(log.find("the newest two states and one being written take"), std::string::npos) << log;
  EXPECT_NE(log.find("No space left on device"), std::string::npos) << log;
  EXPECT_EQ(report["checkpoints"].size(), 2u) << "what had been written stays";
}

TEST_F(Saved, AFolderThatCannotBeWrittenIsOneLine) {
  const SmallDisk disk(scratch_.file("disk"), "1m");
  if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here";
  fs::create_directory(disk.file("troupe-cg"));
  disk.make_read_only();
  const auto complaint =
      fail(2, problem() + Arguments{"--checkpoint-dir", disk.file("").string()}, 2);
  EXPECT_NE(complaint.find("Read-only file system; states cannot be saved there"),
            std::string::npos)
      << complaint;
}

TEST_F(Saved, AnotherJobInTheSameFolderIsRefused) {
  const std::set<std::string> two{"step-40", "step-60"};
  Job job(ranks_here(2), standing_still("one"));
  ASSERT_TRUE(within(120s, [&] { return contents("one") == two; })) << job.out() << job.err();
  const auto complaint = fail(2, saving("one"), 2);
  EXPECT_NE(complaint.find("another job saves its states there (process "), std::string::npos)
      << complaint;
  EXPECT_EQ(contents("one"), two);
  // The lock of a job that was killed is none.
  job.kill_all();
  EXPECT_TRUE(job.nothing_left());
  EXPECT_EQ(solve(2, saving("one"))["restarted_from"], 60);
}

/// Names and sizes of the state's entries match in all of these.
TEST_F(Saved, AnotherProblemsStateIsNotTakenUp) {
  leave_states("killed");
  const auto complains = [&](const Arguments& more, const std::string& what) {
    const auto complaint = fail(2, saving("killed") + more, 2);
    EXPECT_NE(complaint.find("is of another problem: " + what), std::string::npos) << complaint;
    EXPECT_NE(complaint.find("--restart never"), std::string::npos) << complaint;
  };
  complains({"--precond", "jacobi"}, "--precond was none and is jacobi ");
  complains({"--seed", "7"}, "--seed was 1 and is 7 ");
  complains({"--dtype", "f32"}, "--dtype was f64 and is f32 ");
  auto other = laplacian(40);
  other.replace(other.rfind(" 4\n"), 3, " 5\n");
  scratch_.write("laplace.mtx", other);
  complains({}, "--matrix was a file of ");
  // Where it lies does not matter, nor what does not shape the state of an iteration.
  scratch_.write("laplace.mtx", laplacian(40));
  matrix_ = scratch_.write("same.mtx", laplacian(40));
  const auto report = solve(2, saving("killed") + Arguments{"--max-iter", "5000"});
  EXPECT_EQ(report["restarted_from"], 60);
}

TEST_F(Saved, ARehearsalOfTheSolverFindsNothing) {
  Job job(ranks_here(2),
          {"--matrix", matrix_.string(), "--tol", "1e-10", "--precond", "jacobi", "--commit-every",
           "50", "--rehearse", "--rehearse-tolerance", on_cuda() ? "1e-9" : "0"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  EXPECT_EQ(job.err(), "");
  EXPECT_NE(job.out().find("rehearsed: "), std::string::npos) << job.out();
  // Three vectors of 1600 rows over 2 ranks, 8 bytes each, twice: 37.5 KiB, and a little more.
  const auto costs = job.out().find("its last two commits take ");
  ASSERT_NE(costs, std::string::npos) << job.out();
  if (ranks_here(2) == 2) {
    EXPECT_EQ(job.out().substr(costs + 26, 2), "38") << job.out();
  }
  EXPECT_NE(job.out().find("the states are equal"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("converged after"), std::string::npos) << job.out();
  EXPECT_NE(fail(2, problem() + Arguments{"--rehearse", "--isolation", "thread"}, 2)
                .find("--isolation process"),
            std::string::npos);
}

TEST_F(Saved, OfASpentBudgetThePartnersCopyRemains) {
  if (ranks_here(4) < 2) GTEST_SKIP() << "a partner needs two ranks";
  const auto calm = solve(4, problem());
  const auto last = std::to_string(ranks_here(4) - 1);
  const Arguments end{"--restart-budget", "0", "--fault", "kill@75:" + last};
  const auto lost = fail(4, saving("nothing") + end, 75);
  EXPECT_NE(lost.find("no state is on disk"), std::string::npos) << lost;
  EXPECT_EQ(contents("nothing"), std::set<std::string>{});

  const auto kept = fail(4, saving("partner") + end + Arguments{"--partner", "on"}, 75);
  EXPECT_NE(kept.find("is on disk"), std::string::npos) << kept;
  const auto report = solve(4, saving("partner"));
  EXPECT_GE(report["restarted_from"].get<int>(), 50);
  EXPECT_LE(report["restarted_from"].get<int>(), 70);
  expect_same(calm, report, true);
}

/// One device host more than the budget has, for the end.
TEST_F(Saved, OnLossStopSavesTheStateFirst) {
  const auto calm = solve(4, problem());
  const auto last = std::to_string(ranks_here(4) - 1);
  const Arguments end{"--restart-budget", "0", "--on-loss", "stop", "--fault", "kill@75:" + last};
  Job job(ranks_here(4), saving("states") + end);
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.complaints()[0].find("its state is on disk"), std::string::npos) << job.err();
  EXPECT_NE(job.err().find("the restart budget is spent"), std::string::npos) << job.err();
  const auto report = solve(4, saving("states"));
  EXPECT_GE(report["restarted_from"].get<int>(), 70);  // the next commit but one, of 60 or 70
  EXPECT_LE(report["restarted_from"].get<int>(), 90);
  expect_same(calm, report, true);

  // The second fault in a row leaves no time for that.
  const auto late = fail(4, saving("nothing") + end + Arguments{"--fault", "kill@76:" + last}, 75);
  EXPECT_NE(late.find("no state is on disk"), std::string::npos) << late;
}

}  // namespace
}  // namespace troupe::test
