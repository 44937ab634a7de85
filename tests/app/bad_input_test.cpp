#include <gtest/gtest.h>

#include "job.hpp"

// Bad input: one clear line, status 2, all ranks gone, nothing left.

namespace troupe::test {
namespace {

/// Expects that the job is refused with one line that contains all of `words`.
void expect_refused(int ranks, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& words, const JobOptions& options = {}) {
  Job job(ranks, arguments, options);
  EXPECT_EQ(job.wait(), 2) << job.out() << job.err();
  const auto lines = job.complaints();
  EXPECT_EQ(lines.size(), 1u) << job.err();
  for (const auto& line : lines) {
    for (const auto& word : words)
      EXPECT_NE(line.find(word), std::string::npos) << "no '" << word << "' in: " << line;
  }
  // Beside mpirun's own block nothing is said: no log lines, no stack traces.
  EXPECT_EQ(job.err().find("Signal"), std::string::npos) << job.err();
  EXPECT_EQ(job.err().find(" E ["), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

// Files

struct BadFile {
  std::string name;
  std::string contents;
  std::string line;       ///< that must be named; empty: no certain one
  bool together = false;  ///< under mpirun, on several ranks
};

const std::string kBanner = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string kGeneral = "%%MatrixMarket matrix coordinate real general\n";

class File : public ::testing::TestWithParam<BadFile> {};
INSTANTIATE_TEST_SUITE_P(
    Bad, File,
    ::testing::Values(
        BadFile{"empty", "", ""}, BadFile{"no_banner", "3 3 3\n1 1 1\n2 2 1\n3 3 1\n", "1"},
        BadFile{"truncated", kBanner + "3 3 3\n1 1 1\n2 2 1\n", "", true},
        BadFile{"truncated_in_a_line", kBanner + "3 3 3\n1 1 1\n2 2 1\n3 3", "5"},
        BadFile{"too_many_entries", kBanner + "3 3 3\n1 1 1\n2 2 1\n3 3 1\n3 1 1\n", "6"},
        BadFile{"counts_are_missing", kBanner + "3 3\n1 1 1\n", "2"},
        BadFile{"counts_are_negative", kBanner + "3 3 -3\n1 1 1\n", "2"},
        BadFile{"index_zero", kBanner + "3 3 3\n1 1 1\n0 1 1\n3 3 1\n", "4"},
        BadFile{"index_out_of_range", kBanner + "3 3 3\n1 1 1\n4 2 1\n3 3 1\n", "4"},
        BadFile{"not_a_number", kBanner + "3 3 3\n1 1 1\n2 2 one\n3 3 1\n", "4"},
        BadFile{"not_finite", kBanner + "3 3 3\n1 1 1\n2 2 nan\n3 3 1\n", "4"},
        BadFile{"second_banner", kBanner + "3 3 3\n1 1 1\n" + kBanner + "2 2 1\n3 3 1\n", "4"},
        BadFile{"complex", "%%MatrixMarket matrix coordinate complex symmetric\n1 1 1\n1 1 1 0\n",
                "1", true},
        BadFile{"pattern", "%%MatrixMarket matrix coordinate pattern symmetric\n1 1 1\n1 1\n", "1"},
        BadFile{"array", "%%MatrixMarket matrix array real general\n1 1\n1\n", "1"},
        BadFile{"upper_triangle_of_symmetric", kBanner + "3 3 4\n1 1 1\n2 2 1\n3 3 1\n1 3 1\n",
                "6"},
        BadFile{"not_square", kGeneral + "3 4 3\n1 1 1\n2 2 1\n3 3 1\n", "2"},
        BadFile{"not_symmetric", kGeneral + "3 3 5\n1 1 4\n2 2 4\n3 3 4\n1 2 1\n2 1 2\n", "", true},
        BadFile{"mirror_is_missing", kGeneral + "3 3 4\n1 1 4\n2 2 4\n3 3 4\n1 2 1\n", "6"},
        BadFile{"twice_the_same_entry", kBanner + "3 3 4\n1 1 1\n2 2 1\n2 2 1\n3 3 1\n", "5"}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(File, IsRefusedByNameAndLine) {
  const Scratch scratch;
  const auto file = scratch.write("bad.mtx", GetParam().contents);
  const int ranks = GetParam().together ? ranks_here(3) : Job::kNoMpirun;
  expect_refused(ranks, {"--matrix", file.string()},
                 {file.string() + (GetParam().line.empty() ? "" : ":" + GetParam().line + ":")});
}

TEST(FileSystem, WithoutTheFile) {
  expect_refused(ranks_here(2), {"--matrix", "/nonexistent/matrix.mtx"},
                 {"/nonexistent/matrix.mtx"});
  expect_refused(Job::kNoMpirun, {"--matrix", "/tmp"}, {"/tmp"});
}

TEST(FileSystem, ThatCannotTakeTheReport) {
  expect_refused(Job::kNoMpirun, {"--stencil", "4", "--json", "/nonexistent/report.json"},
                 {"/nonexistent/report.json"});
}

TEST(FileSystem, ThatCannotTakeTheReportIsFoundOutBeforeTheWork) {
  const Scratch scratch;
  const auto folder = scratch.file("").string();
  Job job(Job::kNoMpirun, {"--stencil", "4", "--json", folder});
  EXPECT_EQ(job.wait(), 2) << job.out() << job.err();
  EXPECT_EQ(job.out(), "") << "it tells of a result that is lost";
  EXPECT_NE(job.err().find(folder), std::string::npos) << job.err();
}

/// Memory that processes share counts as files.
TEST(FileSystem, OfWhichFilesMayNotBeAsLargeAsASegment) {
  expect_refused(
      Job::kNoMpirun, {"--stencil", "4"},
      {"pinned-pool of 134217728 bytes", "100000000 bytes", "ulimit -f", "--pinned-pool"},
      {.environment = {"TROUPE_PINNED_POOL=128MiB"}, .starter = {"prlimit", "--fsize=100000000"}});
}

// Matrices

TEST(Matrix, OfFewerRowsThanRanks) {
  if (ranks_here(4) < 4) GTEST_SKIP() << "needs 4 ranks";
  const Scratch scratch;
  const auto file = scratch.write("small.mtx", kBanner + "3 3 3\n1 1 1\n2 2 1\n3 3 1\n");
  expect_refused(4, {"--matrix", file.string()}, {file.string(), "rank"});
}

/// Symmetric with one negative eigenvalue.
std::string indefinite(int rows) {
  std::string text = kBanner + std::to_string(rows) + " " + std::to_string(rows) + " " +
                     std::to_string(2 * rows - 1) + "\n";
  for (int i = 1; i <= rows; ++i) {
    text += std::to_string(i) + " " + std::to_string(i) + (i == rows / 2 ? " -50\n" : " 4\n");
    if (i < rows) text += std::to_string(i + 1) + " " + std::to_string(i) + " -1\n";
  }
  return text;
}

TEST(Matrix, ThatIsIndefiniteBreaksDown) {
  const Scratch scratch;
  const auto file = scratch.write("indefinite.mtx", indefinite(200));
  for (const std::string precond : {"none", "jacobi"}) {
    expect_refused(ranks_here(3), {"--matrix", file.string(), "--precond", precond},
                   {"p'Ap", "not positive definite", "iteration"});
  }
}

TEST(Matrix, ThatIsNegativeDefiniteBreaksDown) {
  const Scratch scratch;
  const auto file =
      scratch.write("negative.mtx", kBanner + "4 4 4\n1 1 -1\n2 2 -2\n3 3 -3\n4 4 -4\n");
  expect_refused(Job::kNoMpirun, {"--matrix", file.string()}, {"p'Ap", "not positive definite"});
}

/// Iterations behind the exact solution change nothing: the residual stays 0.
TEST(Matrix, ThatIsSolvedExactlyHasConverged) {
  const Scratch scratch;
  const auto identity =
      scratch.write("identity.mtx", kBanner + "4 4 4\n1 1 1\n2 2 1\n3 3 1\n4 4 1\n");
  for (const std::string precond : {"none", "jacobi"}) {
    for (const std::string dtype : {"f64", "f32"}) {
      Job job(Job::kNoMpirun, {"--matrix", identity.string(), "--precond", precond, "--dtype",
                               dtype, "--tol", "0"});
      EXPECT_EQ(job.wait(), 0) << job.err();
      EXPECT_TRUE(job.complaints().empty()) << job.err();
      for (const std::string name :
           {"relative residual       ", "true relative residual  ", "relative error          "})
        EXPECT_NE(job.out().find(name + " 0.000e+00"), std::string::npos) << job.out();
    }
  }
}

/// Numbers whose squares are too small for the dtype do not make a matrix indefinite.
TEST(Matrix, OfNumbersThatUnderflowIsNotCalledIndefinite) {
  const Scratch scratch;
  const auto diagonal = [&](const std::string& value) {
    std::string text = kBanner + "4 4 4\n";
    for (const std::string i : {"1", "2", "3", "4"}) text += i + " " + i + " " + value + "\n";
    return scratch.write("of_" + value + ".mtx", text).string();
  };
  for (const std::string value : {"4e-320", "4e-110"}) {
    expect_refused(Job::kNoMpirun, {"--matrix", diagonal(value), "--precond", "none"},
                   {value == "4e-320" ? "underflow" : "p'Ap underflows"});
  }
}

/// Past rounding the numbers of the method say nothing about the matrix, which is as good as any.
TEST(Matrix, ThatIsSolvedAsWellAsRoundingAllowsIsNotBlamed) {
  struct Case {
    std::vector<std::string> arguments, words;
  };
  const std::vector<Case> cases = {
      {{"--stencil", "8", "--tol", "1e-300", "--max-iter", "100000"},
       {"relative residual was down to"}},
      {{"--stencil", "8", "--tol", "1e-30", "--max-iter", "100000", "--dtype", "f32"},
       {"relative residual was down to"}}};
  for (const auto& one : cases) {
    Job job(ranks_here(2), one.arguments);
    const auto status = job.wait();
    const auto lines = job.complaints();
    // How this machine rounds decides whether the squares of the residual come to nothing in an
    // iteration that is looked at: then it has converged.
    if (status == 0) {
      EXPECT_NE(job.out().find("relative residual        0.000e+00"), std::string::npos);
      EXPECT_TRUE(lines.empty()) << job.err();
      continue;
    }
    EXPECT_EQ(status, 1) << job.out() << job.err();
    ASSERT_EQ(lines.size(), 1u) << job.err();
    EXPECT_EQ(lines[0].find("positive definite"), std::string::npos) << lines[0];
    EXPECT_NE(lines[0].find("stagnated in iteration"), std::string::npos) << lines[0];
    for (const auto& word : one.words)
      EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
  }
}

// Usage

TEST(Usage, UnknownOptionsAndValues) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--stencil", "8", "--tolerance", "1"}, "--tolerance"},
      {{"--stencil", "8", "stray"}, "stray"},
      {{}, "--matrix"},
      {{"--stencil", "8", "--matrix", "x"}, "--matrix"},
      {{"--stencil", "0"}, "--stencil 0"},
      {{"--stencil", "8,8"}, "--stencil 8,8"},
      {{"--stencil", "8x8"}, "--stencil 8x8"},
      {{"--stencil", "8", "--tol", "small"}, "tol"},
      {{"--stencil", "8", "--precond", "ilu"}, "precond"},
      {{"--stencil", "8,6,9", "--precond", "mg"}, "--stencil has 8,6,9"},
      {{"--matrix", "x", "--precond", "mg"}, "--precond mg: wants --stencil"},
      {{"--stencil", "8", "--dtype", "f16"}, "dtype"},
      {{"--stencil", "8", "--check-every", "0"}, "check-every"},
      {{"--stencil", "8", "--commit-every", "-1"}, "commit-every"},
      {{"--stencil", "8", "--max-iter", "many"}, "max-iter"},
      {{"--stencil", "8", "--log-level", "loud"}, "loud"},
      {{"--stencil", "8", "--check", "indexes"},
       "'indexes' is not one of none, collectives, indices"},
      {{"--stencil", "8", "--check", "indices,none"}, "check = indices,none: none stands alone"},
      {{"--stencil", "8", "--on-health", "respawn"}, "on-health"},
      {{"--stencil", "8", "--on-health", "shrink", "--isolation", "thread"}, "isolation = process"},
      {{"--stencil", "8", "--nvml", "/nonexistent.so"}, "NVML: /nonexistent.so"},
  };
  for (const auto& [arguments, word] : cases) {
    SCOPED_TRACE(word);
    expect_refused(Job::kNoMpirun, arguments, {word});
  }
}

TEST(Usage, BadFaults) {
  for (const std::string fault :
       {"kill", "kill@5", "kill@5:", "explode@5:0", "kill@lunch:0", "kill@-1:0", "kill@5:-1",
        "kill@5:x", "@5:0", "kill@:0", "kill@5:0:1", "failing-gpu@form:0"}) {
    SCOPED_TRACE(fault);
    expect_refused(Job::kNoMpirun, {"--stencil", "8", "--fault", fault}, {"--fault", fault});
  }
  expect_refused(Job::kNoMpirun, {"--stencil", "8", "--fault", "kill@5:7"}, {"--fault", "7"});
  if (on_cuda()) return;
  for (const std::string fault : {"trap@5:0", "illegal-address@form:0"})
    expect_refused(Job::kNoMpirun, {"--stencil", "8", "--fault", fault}, {"--fault", "GPUs only"});
}

TEST(Usage, OneLineFromAllRanksTogether) {
  expect_refused(ranks_here(4), {"--stencil", "8", "--nonsense"}, {"--nonsense"});
}

TEST(Usage, UnknownConfigurationKeysAndVariables) {
  const Scratch scratch;
  const auto file = scratch.write("troupe.conf", "# a comment\nstencil = 8\ncheck-evry = 3\n");
  expect_refused(Job::kNoMpirun, {"--config", file.string()}, {file.string() + ":3", "check-evry"});
  const auto bad = scratch.write("bad.conf", "stencil = 8\ncheck-every = soon\n");
  expect_refused(Job::kNoMpirun, {"--config", bad.string()}, {bad.string() + ":2", "check-every"});
  expect_refused(Job::kNoMpirun, {"--config", "/nonexistent.conf"}, {"/nonexistent.conf"});
  expect_refused(Job::kNoMpirun, {"--stencil", "8"}, {"TROUPE_CHECK_EVRY"},
                 {.environment = {"TROUPE_CHECK_EVRY=3"}});
  expect_refused(Job::kNoMpirun, {"--stencil", "8"}, {"TROUPE_CHECK_EVERY"},
                 {.environment = {"TROUPE_CHECK_EVERY=soon"}});
}

// Surroundings

TEST(Surroundings, NoDeviceHostProgram) {
  expect_refused(2, {"--stencil", "8", "--device-host", "/nonexistent/troupe-device-host"},
                 {"/nonexistent/troupe-device-host"});
  const Scratch scratch;
  fs::create_symlink(fs::path(TROUPE_TEST_LIBEXEC) / "troupe-engine-cpu.so",
                     scratch.file("troupe-engine-cpu.so"));
  fs::create_symlink(fs::path(TROUPE_TEST_LIBEXEC) / "troupe-engine-cuda.so",
                     scratch.file("troupe-engine-cuda.so"));
  const auto plain = scratch.write("troupe-device-host", "no program\n");
  if (::geteuid() == 0 || ::access(plain.c_str(), X_OK) != 0) {
    expect_refused(2, {"--stencil", "8", "--device-host", plain.string()}, {plain.string()});
  }
}

TEST(Surroundings, CudaWithoutAGpu) {
  if (gpu_count() > 0) GTEST_SKIP() << "this machine has GPUs";
  expect_refused(2, {"--stencil", "8", "--engine", "cuda"}, {"cuda"}, {.choose_engine = false});
}

TEST(Surroundings, MoreRanksThanGpus) {
  if (!on_cuda()) GTEST_SKIP() << "only with GPUs";
  expect_refused(gpu_count() + 1, {"--stencil", "8"}, {"more ranks than GPUs"});
}

TEST(Surroundings, MpiWithoutThreads) {
  expect_refused(2, {"--stencil", "8"}, {"MPI_THREAD_MULTIPLE"},
                 {.environment = {std::string("LD_PRELOAD=") + TROUPE_TEST_THREAD_SHIM}});
}

TEST(Surroundings, AWorldThatCannotBeFormed) {
  if (on_cuda()) GTEST_SKIP() << "NCCL tries again for minutes";
  Job job(2, {"--stencil", "8"},
          {.environment = {std::string("LD_PRELOAD=") + TROUPE_TEST_CONNECT_SHIM}});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  const auto lines = job.complaints();
  ASSERT_EQ(lines.size(), 1u) << job.err();
  for (const auto* word : {"the world could not be formed", "rank", "form", "refused"})
    EXPECT_NE(lines[0].find(word), std::string::npos) << "no '" << word << "' in: " << lines[0];
  EXPECT_TRUE(job.nothing_left());
}

TEST(Surroundings, MemoryThatDoesNotSuffice) {
  expect_refused(ranks_here(2), {"--stencil", "48", "--memory-limit", "8MiB"},
                 {"out_of_memory", "MiB"});
  // More than any machine has, by the host's reckoning.
  expect_refused(Job::kNoMpirun, {"--stencil", "20000"}, {"out_of_memory"});
}

}  // namespace
}  // namespace troupe::test
