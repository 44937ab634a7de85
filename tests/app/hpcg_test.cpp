#include <cmath>

#include "report_job.hpp"

// troupe-cg --hpcg: a rating run by HPCG's rules. What HPCG 3.1 itself gives for the same problem
// (github.com/hpcg-benchmark/hpcg, --nx --ny --nz --npz=RANKS --rt=0) stands in the tests.

namespace troupe::test {
namespace {

Json rate(int ranks, const Arguments& arguments, std::string* text = nullptr) {
  return report_of(ranks, Arguments{"--hpcg"} + arguments, 0, text);
}

double number(const Json& report, const std::string& section, const std::string& name) {
  return report["hpcg"][section].value(name, std::nan(""));
}

/// The reference's residuals are those that HPCG prints, to its six digits. Numbers are rounded in
/// another order here, which the method makes more of with each iteration: so the first ones are
/// compared, to a thousandth.
void expect_history(const Json& report, const std::vector<double>& of_hpcg) {
  const auto& history = report["reference_history"];
  ASSERT_EQ(history.size(), 50u);
  for (std::size_t i = 0; i < of_hpcg.size(); ++i)
    EXPECT_NEAR(history[i].get<double>() / of_hpcg[i], 1, 1e-3) << "iteration " << i + 1;
  EXPECT_EQ(history[49],
            number(report, "Iteration Count Information", "Scaled residual of the reference"));
}

/// The attainable accuracy of the method is the rounding of products, 27 terms to a row, summed
/// over the iterations (Greenbaum, SIAM J. Matrix Anal. Appl. 18(3), 1997, theorem 2.2), times the
/// condition of the matrix: for 48 points along an axis at most 28 / (27 - (1 + 2 cos(pi / 49))^3),
/// which is 253.
void expect_ones(const Json& report) {
  const double iterations =
      number(report, "Iteration Count Information", "Optimized CG iterations per set");
  EXPECT_LT(report.value("relative_error", 1.0), 253 * 27 * 0x1p-52 * iterations);
}

TEST(Hpcg, HasTheNumbersOfHpcgOnOneRank) {
  std::string text;
  const auto report = rate(1, {"--stencil", "16", "--time", "0", "--history"}, &text);
  EXPECT_TRUE(report.value("valid", false));
  EXPECT_FALSE(report.value("official_time", true));
  EXPECT_EQ(report["nonzeros"], 97336);
  const auto& grids = report["hpcg"]["Multigrid Information"]["Coarse Grids"];
  ASSERT_EQ(grids.size(), 3u);
  EXPECT_EQ(grids[0]["Number of Nonzero Terms"], 10648);
  EXPECT_EQ(grids[1]["Number of Nonzero Terms"], 1000);
  EXPECT_EQ(grids[2]["Number of Nonzero Terms"], 64);
  expect_history(report,
                 {0.175288, 0.083595, 0.0311711, 0.00284496, 0.000417347, 8.6988e-05, 2.13731e-05,
                  4.95387e-06, 7.2224e-07, 1.63531e-07, 1.07616e-08, 3.49349e-09});
  expect_ones(report);
  EXPECT_LE(number(report, "Iteration Count Information", "Optimized CG iterations per set"), 54);
  const auto& spectral = report["hpcg"]["Spectral Convergence Tests"];
  EXPECT_EQ(spectral["Unpreconditioned"]["Maximum iteration count"], 11);
  EXPECT_EQ(spectral["Preconditioned"]["Maximum iteration count"], 1);
  for (const std::string line :
       {"Machine Summary=\nMachine Summary::Distributed Processes=1\n",
        "Multigrid Information::Coarse Grids::Grid Level=3\n",
        "Spectral Convergence Tests::Result=PASSED\n", "Reproducibility Information::Result=PASSED",
        "Iteration Count Information::Reference CG iterations per set=50\n",
        "Final Summary::HPCG result is VALID with a GFLOP/s rating of=",
        "Final Summary::Official results execution time (sec) must be at least=1800\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
}

TEST(Hpcg, AFaultInATimedSetIsPartOfTheRating) {
  const int ranks = ranks_here(2);
  const Arguments problem{"--stencil",      "24,16,16", "--time",   "0",
                          "--commit-every", "10",       "--history"};
  const auto calm = rate(ranks, problem);
  const auto struck =
      rate(ranks, problem + Arguments{"--fault", "kill@27:" + std::to_string(ranks - 1)});
  if (ranks == 2) {
    EXPECT_EQ(calm["nonzeros"], 302680);
    expect_history(calm,
                   {0.185222, 0.0979922, 0.0604618, 0.0278074, 0.0117615, 0.00415526, 0.00119841,
                    0.000435126, 9.32253e-05, 2.15952e-05, 8.64186e-06, 4.62192e-06});
  }
  expect_ones(struck);
  EXPECT_TRUE(struck.value("valid", false));
  ASSERT_EQ(struck["recoveries"].size(), 1u);
  EXPECT_EQ(struck["recoveries"][0]["kind"], "kill");
  EXPECT_GE(struck["recoveries"][0]["iteration"], 27);  // the program is ahead of its device
  ASSERT_EQ(struck["sets"].size(), calm["sets"].size());
  EXPECT_GT(struck["sets"][0]["epoch"], calm["sets"][0]["epoch"]);
  const auto residual = [](const Json& report) {
    return report["sets"][0].value("scaled_residual", std::nan(""));
  };
  if (on_cuda()) {
    EXPECT_NEAR(residual(struck) / residual(calm), 1, 0.05);
  } else {
    EXPECT_EQ(residual(struck), residual(calm));
  }
  EXPECT_EQ(number(struck, "Recovery Information", "Sets with a recovery"), 1);
  EXPECT_GT(number(struck, "Recovery Information", "Time of recoveries (sec)"), 0);
  // All of the recovery is in the time that the rating is made of.
  EXPECT_GT(struck["seconds"].get<double>(),
            number(struck, "Recovery Information", "Time of recoveries (sec)"));
}

TEST(Hpcg, FillsItsTimeWithSetsOfTheSameResidual) {
  const auto report = rate(1, {"--stencil", "16", "--time", "200ms"});
  const auto sets = report["sets"].size();
  ASSERT_GE(sets, 1u);
  for (const auto& set : report["sets"])
    EXPECT_EQ(set["scaled_residual"], report["sets"][0]["scaled_residual"]);
  EXPECT_EQ(report["iterations"].get<double>(),
            static_cast<double>(sets) *
                number(report, "Iteration Count Information", "Optimized CG iterations per set"));
  double seconds = 0;
  for (const auto& set : report["sets"]) seconds += set["seconds"].get<double>();
  EXPECT_NEAR(seconds, report["seconds"].get<double>(), 1e-9);
}

TEST(Hpcg, SaysWhatItDoesNotTake) {
  const std::pair<Arguments, std::string> cases[] = {
      {{"--hpcg", "--stencil", "20"}, "--stencil 20: --hpcg wants multiples of 8, from 16 on"},
      {{"--hpcg", "--stencil", "8"}, "--stencil 8: --hpcg wants multiples of 8, from 16 on"},
      {{"--hpcg", "--stencil", "16,16,136"}, "a ratio of sides up to 8"},
      {{"--hpcg", "--matrix", "x"}, "--hpcg wants --stencil"},
      {{"--hpcg", "--stencil", "16", "--dtype", "f32"}, "--dtype f32: --hpcg wants f64"},
      {{"--hpcg", "--stencil", "16", "--precond", "jacobi"}, "--precond jacobi: does not go"},
      {{"--hpcg", "--stencil", "16", "--tol", "1e-6"}, "--tol 1e-6: does not go with --hpcg"},
      {{"--hpcg", "--stencil", "16", "--on-loss", "shrink"}, "--on-loss shrink: --hpcg rates"},
      {{"--hpcg", "--stencil", "16", "--checkpoint-dir", "/tmp"}, "--hpcg times one run"},
      {{"--hpcg", "--stencil", "16", "--time", "soon"}, "soon"},
      {{"--stencil", "16", "--time", "5s"}, "--time 5s: goes with --hpcg alone"},
      {{"--hpcg", "--stencil", "16", "--time", "0", "--fault", "kill@5000:0"},
       "--fault: there is no iteration 5000 among"}};
  expect_refusals(cases);
}

}  // namespace
}  // namespace troupe::test
