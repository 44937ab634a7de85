#include "report_job.hpp"

// troupe-heat as its users run it. Its result is compared with a solution that is known, and the
// program says so by its status.

namespace troupe::test {
namespace {

/// Runs it to a good end; its report.
Json heat(int ranks, const Arguments& arguments) {
  auto report = report_of(ranks, arguments);
  EXPECT_TRUE(report.value("right", false));
  EXPECT_GT(report.value("tolerance", 0.0), report.value("largest_error", 1.0));
  return report;
}

TEST(Heat, IsRightOnBoxesOfAnyShape) {
  const auto one = heat(1, {"--points", "7,5,6", "--steps", "40"});
  EXPECT_EQ(one["points"], (Json{7, 5, 6}));
  EXPECT_EQ(one["recoveries"], Json::array());
  const int ranks = ranks_here(4);
  // One point along an axis is both of its faces.
  const auto flat = heat(ranks, {"--points", "9,4,1", "--steps", "40", "--dtype", "f32"});
  if (ranks == 4) {
    EXPECT_EQ(flat["ranks_by_axis"], (Json{1, 2, 2}));
    EXPECT_EQ(flat["points"], (Json{9, 8, 2}));
  }
  EXPECT_EQ(flat["iterations"], 40);
}

TEST(Heat, RecordedStepsAreTheCalls) {
  const int ranks = ranks_here(2);
  const Arguments problem{"--points", "12", "--steps", "60"};
  const auto recorded = heat(ranks, problem);
  const auto called = heat(ranks, problem + Arguments{"--record", "off"});
  EXPECT_EQ(recorded["largest_error"], called["largest_error"]);
}

TEST(Heat, AFaultChangesNothing) {
  const int ranks = ranks_here(3);
  const Arguments problem{"--points",   "10,8,6", "--steps",        "120",
                          "--together", "4",      "--commit-every", "20"};
  const auto undisturbed = heat(ranks, problem);
  const auto struck = heat(ranks, problem + Arguments{"--fault", "kill@50:0", "--fault",
                                                      "segv@90:" + std::to_string(ranks - 1)});
  ASSERT_EQ(struck["recoveries"].size(), 2u);
  EXPECT_EQ(struck["recoveries"][0]["kind"], "kill");
  EXPECT_EQ(struck["recoveries"][1]["rank"], ranks - 1);
  EXPECT_EQ(struck["largest_error"], undisturbed["largest_error"]);
}

TEST(Heat, GoesOnFromASavedState) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  const Arguments problem{
      "--points",           "8", "--commit-every", "10", "--checkpoint-dir", scratch.file("states"),
      "--checkpoint-every", "10"};
  heat(ranks, problem + Arguments{"--steps", "50"});
  EXPECT_TRUE(fs::exists(scratch.file("states") / "troupe-heat" / "step-40"));
  const auto further = heat(ranks, problem + Arguments{"--steps", "100"});
  EXPECT_GT(further.value("restarted_from", -1), 0);
  EXPECT_EQ(further.value("restarted_from", -1) + further.value("iterations", -1), 100);
  // A state that is further than was asked for is judged by its own step.
  EXPECT_EQ(heat(ranks, problem + Arguments{"--steps", "50"}).value("iterations", -1), 0);
}

/// It cannot go on with fewer ranks: with --on-loss shrink the last commit is brought to disk, that
/// of the lost rank by another one.
TEST(Heat, ALossForGoodLeavesTheLastCommit) {
  const int ranks = ranks_here(2);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  const Scratch scratch;
  const Arguments problem{"--points",       "8",  "--steps",          "100",
                          "--commit-every", "10", "--checkpoint-dir", scratch.file("states")};
  Job job(ranks,
          problem + Arguments{"--on-loss", "shrink", "--restart-budget", "0", "--rejoin-after",
                              "0s", "--fault", "kill@60:0", "--log-level", "error"});
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  for (const auto* part : {"this program cannot go on with fewer", "is on disk"})
    EXPECT_NE(job.complaints()[0].find(part), std::string::npos) << job.err();
  EXPECT_GT(heat(ranks, problem).value("restarted_from", -1), 0);
}

TEST(Heat, SaysWhatItDoesNotTake) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--points", "4,4"}, "--points: it takes one number, or three: X,Y,Z"},
      {{"--points", "0"}, "--points: '0' is no number from 1 to 1290"},
      {{"--steps", "25"}, "--steps: 25 is no multiple of --together 10"},
      {{"--together", "5"}, "--together: it is to be even"},
      {{"--checkpoint-dir", "/tmp", "--checkpoint-every", "25"},
       "no multiple of the 10 that are done at once"},
      {{"--restart", "20"}, "there is no folder to go on from (--checkpoint-dir)"},
      {{"--fault", "kill@200:0"}, "--fault: there is no step 200 among 200"},
      {{"--fault", "kill@20:7"}, "--fault: there is no rank 7 among 1"},
      {{"--courant", "0.2"}, "courant"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
