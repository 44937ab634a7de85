#include "report_job.hpp"

// Jobs in which one rank is slower than the others: --fault slow. Each of its steps takes 20 ms
// longer at least, and five times as long as another rank's: so a job of some hundred steps lasts
// for the windows that are compared, on any machine.

namespace troupe::test {
namespace {

const fs::path kProgram = fs::path(TROUPE_TEST_PROGRAM).filename();

struct Outcome {
  Json report;
  std::string log;

  [[nodiscard]] std::size_t slow_ranks() const {
    const std::string line = "is slow: its own work takes";
    std::size_t times = 0;
    for (auto at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++times;
    return times;
  }
  [[nodiscard]] bool says(const std::string& what) const {
    return log.find(what) != std::string::npos;
  }
};

Outcome run(int ranks, const Arguments& arguments) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  Job job(ranks, arguments + Arguments{"--json", file.string(), "--log-level", "warn"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  auto report = Json::parse(read_file(file), nullptr, false);
  return {report.is_object() ? report : Json::object(), job.err()};
}

TEST(SlowRank, IsToldOfOnceWithTheReason) {
  if (kProgram != "troupe-heat") GTEST_SKIP() << "troupe-heat is enough";
  const int ranks = ranks_here(4);
  if (ranks < 2) GTEST_SKIP() << "a rank is slower than others";
  const auto outcome = run(ranks, {"--points", "24", "--together", "2", "--steps", "1600",
                                   "--commit-every", "8", "--fault", "slow@20:1"});
  EXPECT_EQ(outcome.report["right"], true);
  EXPECT_EQ(outcome.slow_ranks(), 1u) << outcome.log;
  EXPECT_TRUE(outcome.says("world: rank 1 (")) << outcome.log;
  EXPECT_TRUE(outcome.says("its program submits late")) << outcome.log;
}

/// A chain of this many elements takes as many iterations.
fs::path chain(const Scratch& scratch, int rows) {
  std::ostringstream text;
  text << "%%MatrixMarket matrix coordinate real symmetric\n"
       << rows << " " << rows << " " << 2 * rows - 1 << "\n";
  for (int row = 1; row <= rows; ++row) {
    text << row << " " << row << " 2\n";
    if (row < rows) text << row + 1 << " " << row << " -1\n";
  }
  return scratch.write("chain.mtx", text.str());
}

TEST(SlowRank, IsLeft) {
  if (kProgram != "troupe-cg") GTEST_SKIP() << "in troupe-heat no rank can be left";
  const int ranks = ranks_here(4);
  if (ranks < 3) GTEST_SKIP() << "two go on without the third";
  const Scratch scratch;
  const auto outcome =
      run(ranks, {"--matrix", chain(scratch, 1200).string(), "--tol", "1e-10", "--check-every", "5",
                  "--commit-every", "5", "--fault", "slow@20:1", "--on-slow", "leave",
                  "--on-health", "shrink", "--on-loss", "shrink"});
  EXPECT_TRUE(outcome.report["converged"].get<bool>());
  EXPECT_LT(outcome.report["relative_error"].get<double>(), 1e-8);
  EXPECT_EQ(outcome.report["final_ranks"], ranks - 1) << outcome.log;
  ASSERT_EQ(outcome.report["recoveries"].size(), 1u) << outcome.log;
  EXPECT_EQ(outcome.report["recoveries"][0]["kind"], "withdrawn");
  EXPECT_EQ(outcome.slow_ranks(), 1u) << outcome.log;
  EXPECT_TRUE(outcome.says("world: rank 1 (")) << outcome.log;
}

TEST(SlowRank, CannotLeaveWhereNoGpuIsLeft) {
  if (kProgram != "troupe-heat") GTEST_SKIP() << "troupe-heat is enough";
  const std::pair<Arguments, std::string> cases[] = {
      {{"--on-slow", "leave"}, "on-slow = leave wants on-health"},
      {{"--slow-factor", "1"}, "slow-factor = 1: greater than 1, or 0"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
