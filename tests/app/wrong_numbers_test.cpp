#include <map>
#include <random>

#include "report_job.hpp"

// Hardware that computes wrong numbers, in the programs that commit: with --verify, and with
// entries that all ranks have alike.

namespace troupe::test {
namespace {

struct Program {
  Arguments problem;
  std::vector<const char*> results;  ///< in its report
  int steps, commit_every;
};

const Program& program() {
  static const std::map<std::string, Program> kAll{
      {"troupe-cg",
       {{"--stencil", "16", "--commit-every", "5"},
        {"iterations", "relative_residual", "relative_error"},
        50,
        5}},
      {"troupe-heat",
       {{"--points", "24", "--steps", "120", "--commit-every", "20"},
        {"right", "largest_error"},
        120,
        20}},
      {"troupe-train",
       {{"--layers", "2",  "--heads",        "2", "--channels",      "32",   "--sequence",  "16",
         "--batch",  "2",  "--warmup",       "4", "--learning-rate", "0.01", "--log-every", "0",
         "--steps",  "24", "--commit-every", "6"},
        {"losses"},
        24,
        6}}};
  return kAll.at(fs::path(TROUPE_TEST_PROGRAM).filename().string());
}
bool is_program(const std::string& name) {
  return fs::path(TROUPE_TEST_PROGRAM).filename() == name;
}

void expect_same_results(const Json& report, const Json& undisturbed) {
  for (const auto* const result : program().results)
    EXPECT_EQ(report[result], undisturbed[result]) << result;
}

Json run(int ranks, const Arguments& more, int status = 0, std::string* complaint = nullptr) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  Job job(ranks,
          program().problem + more + Arguments{"--json", file.string(), "--log-level", "error"});
  EXPECT_EQ(job.wait(), status) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  if (complaint != nullptr) *complaint = job.err();
  return status == 0 ? Json::parse(read_file(file)) : Json::object();
}

/// One bit of the state or of a result, in each second interval, on any rank: each is found where
/// it makes a difference, in its interval, and traced to its rank; the answer is that without.
TEST(WrongNumbers, AreFoundAndUndone) {
  const int ranks = ranks_here(4);
  const auto undisturbed = run(ranks, {"--verify", "1"});
  EXPECT_EQ(undisturbed["corruptions"], Json::array());
  std::mt19937 random(7);
  std::size_t flips = 0, found = 0;
  for (const auto* const kind : {"flip", "flip-result"}) {
    Arguments faults;
    std::map<int, int> struck;  // by the first step of the interval: the rank
    for (int begin = 0; begin < program().steps; begin += 2 * program().commit_every) {
      const auto step = begin + static_cast<int>(random() % 4) % program().commit_every;
      const auto rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
      struck[begin] = rank;
      faults = faults + Arguments{"--fault", std::string(kind) + "@" + std::to_string(step) + ":" +
                                                 std::to_string(rank)};
    }
    SCOPED_TRACE(kind);
    const auto report = run(ranks, faults + Arguments{"--verify", "1"});
    expect_same_results(report, undisturbed);
    flips += struck.size();
    for (const auto& one : report["corruptions"]) {
      ++found;
      const auto at = struck.find(one["first_step"].get<int>());
      ASSERT_NE(at, struck.end()) << one;
      EXPECT_EQ(one["rank"], at->second) << one;
      EXPECT_EQ(one["persistent"], false) << one;
      EXPECT_NE(one["wrong"], one["right"]) << one;
    }
  }
  EXPECT_GE(2 * found, flips);
}

/// Each second interval is looked at, so only what comes about there is found.
TEST(WrongNumbers, AreFoundInTheIntervalsThatAreVerified) {
  if (!is_program("troupe-heat")) GTEST_SKIP() << "troupe-heat is enough";
  const int every = program().commit_every;
  const auto at = [&](int interval) {
    return "flip@" + std::to_string(interval * every + 1) + ":0";
  };
  const auto report = run(1, {"--verify", "2", "--fault", at(0), "--fault", at(1)});
  for (const auto& one : report["corruptions"]) EXPECT_EQ(one["first_step"], every);
}

/// A GPU that is wrong each time gives no two passes alike.
TEST(WrongNumbers, OfASickGpuEndTheJobOrTheGpuIsLeft) {
  if (!is_program("troupe-cg")) GTEST_SKIP() << "troupe-cg is enough";
  const int ranks = ranks_here(4);
  const auto fault = "sick-gpu@" + std::to_string(program().commit_every + 1) + ":0";
  const Arguments sick{"--verify", "1", "--fault", fault};
  std::string complaint;
  run(ranks, sick, 1, &complaint);
  EXPECT_NE(complaint.find("corrupt: rank 0 ("), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("again and again"), std::string::npos) << complaint;
  if (ranks < 3) return;
  // Not rank 0, which writes the report: another process is that rank then, and knows of nothing.
  const Arguments other{"--verify", "1", "--fault",
                        "sick-gpu@" + std::to_string(program().commit_every + 1) + ":1"};
  const auto moved = run(ranks, other + Arguments{"--on-rank-loss", "respawn", "--spares", "1",
                                                  "--on-health", "replace"});
  EXPECT_EQ(moved["corruptions"].size(), 1u) << moved["corruptions"];
  expect_same_results(moved, run(ranks - 1, {}));
  const auto left = run(ranks, sick + Arguments{"--on-loss", "shrink", "--on-health", "shrink"});
  ASSERT_EQ(left["corruptions"].size(), 1u) << left["corruptions"];
  EXPECT_EQ(left["corruptions"][0]["rank"], 0);
  EXPECT_EQ(left["corruptions"][0]["persistent"], true);
}

/// Verified intervals go together with faults that cost a device host or a process.
TEST(WrongNumbers, GoTogetherWithFaults) {
  if (!is_program("troupe-heat")) GTEST_SKIP() << "troupe-heat is enough";
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "nobody has a copy";
  const auto step = [&](int interval, int more) {
    return std::to_string(interval * program().commit_every + more);
  };
  const auto undisturbed = run(ranks, {});
  const auto report =
      run(ranks, {"--verify", "1", "--on-rank-loss", "respawn", "--fault",
                  "kill@" + step(0, 2) + ":0", "--fault", "flip@" + step(1, 1) + ":1", "--fault",
                  "rank@" + step(2, 2) + ":1", "--fault", "flip-result@" + step(3, 1) + ":0"});
  expect_same_results(report, undisturbed);
  EXPECT_EQ(report["recoveries"].size(), 2u);
}

/// Memory that no command was to write, such as the matrix of a solver.
TEST(WrongNumbers, InGuardedMemoryEndTheJob) {
  const int ranks = ranks_here(2);
  const Arguments guarded{"--check", "writes", "--check-writes-budget", "1"};
  expect_same_results(run(ranks, guarded), run(ranks, {}));
  if (!is_program("troupe-cg")) return;  // the others have next to nothing that is never written
  const auto last = std::to_string(ranks - 1);
  std::string complaint;
  Arguments faults;  // memory that is written later anyway may be struck: nothing is wrong then
  for (const auto* const step : {"12", "22", "32", "37"})
    faults = faults + Arguments{"--fault", "stray-write@" + std::string(step) + ":" + last};
  run(ranks, guarded + faults, 1, &complaint);
  EXPECT_NE(complaint.find("rank " + last + ": buffer "), std::string::npos) << complaint;
  EXPECT_NE(complaint.find(" has changed in its bytes "), std::string::npos) << complaint;
}

/// Without --verify: what no step writes, such as the matrix of a solver, is written anew.
TEST(WrongNumbers, OfConstantsAreUndone) {
  if (is_program("troupe-heat")) GTEST_SKIP() << "it has no constants";
  const int ranks = ranks_here(3), every = program().commit_every;
  Arguments faults;
  std::map<int, int> struck;  // by the first step of the interval: the rank
  for (int begin = 0; begin < program().steps; begin += 2 * every) {
    const int rank = begin / every % ranks;
    struck[begin] = rank;
    faults = faults + Arguments{"--fault", "stray-write@" + std::to_string(begin + every - 2) +
                                               ":" + std::to_string(rank)};
  }
  const auto undisturbed = run(ranks, {});
  if (is_program("troupe-cg"))  // on few ranks it ends sooner
    std::erase_if(struck, [&](const auto& one) {
      return one.first + every > undisturbed["iterations"].template get<int>();
    });
  ASSERT_GE(struck.size(), 2u);
  for (const auto& more : {Arguments{}, Arguments{"--verify", "1"}}) {
    const auto report = run(ranks, faults + more);
    expect_same_results(report, undisturbed);
    ASSERT_EQ(report["corruptions"].size(), struck.size());
    for (const auto& one : report["corruptions"]) {
      const auto at = struck.find(one["first_step"].get<int>());
      ASSERT_NE(at, struck.end()) << one;
      EXPECT_EQ(one["rank"], at->second) << one;
      EXPECT_EQ(one["found"], "constant") << one;
      EXPECT_EQ(one["persistent"], false) << one;
      EXPECT_EQ(one["count"], 1) << one;
    }
  }
}

/// Without --verify: what all ranks of the training have alike is compared in each commit.
TEST(WrongNumbers, OfReplicasAreUndone) {
  if (!is_program("troupe-train")) GTEST_SKIP() << "it has no entry that is the same on all ranks";
  const int ranks = ranks_here(3);
  if (ranks < 2) GTEST_SKIP() << "one rank";
  const auto undisturbed = run(ranks, {});
  std::size_t found = 0;
  for (const int step : {3, 9}) {
    const int rank = step % ranks;
    const auto fault = "flip@" + std::to_string(step) + ":" + std::to_string(rank);
    const auto report = run(ranks, {"--fault", fault});
    for (const auto& one : report["corruptions"]) {
      ++found;
      EXPECT_EQ(one["found"], "replicated");
      EXPECT_EQ(one["rank"], ranks > 2 ? rank : -1) << one;
      EXPECT_EQ(one["first_step"], step / program().commit_every * program().commit_every);
      expect_same_results(report, undisturbed);
    }
  }
  EXPECT_GE(found, 1u);
}

}  // namespace
}  // namespace troupe::test
