#include "report_job.hpp"

// --check products in programs: a product that is wrong is done again, and changes nothing; one
// that is wrong twice ends the job.

namespace troupe::test {
namespace {

bool is_cg() {
  return fs::path(TROUPE_TEST_PROGRAM).filename() == "troupe-cg";
}
/// One command after another: what a graph launches is not looked at.
Arguments problem() {
  if (is_cg()) return {"--stencil", "16", "--commit-every", "5", "--record", "off"};
  return {"-m", "90", "-n", "80", "-k", "70", "-r", "6", "--commit-every", "2"};
}
std::vector<const char*> results() {
  if (is_cg()) return {"iterations", "relative_residual", "relative_error"};
  return {"residual"};
}

struct Ended {
  Json report;
  std::string complaint;
};
Ended run(const Arguments& more, int status = 0) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  Job job(ranks_here(2),
          problem() + more + Arguments{"--json", file.string(), "--log-level", "warn"});
  EXPECT_EQ(job.wait(), status) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  return {status == 0 ? Json::parse(read_file(file)) : Json::object(), job.err()};
}

const Arguments kChecked{"--check", "products"};
/// The last rank, from step 3 on.
Arguments fault(const char* kind) {
  return {"--fault", std::string(kind) + "@3:" + std::to_string(ranks_here(2) - 1)};
}

TEST(CheckedProducts, OneThatIsWrongIsDoneAgain) {
  const auto undisturbed = run({});
  const auto checked = run(kChecked);
  EXPECT_EQ(checked.complaint.find("product"), std::string::npos) << checked.complaint;
  const auto struck = run(kChecked + fault("wrong-product"));
  for (const auto* const result : results()) {
    EXPECT_EQ(checked.report[result], undisturbed.report[result]) << result;
    EXPECT_EQ(struck.report[result], undisturbed.report[result]) << result;
  }
  EXPECT_NE(struck.complaint.find("a product was wrong, and right when it was done again"),
            std::string::npos)
      << struck.complaint;
  EXPECT_EQ(struck.report["recoveries"], Json::array());
}

TEST(CheckedProducts, OneThatIsWrongTwiceEndsTheJob) {
  const auto ended = run(kChecked + fault("wrong-products"), 1);
  EXPECT_NE(ended.complaint.find("corrupt"), std::string::npos) << ended.complaint;
  EXPECT_NE(ended.complaint.find(is_cg() ? "sparse.spmv: wrong twice" : "blas.gemm: wrong twice"),
            std::string::npos)
      << ended.complaint;
}

}  // namespace
}  // namespace troupe::test
