#include "saved.hpp"

// States on disk by either way: straight from device memory, and through pinned memory.

namespace troupe::test {
namespace {

const Arguments kDirect{"--checkpoint-io", "direct"}, kPinned{"--checkpoint-io", "pinned"};

/// On a GPU it depends on the machine whether there is a direct way. If not, that is one line.
bool direct_is_refused(const std::string& folder) {
  Job job(ranks_here(2), Arguments{"--stencil", "8", "--checkpoint-dir", folder} + kDirect);
  if (job.wait() == 0) return false;
  EXPECT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.err().find("cannot write to checkpoint-dir directly: "), std::string::npos)
      << job.err();
  EXPECT_TRUE(on_cuda());
  return true;
}

TEST_F(Saved, ADirectStateIsThePinnedOneBitForBit) {
  if (direct_is_refused(scratch_.file("trial").string())) GTEST_SKIP() << "no direct way here";
  const Arguments every{"--checkpoint-every", "20"};
  const auto direct = solve(3, saving("direct") + every + kDirect),
             pinned = solve(3, saving("pinned") + every + kPinned);
  if (on_cuda()) return;  // where sums may differ from run to run
  ASSERT_EQ(contents("direct"), contents("pinned"));
  ASSERT_EQ(contents("direct").size(), 2u);
  for (const auto& step : contents("direct")) {
    for (int rank = 0; rank < ranks_here(3); ++rank) {
      const auto part = "part-" + std::to_string(rank) + ".troupe";
      EXPECT_TRUE(read_file(states("direct") / step / part) ==
                  read_file(states("pinned") / step / part))
          << step << "/" << part;
    }
  }
}

TEST_F(Saved, EitherWayGoesOnFromWhatTheOtherHasSaved) {
  if (direct_is_refused(scratch_.file("trial").string())) GTEST_SKIP() << "no direct way here";
  const auto calm = solve(4, problem());
  leave_states("killed");
  for (const auto& io : {kDirect, kPinned}) {
    for (const int ranks : {4, 3}) {
      if (ranks_here(ranks) != ranks) continue;
      SCOPED_TRACE(io[1] + ", " + std::to_string(ranks) + " ranks");
      const auto report = solve(ranks, saving(copy("killed")) + io);
      EXPECT_EQ(report["restarted_from"], 60);
      expect_same(calm, report, ranks == ranks_here(4));
    }
  }
}

TEST_F(Saved, TheReportTellsHowStatesWentToDisk) {
  const bool refused = direct_is_refused(scratch_.file("trial").string());
  const auto went = [&](const std::string& folder, const Arguments& more) {
    const auto report = solve(2, saving(folder) + Arguments{"--checkpoint-every", "20"} + more);
    EXPECT_GT(report["checkpoints"].size(), 1u);
    std::set<std::string> ways;
    for (const auto& state : report["checkpoints"]) {
      ways.insert(state["io"].get<std::string>());
      EXPECT_GT(state["write_seconds"].get<double>(), 0);
      EXPECT_LE(state["write_seconds"].get<double>(), state["seconds"].get<double>());
      EXPECT_NEAR(state["bytes_per_second"].get<double>() * state["write_seconds"].get<double>(),
                  state["bytes"].get<double>(), 1);
    }
    return ways;
  };
  const std::set<std::string> direct{"direct"}, pinned{"pinned"};
  EXPECT_EQ(went("auto", {}), refused ? pinned : direct);
  EXPECT_EQ(went("pinned", kPinned), pinned);
  EXPECT_EQ(went("partner", {"--partner", "on"}), ranks_here(2) > 1 || refused ? pinned : direct);
  if (!refused) {
    EXPECT_EQ(went("direct", kDirect), direct);
    EXPECT_EQ(went("both", kDirect + Arguments{"--partner", "on"}), direct);
  }
  EXPECT_NE(fail(2, saving("wrong") + Arguments{"--checkpoint-io", "sideways"}, 2).find("sideways"),
            std::string::npos);
}

/// Device hosts die in the middle of a write: the state comes about all the same.
TEST_F(Saved, ADeviceHostThatDiesInADirectWriteCostsNoState) {
  if (direct_is_refused(scratch_.file("trial").string())) GTEST_SKIP() << "no direct way here";
  const auto up_to = [&](const std::string& iterations) {
    return Arguments{"--stencil",
                     "80",
                     "--tol",
                     "1e-30",
                     "--max-iter",
                     iterations,
                     "--commit-every",
                     "5",
                     "--checkpoint-every",
                     "5",
                     "--restart-budget",
                     "1000",
                     "--flight-dir",
                     "none",
                     "--checkpoint-dir",
                     scratch_.file("states").string()};
  };
  Job job(ranks_here(2),
          up_to("100000") + kDirect + Arguments{"--log-level", "warn,checkpoint=debug"});
  // A part appears when its write begins.
  const auto writing = [&] {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(states("states"), none)) {
      if (entry.path().extension() == ".tmp" && fs::exists(entry.path() / "part-0.troupe", none))
        return true;
    }
    return false;
  };
  const std::string cut_off = ".tmp/part-0.troupe: it is written again";
  const auto hit = [&] { return job.out().find(cut_off) != std::string::npos; };
  for (int i = 0; i < 20 && !hit(); ++i) {
    ASSERT_TRUE(within(60s, writing)) << job.out() << job.err();
    for (const auto pid : job.processes("troupe-device")) ::kill(pid, SIGKILL);
    (void)within(3s, hit);
  }
  ASSERT_TRUE(hit()) << job.out() << job.err();
  const auto at = job.out().find(cut_off);
  const auto name = job.out().rfind("step-", at);
  const auto step = job.out().substr(name, at - name);
  EXPECT_TRUE(within(60s,
                     [&] {
                       return job.out().find("step " + step.substr(5) + " is on disk", at) !=
                              std::string::npos;
                     }))
      << job.out() << job.err();
  job.signal(SIGUSR1);
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  // What is left can be gone on from, all checksums right.
  Job again(ranks_here(2), up_to("1") + kPinned + Arguments{"--log-level", "info"});
  (void)again.wait();
  EXPECT_NE(again.out().find("going on from step "), std::string::npos)
      << again.out() << again.err();
  EXPECT_EQ(again.err().find("is no good"), std::string::npos) << again.err();
}

