#include <gtest/gtest.h>

#include "job.hpp"

// How run_program() ends a program that has done something wrong: with one line and a status.

namespace troupe::test {
namespace {

struct Ending {
  std::string name;
  int status;
  std::vector<std::string> words;  ///< of the one line; none: no line
};

class Ends : public ::testing::TestWithParam<Ending> {};
INSTANTIATE_TEST_SUITE_P(
    All, Ends,
    ::testing::Values(
        Ending{"read", 0, {}},
        Ending{"one-unread", 1, {"[rank 1] a command failed", "blas.dot: y has 6 elements, not 4"}},
        Ending{"unread", 1, {"[rank 1] 3 commands failed", "blas.dot: y has 6 elements, not 4"}},
        Ending{"unread-later", 1, {"[rank 0] a command failed", "99", "on 1 other rank"}},
        Ending{"unread-failing", 7, {"[rank 1] 3 commands failed"}},
        Ending{"unread-token", 1, {"[rank 1] 4 commands failed"}},
        Ending{"in-run", 2, {"blas.dot: y has 6 elements, not 4"}},
        Ending{"collective", 2, {"all know"}},
        Ending{"exception", 1, {"[rank 1]", "std::out_of_range", "the index is 9"}},
        Ending{"run-exception", 1, {"[rank 1]", "std::out_of_range", "the step is 3"}},
        Ending{"run-left", 1, {"[rank 0]", "rank 1 has left the run: the step is 3"}},
        Ending{"no-exception", 1, {"[rank 1]", "no std::exception"}},
        Ending{"upload", 2, {"5 elements", "4", "ends.cpp:"}}),
    [](const auto& test) {
      auto name = test.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST_P(Ends, WithOneLineAndAStatus) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "needs 2 ranks";
  const auto& ending = GetParam();
  Job job(2, {"--do", ending.name});
  EXPECT_EQ(job.wait(), ending.status) << job.out() << job.err();
  const auto lines = job.complaints();
  // What all ranks meet alike without agreeing on it, each may say before the job's end.
  const bool alike = ending.name == "in-run" || ending.name == "upload";
  EXPECT_EQ(lines.empty(), ending.words.empty()) << job.err();
  EXPECT_LE(lines.size(), alike ? 2u : 1u) << job.err();
  for (const auto& line : lines) {
    for (const auto& word : ending.words)
      EXPECT_NE(line.find(word), std::string::npos) << "no '" << word << "' in: " << line;
  }
  EXPECT_TRUE(job.nothing_left());
}

TEST(EndsAbruptly, ASliceThatIsNoneNamesItsLineAndTheNumbers) {
  Job job(1, {"--do", "slice"});
  EXPECT_NE(job.wait(), 0);
  EXPECT_NE(job.err().find("ends.cpp:"), std::string::npos) << job.err();
  EXPECT_NE(job.err().find("3 elements from 2 on are not all within 4"), std::string::npos)
      << job.err();
}

}  // namespace
}  // namespace troupe::test
