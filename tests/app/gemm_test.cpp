#include "report_job.hpp"

// troupe-gemm as its users run it. It judges every product by a check of its own, and with --test
// compares each element with one that the host computes.

namespace troupe::test {
namespace {

/// Runs it to a good end; its report.
Json gemm(int ranks, const Arguments& arguments) {
  std::string text;
  auto report = report_of(ranks, arguments + Arguments{"--test"}, 0, &text);
  EXPECT_NE(text.find("Result is CORRECT!"), std::string::npos) << text;
  EXPECT_TRUE(report.value("right", false));
  EXPECT_GT(report.value("tolerance", 0.0), report.value("residual", 1.0));
  EXPECT_GT(report.value("element_tolerance", 0.0), report.value("element_error", 1.0));
  // The check is worth something only if what it lets pass is small beside an element.
  EXPECT_LT(report.value("tolerance", 1.0), 0.02);
  return report;
}

TEST(Gemm, IsRightInAnyLayoutAndType) {
  const auto one = gemm(1, {"-m", "37", "-n", "23", "-k", "41", "-t", "zfloat", "--transpose", "ct",
                            "--alpha", "-0.5"});
  EXPECT_EQ(one["transpose"], "CT");
  EXPECT_EQ(one["a"]["extents"], (Json{41, 37}));
  EXPECT_EQ(one["times_ms"].size(), 2u);
  EXPECT_EQ(one["recoveries"], Json::array());
  const int ranks = ranks_here(4);
  const std::string grid = ranks == 4 ? "2,2" : std::to_string(ranks) + ",1";
  const auto cyclic =
      gemm(ranks, {"-m", "60", "-n", "50", "-k", "70", "-r", "3", "-p", grid, "--block_a=8,16",
                   "--block_b", "16,4", "--block_c", "5,7", "--transpose", "TN", "--panel", "9"});
  EXPECT_EQ(cyclic["grid"], (ranks == 4 ? Json{2, 2} : Json{ranks, 1}));
  EXPECT_EQ(cyclic["c"]["block"], (Json{5, 7}));
  EXPECT_EQ(cyclic["iterations"], 3);
  // More ranks than rows, and a C that must not be read.
  gemm(ranks, {"-m", "3", "-n", "2", "-k", "5", "--type", "zdouble", "--beta", "0"});
}

TEST(Gemm, AFaultChangesNothing) {
  const int ranks = ranks_here(3);
  const Arguments problem{"-m",
                          "90",
                          "-n",
                          "80",
                          "-k",
                          "70",
                          "-r",
                          "9",
                          "-t",
                          "float",
                          "--panel",
                          "10",
                          "--commit-every",
                          "2"};
  const auto undisturbed = gemm(ranks, problem);
  const auto struck = gemm(ranks, problem + Arguments{"--fault", "kill@3:0", "--fault",
                                                      "segv@6:" + std::to_string(ranks - 1)});
  ASSERT_EQ(struck["recoveries"].size(), 2u);
  EXPECT_EQ(struck["recoveries"][0]["kind"], "kill");
  EXPECT_EQ(struck["recoveries"][1]["rank"], ranks - 1);
  EXPECT_EQ(struck["iterations"], 9);
  EXPECT_EQ(struck["residual"], undisturbed["residual"]);
  EXPECT_EQ(struck["element_error"], undisturbed["element_error"]);
}

TEST(Gemm, EveryIntervalIsTheSameTwice) {
  const auto rehearsed =
      gemm(ranks_here(2), {"-m", "30", "-n", "20", "-k", "40", "-r", "4", "--transpose", "TN",
                           "--commit-every", "2", "--rehearse"});
  EXPECT_GT(rehearsed["recoveries"].size(), 0u);
}

TEST(Gemm, GoesOnFromASavedState) {
  const int ranks = ranks_here(2);
  const Scratch scratch;
  const Arguments problem{"-m",
                          "30",
                          "-n",
                          "40",
                          "-k",
                          "20",
                          "--beta",
                          "-0.5",
                          "--commit-every",
                          "2",
                          "--checkpoint-dir",
                          scratch.file("states"),
                          "--checkpoint-every",
                          "1"};
  gemm(ranks, problem + Arguments{"-r", "5"});
  const auto further = gemm(ranks, problem + Arguments{"-r", "8"});
  EXPECT_GT(further.value("restarted_from", -1), 0);
  EXPECT_EQ(further.value("restarted_from", -1) + further.value("iterations", -1), 8);
}

TEST(Gemm, SaysWhatItDoesNotTake) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"-m", "0"}, "m_dim"},
      {{"-t", "half"}, "type"},
      {{"--transpose", "NX"}, "--transpose: 'X' is none of N, T and C"},
      {{"--transpose", "N"}, "--transpose: it takes two letters"},
      {{"--block_a", "8"}, "--block_a: it takes two numbers: ROWS,COLUMNS"},
      {{"--block_c", "8,0"}, "--block_c: '0' is no number from 1 to 2147483647"},
      {{"-p", "2,2"}, "--p_grid: 2 x 2 are not 1 rank"},
      {{"--beta", "2"}, "beta"},
      {{"--fault", "kill@2:0"}, "--fault: there is no repetition 2 among 2"},
      {{"--fault", "kill@1:7"}, "--fault: there is no rank 7 among 1"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