TEST_F(Saved, WhatDamagesADirectStateIsFound) {
  if (direct_is_refused(scratch_.file("trial").string())) GTEST_SKIP() << "no direct way here";
  const auto report = solve(2, saving("states") + Arguments{"--checkpoint-every", "20"} + kDirect);
  const auto newest =
      "step-" + std::to_string(report["checkpoints"].back()["iteration"].get<int>());
  const auto part = states("states") / newest / "part-0.troupe";
  auto bytes = read_file(part);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(part, std::ios::binary) << bytes;
  std::string log;
  (void)solve(2, saving("states") + kDirect, &log);
  EXPECT_NE(log.find("part-0.troupe: the checksum of entry "), std::string::npos) << log;
}

/// A machine without a direct way: here the library that knows it is not installed.
TEST_F(Saved, WithoutADirectWayAutoIsPinnedAndDirectIsRefused) {
  const auto modules = scratch_.file("modules");
  fs::create_directory(modules);
  for (const auto& entry : fs::directory_iterator(TROUPE_TEST_LIBEXEC)) {
    const auto name = entry.path().filename().string();
    const bool needed = on_cuda() || name.find("-cuda") == std::string::npos;
    if (needed && name.rfind("troupe-file-", 0) != 0) fs::copy(entry.path(), modules / name);
  }
  const Arguments hosts{"--device-host", (modules / "troupe-device-host").string(),
                        "--checkpoint-every", "20"};
  const auto report = solve(2, saving("auto") + hosts);
  ASSERT_GT(report["checkpoints"].size(), 1u);
  for (const auto& state : report["checkpoints"]) EXPECT_EQ(state["io"], "pinned");
  const auto complaint = fail(2, saving("direct") + hosts + kDirect, 2);
  EXPECT_NE(complaint.find("cannot write to checkpoint-dir directly: file: not installed"),
            std::string::npos)
      << complaint;
  EXPECT_EQ(contents("direct"), std::set<std::string>{});
}

}  // namespace
}  // namespace troupe::test
