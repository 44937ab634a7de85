#include "report_job.hpp"

// troupe-fft as its users run it. It compares the array, after transforms there and back, with what
// it was, and the spectrum with one that is known.

namespace troupe::test {
namespace {

/// Runs it to a good end; its report.
Json fft(int ranks, const Arguments& arguments) {
  std::string text;
  auto report = report_of(ranks, arguments, 0, &text);
  EXPECT_NE(text.find("Result:       right"), std::string::npos) << text;
  EXPECT_TRUE(report.value("right", false));
  EXPECT_GT(report.value("tolerance", 0.0), report.value("max_error", 1.0));
  EXPECT_GT(report.value("spectrum_tolerance", 0.0), report.value("spectrum_error", 1.0));
  // The comparison is worth something only if what it lets pass is small beside an element.
  EXPECT_LT(report.value("spectrum_tolerance", 1.0), 0.05);
  return report;
}

TEST(Fft, IsRightOnSlabsAndPencils) {
  const auto one = fft(1, {"--points", "12,7,10", "-n2"});
  EXPECT_EQ(one["points"], (Json{12, 7, 10}));
  EXPECT_EQ(one["times_ms"].size(), 2u);
  EXPECT_EQ(one["recoveries"], Json::array());
  const int ranks = ranks_here(4);
  const auto pencils =
      fft(ranks, {"--points", "9,16,211", "--kind", "r2c", "--precision", "float", "--pencils"});
  if (ranks == 4) {
    EXPECT_EQ(pencils["ingrid"], (Json{2, 2, 1}));
    EXPECT_EQ(pencils["outgrid"], (Json{1, 2, 2}));
  }
  EXPECT_EQ(pencils["iterations"], 5);
  // More ranks than planes.
  fft(ranks, {"--points", "3,8,1", "--precision", "float", "--slabs", "--pieces", "2"});
}

TEST(Fft, AFaultChangesNothing) {
  const int ranks = ranks_here(3);
  const Arguments problem{"--points", "10,12,14", "--kind",         "r2c",
                          "-n",       "10",       "--commit-every", "3"};
  const auto undisturbed = fft(ranks, problem);
  const auto struck = fft(ranks, problem + Arguments{"--fault", "kill@4:0", "--fault",
                                                     "segv@8:" + std::to_string(ranks - 1)});
  ASSERT_EQ(struck["recoveries"].size(), 2u);
  EXPECT_EQ(struck["recoveries"][0]["kind"], "kill");
  EXPECT_EQ(struck["recoveries"][1]["rank"], ranks - 1);
  EXPECT_EQ(struck["iterations"], 10);
  EXPECT_EQ(struck["max_error"], undisturbed["max_error"]);
  EXPECT_EQ(struck["spectrum_error"], undisturbed["spectrum_error"]);
}

TEST(Fft, EveryIntervalIsTheSameTwice) {
  const auto rehearsed = fft(ranks_here(2), {"--points", "8,9,10", "-n4", "--precision", "float",
                                             "--commit-every", "2", "--rehearse"});
  EXPECT_GT(rehearsed["recoveries"].size(), 0u);
}

TEST(Fft, GoesOnFromASavedState) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  const Arguments problem{"--points",           "8",
                          "--commit-every",     "2",
                          "--checkpoint-every", "1",
                          "--checkpoint-dir",   scratch.file("states"),
                          "--ingrid",           "1," + std::to_string(ranks) + ",1"};
  fft(ranks, problem + Arguments{"-n", "5"});
  const auto further = fft(ranks, problem + Arguments{"-n", "9"});
  EXPECT_GT(further.value("restarted_from", -1), 0);
  EXPECT_EQ(further.value("restarted_from", -1) + further.value("iterations", -1), 9);
}

TEST(Fft, SaysWhatItDoesNotTake) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--points", "4,4"}, "--points: it takes one number, or three: X,Y,Z"},
      {{"--points", "0"}, "--points: '0' is no number from 1 to 1048576"},
      {{"--kind", "r2r"}, "kind"},
      {{"--precision", "half"}, "precision"},
      {{"-n0"}, "nruns"},
      {{"--slabs", "--pencils"}, "--slabs: --pencils is given too"},
      {{"--ingrid", "1,1,2"}, "--ingrid: all of the last axis is on one rank: X,Y,1"},
      {{"--ingrid", "2,2,1"}, "--ingrid: 2 x 2 are not 1 rank"},
      {{"--fault", "kill@5:0"}, "--fault: there is no run 5 among 5"},
      {{"--fault", "kill@1:7"}, "--fault: there is no rank 7 among 1"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
