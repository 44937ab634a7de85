#include "hpcg_result.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace troupe::cg {
namespace {

/// What HPCG 3.1 itself (github.com/hpcg-benchmark/hpcg, one process, --nx=16 --ny=16 --nz=16
/// --rt=1) has measured in a run; what it made of that stands in the test.
HpcgResult run_of_hpcg() {
  HpcgResult r;
  r.points = {16, 16, 16};
  r.ranks = 1;
  r.index_bytes = 4;
  r.grid_rows = {4096, 512, 64, 8};
  r.grid_nonzeros = {97336, 10648, 1000, 64};
  r.setup_seconds = 0.002219;
  r.optimisation_seconds = 1e-6;
  r.plain_iterations = 11;
  r.preconditioned_iterations = 1;
  r.spmv_departure = 6.29632e-05;
  r.multigrid_departure = 3.71658e-06;
  r.reached = true;
  r.set_iterations = 50;
  r.seconds = 1.04085;
  r.sets.assign(39, {r.seconds / 39, 3.66234e-41, 1});
  r.first_epoch = 1;
  return r;
}

/// As HPCG prints: six digits.
void expect_printed(double value, double printed) {
  EXPECT_NEAR(value / printed, 1, 1e-5) << value << " is not " << printed;
}

TEST(HpcgResult, MakesOfARunWhatHpcgMakesOfIt) {
  const auto r = run_of_hpcg();
  const auto flops = operations(r);
  expect_printed(flops.dot, 4.82427e+07);
  expect_printed(flops.waxpby, 4.82427e+07);
  expect_printed(flops.spmv, 3.87203e+08);
  expect_printed(flops.multigrid, 2.12569e+09);
  expect_printed(flops.total(), 2.60938e+09);
  expect_printed(bytes_read(r).total() / r.seconds / 1e9, 15.5);
  expect_printed(bytes_written(r).total() / r.seconds / 1e9, 3.58504);
  expect_printed(r.gflops(), 2.48628);
  EXPECT_TRUE(r.valid());
  EXPECT_DOUBLE_EQ(r.residual_moments()[0], 3.66234e-41);
  EXPECT_EQ(r.residual_moments()[1], 0);
}

TEST(HpcgResult, CountsOperationsOfTheReferenceAlone) {
  auto r = run_of_hpcg();
  const auto rating = r.gflops();
  const auto before = operations(r).total();
  r.set_iterations = 100;
  // Twice the iterations, but for the work before the first one of each set, which is scaled too.
  EXPECT_LT(r.gflops(), rating);
  EXPECT_NEAR(r.gflops() / rating, operations(r).total() / before / 2, 1e-12);
}

TEST(HpcgResult, IsValidOnlyIfEachTestIsPassed) {
  const auto spoilt = [](auto spoil) {
    auto r = run_of_hpcg();
    spoil(r);
    return r.valid();
  };
  EXPECT_TRUE(spoilt([](HpcgResult& r) { r.plain_iterations = 12; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.plain_iterations = 13; }));
  EXPECT_TRUE(spoilt([](HpcgResult& r) { r.preconditioned_iterations = 2; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.preconditioned_iterations = 3; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.spmv_departure = 1.5; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.multigrid_departure = 1.5; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.multigrid_departure = std::nan(""); }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.reached = false; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.sets[3].scaled_residual = 0.1; }));
  EXPECT_FALSE(spoilt([](HpcgResult& r) { r.sets[3].scaled_residual = std::nan(""); }));
}

TEST(RecoveryCost, IsWhatStruckSetsTookLongerThanOthers) {
  HpcgResult r;
  r.first_epoch = 3;
  r.sets = {{1.0, 0, 3}, {1.2, 0, 3}, {4.0, 0, 4}, {1.1, 0, 4}, {2.0, 0, 6}};
  const auto cost = recovery_cost(r);
  EXPECT_EQ(cost.struck_sets, 2);
  EXPECT_DOUBLE_EQ(cost.seconds, 6 - 2 * 1.1);
  r.sets.resize(2);
  EXPECT_EQ(recovery_cost(r).struck_sets, 0);
  r.first_epoch = 2;
  r.sets.resize(1);
  EXPECT_EQ(recovery_cost(r).struck_sets, 1);
  EXPECT_LT(recovery_cost(r).seconds, 0) << "there is no set to compare with";
}

}  // namespace
}  // namespace troupe::cg
