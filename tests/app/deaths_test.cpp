#include "report_job.hpp"

// Ranks of troupe-cg whose processes die: heat's are in respawn_test.cpp, with more of what can
// happen.

namespace troupe::test {
namespace {

const Arguments kProblem{"--stencil", "16", "--commit-every", "5", "--on-rank-loss", "respawn"};

int deaths(const Json& report) {
  int found = 0;
  for (const auto& recovery : report["recoveries"]) found += recovery["kind"] == "rank" ? 1 : 0;
  return found;
}

/// Two at once, rank 0 in a recovery, one that is stopped.
TEST(Deaths, ChangeNoBitOfTheAnswer) {
  const int ranks = ranks_here(4);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  const auto last = std::to_string(ranks - 1);
  const auto undisturbed = report_of(ranks, kProblem);
  ASSERT_TRUE(undisturbed.value("converged", false));
  const std::pair<Arguments, int> cases[] = {
      {{"--fault", "rank@20:0", "--fault", "rank@20:" + last}, 2},
      {{"--standby", "off", "--fault", "kill@20:1", "--fault", "rank@form:0"}, 1},
      {{"--rank-silence", "1s", "--fault", "stop@20:" + last}, 1}};
  for (const auto& [faults, count] : cases) {
    SCOPED_TRACE(faults[1] + ", " + faults[3]);
    const Scratch scratch;
    const auto file = scratch.file("report.json");
    Job job(ranks, kProblem + faults + Arguments{"--json", file, "--log-level", "error"});
    EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
    EXPECT_TRUE(job.nothing_left());
    const auto report = Json::parse(read_file(file));
    EXPECT_EQ(deaths(report), count);
    for (const auto* const result : {"iterations", "relative_residual", "relative_error"})
      EXPECT_EQ(report[result], undisturbed[result]) << result;
  }
}

/// Ranks die, and a GPU is lost for good: the others go on without that one, until its process is
/// another one, which has it again.
TEST(Deaths, GoTogetherWithLostGpus) {
  const int ranks = ranks_here(4);
  if (ranks < 3) GTEST_SKIP() << "too few";
  struct Case {
    std::string first, second;
    int left;
  };
  const Case cases[] = {{"device-failure@20:1", "rank@30:2", ranks - 1},
                        {"device-failure@20:1", "rank@20:2", ranks - 1},
                        {"rank@15:2", "device-failure@35:0", ranks - 1}};
  for (const auto& [first, second, left] : cases) {
    SCOPED_TRACE(first + ", " + second);
    const auto report =
        report_of(ranks, kProblem + Arguments{"--on-loss", "shrink", "--rejoin-after", "0s",
                                              "--fault", first, "--fault", second});
    EXPECT_TRUE(report.value("converged", false));
    EXPECT_EQ(report["final_ranks"], left);
    EXPECT_EQ(deaths(report), 1);
  }
}

}  // namespace
}  // namespace troupe::test
