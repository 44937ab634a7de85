#include <gtest/gtest.h>

#include <cmath>

#include <nlohmann/json.hpp>
#include <troupe/recovery.hpp>

#include "job.hpp"

// troupe-cg solves, with and without faults, and gives the same answer.

namespace troupe::test {
namespace {

using Json = nlohmann::json;

/// Runs to the end and returns the report; expects success and nothing left.
Json solve(int ranks, const Arguments& arguments) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  Job job(ranks,
          arguments + Arguments{"--history", "--json", file.string(), "--log-level", "error"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
  EXPECT_EQ(job.err(), "");
  const auto report = Json::parse(read_file(file), nullptr, false);
  EXPECT_FALSE(report.is_discarded()) << job.out();
  return report.is_discarded() ? Json::object() : report;
}

void expect_solution(const Json& report, double tolerance) {
  ASSERT_TRUE(report.contains("converged"));
  EXPECT_TRUE(report["converged"].get<bool>());
  EXPECT_LE(report["relative_residual"].get<double>(), tolerance);
  EXPECT_LE(report["true_relative_residual"].get<double>(), 20 * tolerance);
}

/// Nobody reads what is printed; all else goes on, and what is opened has other numbers.
TEST(ClosedDescriptors, AreNobodyElses) {
  const Scratch scratch;
  const auto file = scratch.file("report.json");
  const Arguments arguments{"--stencil", "8", "--json", file.string()};
  const auto without = [](const std::string& closed) {
    return JobOptions{.starter = {"sh", "-c", "exec \"$@\" " + closed, "sh"}};
  };
  {
    Job job(Job::kNoMpirun, arguments, without("2>&-"));
    EXPECT_EQ(job.wait(), 0) << job.out();
    EXPECT_NE(job.out().find("converged"), std::string::npos) << job.out();
  }
  for (const auto* closed : {">&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    fs::remove(file);
    Job job(Job::kNoMpirun, arguments, without(closed));
    EXPECT_EQ(job.wait(), 1) << closed << ": what was printed is lost\n" << job.err();
    const auto report = Json::parse(read_file(file), nullptr, false);
    EXPECT_TRUE(report.value("converged", false)) << closed;
    EXPECT_TRUE(job.nothing_left());
  }
}

/// A path is any bytes.
TEST(Solve, APathThatIsNoTextIsReportedAllTheSame) {
  const Scratch scratch;
  const auto matrix = scratch.write("m\xff.mtx",
                                    "%%MatrixMarket matrix coordinate real symmetric\n"
                                    "3 3 3\n1 1 2\n2 2 3\n3 3 4\n");
  const auto report = solve(Job::kNoMpirun, {"--matrix", matrix.string()});
  EXPECT_TRUE(report.value("converged", false));
  EXPECT_NE(report.dump().find("m\xef\xbf\xbd.mtx"), std::string::npos) << report.dump();
}

/// The same iterations, and at every check the same residual: on the cpu engine bit by bit, where
/// reductions may be ordered otherwise to rounding.
void expect_same(const Json& a, const Json& b) {
  ASSERT_TRUE(a.contains("history") && b.contains("history"));
  EXPECT_EQ(a["iterations"], b["iterations"]);
  ASSERT_EQ(a["history"].size(), b["history"].size());
  const double slack = on_cuda() ? (a["dtype"] == "f32" ? 0.05 : 1e-4) : 0;
  for (std::size_t i = 0; i < a["history"].size(); ++i) {
    ASSERT_EQ(a["history"][i][0], b["history"][i][0]);
    const auto first = a["history"][i][1].get<double>(), second = b["history"][i][1].get<double>();
    ASSERT_LE(std::abs(first - second), slack * first) << "at iteration " << a["history"][i][0];
  }
}

void expect_recoveries(const Json& report, const std::vector<std::string>& kinds,
                       std::int64_t commit_every) {
  ASSERT_TRUE(report.contains("recoveries"));
  const auto& list = report["recoveries"];
  std::vector<std::string> seen;
  std::uint32_t epoch = 1;
  for (const auto& recovery : list) {
    seen.push_back(recovery["kind"]);
    EXPECT_GE(recovery["epoch"].get<std::uint32_t>(), epoch);
    epoch = recovery["epoch"];
    for (const auto& time : kRecoveryTimes) {
      const auto ms = recovery[std::string(time.name) + "_ms"].get<double>();
      EXPECT_GE(ms, 0) << time.name;
      EXPECT_LE(ms, recovery["total_ms"].get<double>() + 0.001) << time.name;
    }
    EXPECT_GE(recovery["lost_buffers"].get<int>(), 0);
    EXPECT_GE(recovery["repeated_iterations"].get<std::int64_t>(), 0);
    // What is submitted ahead of the check is repeated too: at most two commits' worth.
    EXPECT_LE(recovery["repeated_iterations"].get<std::int64_t>(), 2 * commit_every + 1);
  }
  std::sort(seen.begin(), seen.end());
  auto expected = kinds;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(report["epoch"].get<std::uint32_t>(), epoch);
  EXPECT_EQ(epoch > 1, !kinds.empty());
}

// Problems

struct Problem {
  std::string name;
  int ranks;
  std::string matrix;  ///< a file of shared/matrices; empty: see arguments
  Arguments arguments;
  std::string tolerance;
  std::int64_t strike;  ///< the iteration of the fault
};

class Solve : public ::testing::TestWithParam<Problem> {};
INSTANTIATE_TEST_SUITE_P(
    Problems, Solve,
    ::testing::Values(
        Problem{"bus494_jacobi_4", 4, "494_bus.mtx", {"--precond", "jacobi"}, "1e-8", 120},
        Problem{"bus494_plain_3", 3, "494_bus.mtx", {}, "1e-8", 333},
        Problem{"bcsstk13_jacobi_4", 4, "bcsstk13.mtx", {"--precond", "jacobi"}, "1e-6", 700},
        Problem{"stencil_1", 1, "", {"--stencil", "14"}, "1e-8", 11},
        Problem{
            "stencil_jacobi_3", 3, "", {"--stencil", "12,9,7", "--precond", "jacobi"}, "1e-10", 13},
        Problem{"stencil_f32_4", 4, "", {"--stencil", "10", "--dtype", "f32"}, "1e-5", 9},
        Problem{"stencil_jacobi_f32_3",
                3,
                "",
                {"--stencil", "6,8,10", "--precond", "jacobi", "--dtype", "f32"},
                "1e-4",
                7},
        Problem{"stencil_mg_2", 2, "", {"--stencil", "16,8,24", "--precond", "mg"}, "1e-10", 6},
        Problem{"stencil_mg_f32_3",
                3,
                "",
                {"--stencil", "8", "--precond", "mg", "--dtype", "f32"},
                "1e-5",
                3},
        Problem{"stencil_4", 4, "", {"--stencil", "16"}, "1e-9", 17}),
    [](const auto& tested) { return tested.param.name; });

TEST_P(Solve, AFaultDoesNotChangeTheAnswer) {
  const auto& problem = GetParam();
  const int ranks = ranks_here(problem.ranks);
  auto arguments = problem.arguments + Arguments{"--tol", problem.tolerance, "--check-every",
                                                 "5",     "--commit-every",  "20"};
  if (!problem.matrix.empty()) {
    const auto folder = shared_matrices();
    if (folder.empty()) GTEST_SKIP() << "there is no folder of shared matrices (TROUPE_SHARED)";
    arguments = arguments +
                Arguments{"--matrix", (folder / problem.matrix).string(), "--max-iter", "100000"};
  }
  const double tolerance = std::stod(problem.tolerance);
  const auto calm = solve(ranks, arguments);
  expect_solution(calm, tolerance);
  expect_recoveries(calm, {}, 20);
  ASSERT_GT(calm["iterations"].get<std::int64_t>(), problem.strike)
      << "the fault would come too late";
  const auto rank = std::to_string(ranks - 1);
  const auto struck =
      solve(ranks, arguments +
                       Arguments{"--fault", "kill@" + std::to_string(problem.strike) + ":" + rank});
  expect_solution(struck, tolerance);
  expect_recoveries(struck, {"kill"}, 20);
  expect_same(calm, struck);
}

TEST(Multigrid, TakesLessThanHalfOfTheIterations) {
  const auto iterations = [](const char* preconditioner) {
    const auto report = solve(ranks_here(2), {"--stencil", "32", "--precond", preconditioner,
                                              "--tol", "1e-9", "--check-every", "1"});
    expect_solution(report, 1e-9);
    return report["iterations"].get<std::int64_t>();
  };
  EXPECT_LT(2 * iterations("mg"), iterations("jacobi"));
}

TEST(Report, HasEverything) {
  const auto report = solve(ranks_here(2), {"--stencil", "8", "--fault", "exit@3:0"});
  for (const char* key : {"app", "engine", "ranks", "rows", "nonzeros", "iterations", "converged",
                          "relative_residual", "true_relative_residual", "relative_error",
                          "seconds", "gflops", "recoveries"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  EXPECT_EQ(report["app"], "troupe-cg");
  EXPECT_EQ(report["engine"], engine());
  EXPECT_EQ(report["ranks"], ranks_here(2));
  EXPECT_EQ(report["rows"], 512 * ranks_here(2));
  ASSERT_EQ(report["recoveries"].size(), 1u);
  for (const char* key :
       {"rank", "kind", "iteration", "epoch", "total_ms", "lost_buffers", "repeated_iterations"}) {
    EXPECT_TRUE(report["recoveries"][0].contains(key)) << key;
  }
  for (const auto& time : kRecoveryTimes) {
    const auto key = std::string(time.name) + "_ms";
    EXPECT_TRUE(report["recoveries"][0].contains(key)) << key;
  }
}

// Faults

struct Drill {
  std::string name;
  std::vector<std::string> faults;  ///< KIND@WHEN:RANK
  Arguments arguments;
  std::vector<std::string> kinds;  ///< that must be reported; empty: those of `faults`
  int commit_every = 8;
};

std::vector<Drill> drills() {
  std::vector<Drill> list{
      {"kill", {"kill@12:1"}, {}, {}},
      {"segv", {"segv@12:2"}, {}, {}},
      {"exit", {"exit@12:3"}, {}, {}},
      {"hang", {"hang@12:1"}, {"--heartbeat-timeout", "1s"}, {}},
      {"first_iteration", {"kill@0:0"}, {}, {}},
      {"several_at_once", {"kill@12:0", "segv@12:1", "exit@12:3"}, {}, {}},
      {"all_at_once", {"kill@12:0", "kill@12:1", "kill@12:2", "kill@12:3"}, {}, {}},
      {"one_after_the_other", {"kill@7:0", "kill@13:0", "exit@19:2"}, {}, {}},
      {"standby_off", {"kill@7:1", "kill@16:0"}, {"--standby", "off"}, {}},
      {"often", {"kill@5:2", "kill@9:2", "kill@14:2"}, {}, {}, 3},
  };
  for (const auto name : kRecoveryPhases) {
    const std::string phase(name);
    // A standby world replaces every device host at once, and nothing is formed.
    const bool on_the_spot = phase == "replace" || phase == "form";
    list.push_back({"in_" + phase,
                    {"kill@12:1", "kill@" + phase + ":2"},
                    {"--standby", on_the_spot ? "local" : "world"},
                    {"kill", "kill"}});
  }
  if (on_cuda()) {
    for (const std::string kind : {"illegal-address", "trap", "assert", "misaligned"}) {
      auto name = kind;
      std::replace(name.begin(), name.end(), '-', '_');
      list.push_back({name, {kind + "@12:1"}, {}, {}});
    }
  }
  return list;
}

class Fault : public ::testing::TestWithParam<Drill> {};
INSTANTIATE_TEST_SUITE_P(Drills, Fault, ::testing::ValuesIn(drills()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(Fault, IsOvercome) {
  const int ranks = ranks_here(4);
  const Arguments problem{"--stencil", "10", "--check-every", "4", "--tol", "1e-10"};
  Arguments arguments =
      problem + Arguments{"--commit-every", std::to_string(GetParam().commit_every)};
  std::vector<std::string> kinds = GetParam().kinds;
  for (const auto& fault : GetParam().faults) {
    const auto rank = std::stoi(fault.substr(fault.find(':') + 1));
    if (rank >= ranks) GTEST_SKIP() << "needs rank " << rank << ", there are " << ranks;
    arguments = arguments + Arguments{"--fault", fault};
    if (GetParam().kinds.empty()) kinds.push_back(fault.substr(0, fault.find('@')));
  }
  arguments = arguments + GetParam().arguments;
  const auto calm = solve(ranks, problem);
  expect_solution(calm, 1e-10);
  const auto struck = solve(ranks, arguments);
  expect_solution(struck, 1e-10);
  expect_recoveries(struck, kinds, GetParam().commit_every);
  expect_same(calm, struck);
}

TEST(Isolation, AThreadSolvesToo) {
  const Arguments problem{"--stencil", "8"};
  const auto process = solve(ranks_here(2), problem);
  const auto thread = solve(ranks_here(2), problem + Arguments{"--isolation", "thread"});
  expect_same(process, thread);
}

TEST(Completion, MakesNoDifference) {
  const Arguments problem{"--stencil", "8"};
  const auto event = solve(ranks_here(2), problem);
  for (const std::string completion : {"host_fn", "sync"}) {
    expect_same(event, solve(ranks_here(2), problem + Arguments{"--completion", completion}));
  }
}

// Ends

TEST(Faults, ThatNeverStrikeAreNamedAtTheEnd) {
  Job job(ranks_here(2), {"--stencil", "8", "--fault", "kill@99999:0", "--fault", "segv@form:0"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto lines = [&](std::string_view words) {
    std::size_t found = 0;
    for (auto at = job.err().find(words); at != std::string::npos;
         at = job.err().find(words, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(lines("--fault kill@99999:0 has not struck"), 1u) << job.err();
  EXPECT_EQ(lines("segv that was ordered for form has not struck"), 1u) << job.err();
  EXPECT_NE(job.out().find("Recoveries: 0"), std::string::npos) << job.out();
}

TEST(Status, OfARunThatDoesNotConvergeIsOne) {
  Job job(ranks_here(2), {"--stencil", "12", "--max-iter", "3", "--tol", "1e-12"});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Status, OfASpentBudgetIsSeventyFive) {
  Job job(ranks_here(4), {"--stencil", "10", "--restart-budget", "1", "--fault", "kill@3:0",
                          "--fault", "kill@8:0"});
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  ASSERT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_NE(job.complaints()[0].find("budget_exhausted"), std::string::npos) << job.complaints()[0];
  EXPECT_EQ(job.err().find("Signal"), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Status, OfBudgetZeroIsSeventyFiveAtTheFirstLoss) {
  Job job(ranks_here(3), {"--stencil", "10", "--restart-budget", "0", "--fault", "segv@3:0"});
  EXPECT_EQ(job.wait(), 75) << job.out() << job.err();
  EXPECT_EQ(job.complaints().size(), 1u) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Rank, KilledFromOutsideTakesEverythingAlong) {
  const int ranks = ranks_here(3);
  Job job(ranks,
          {"--stencil", "24", "--tol", "0", "--max-iter", "100000000", "--precond", "jacobi"});
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (job.out().find("iteration") == std::string::npos && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(20ms);
  const auto its_ranks = job.processes("troupe-cg");
  ASSERT_EQ(its_ranks.size(), static_cast<std::size_t>(ranks)) << job.out() << job.err();
  ASSERT_GE(job.processes("troupe-device").size(), static_cast<std::size_t>(ranks));
  ::kill(its_ranks.back(), SIGKILL);
  EXPECT_GT(job.wait(), 0);
  EXPECT_TRUE(job.nothing_left());
}

TEST(Questions, AreAnsweredOnce) {
  for (const auto& [option, answer] : {std::pair{"--help", "--stencil"},
                                       {"--version", "troupe-cg (troupe)"},
                                       {"--print-config", "check-every"}}) {
    Job job(2, {option});
    EXPECT_EQ(job.wait(), 0) << job.err();
    const auto text = job.out();
    const auto first = text.find(answer);
    EXPECT_NE(first, std::string::npos) << text;
    if (std::string(option) == "--version") {
      EXPECT_EQ(text.find(answer, first + 1), std::string::npos) << "more than one rank answered";
    }
  }
}

}  // namespace
}  // namespace troupe::test
