#include <gtest/gtest.h>

#include <regex>
#include <set>

#include <nlohmann/json.hpp>

#include "job.hpp"

// troupe-torture as its users run it: it passes, it can fail, and what fails is made smaller.

namespace troupe::test {
namespace {

const Arguments kQuiet{"--seed",   "1",   "--faults",   "off", "--rounds",     "free",
                       "--tokens", "off", "--programs", "2",   "--operations", "300"};

TEST(Torture, ProgramsGiveWhatTheOracleSays) {
  Job job(ranks_here(2), kQuiet);
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_NE(job.out().find("nothing wrong"), std::string::npos) << job.out();
  EXPECT_TRUE(job.nothing_left());
}

/// As does the trace: each command once, none lost, whatever the faults.
TEST(Torture, ATraceOfItLacksNothing) {
  const Scratch scratch;
  const auto file = scratch.file("trace.json");
  Job job(ranks_here(2), {"--seed", "3", "--programs", "2", "--operations", "300", "--trace",
                          file.string(), "--trace-kernels", "on"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto trace = nlohmann::json::parse(read_file(file), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace.at("otherData").at("lost"), 0);
  std::set<std::pair<int, std::uint64_t>> submitted;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "i" && event.value("cat", "") == "submit") {
      EXPECT_TRUE(submitted.emplace(event.at("pid"), event.at("args").at("ticket")).second);
    }
  }
  EXPECT_EQ(trace.at("otherData").at("commands"), submitted.size());
  EXPECT_GT(submitted.size(), 600u);
  EXPECT_TRUE(job.nothing_left());
}

/// One flipped byte in one download ends the job, with the line that replays it.
TEST(Torture, AFlippedByteIsFound) {
  Job job(ranks_here(2), kQuiet + Arguments{"--spoil", "20"});
  EXPECT_EQ(job.wait(), 1) << job.out();
  EXPECT_NE(job.err().find("WRONG CONTENTS"), std::string::npos) << job.err();
  EXPECT_NE(job.err().find("replay: mpirun -n"), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Torture, ADescriptorThatIsLeftOpenIsFound) {
  Job job(ranks_here(2), kQuiet + Arguments{"--leak", "on", "--deadline", "5s"});
  EXPECT_EQ(job.wait(), 1) << job.out();
  EXPECT_NE(job.err().find("LEFT OPEN: the rank has open: "), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

/// A rank is lost for good, before anything else is looked at, and its part of the data is dealt
/// out to the others.
const Arguments kLoss{"--seed",           "114", "--operations",   "150", "--on-loss", "shrink",
                      "--restart-budget", "0",   "--rejoin-after", "0s"};

TEST(Torture, AWorldShrinksWithWhatTheOracleSays) {
  if (ranks_here(3) < 3) GTEST_SKIP() << "a rank is lost";
  Job job(3, kLoss);
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_NE(job.out().find("on 2 ranks"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("1 ranks lost, 0 back; nothing wrong"), std::string::npos) << job.out();
  EXPECT_TRUE(job.nothing_left());
}

/// The rank comes back, and the data are dealt out once more. It may be lost again, and come back.
TEST(Torture, AWorldGrowsAgainWithWhatTheOracleSays) {
  if (ranks_here(3) < 3) GTEST_SKIP() << "a rank is lost";
  auto arguments = kLoss;
  arguments.back() = "200ms";
  Job job(3, arguments);
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  std::smatch found;
  const auto out = job.out();
  ASSERT_TRUE(std::regex_search(out, found,
                                std::regex("([1-9][0-9]*) ranks lost, \\1 back; nothing wrong")))
      << out;
  EXPECT_TRUE(job.nothing_left());
}

/// A GPU says that it is failing: the world goes on without it, and without a loss.
TEST(Torture, AGpuThatIsFailingIsLeftWithWhatTheOracleSays) {
  if (ranks_here(3) < 3) GTEST_SKIP() << "a rank leaves";
  Job job(3, {"--seed", "52", "--operations", "150", "--on-loss", "shrink", "--restart-budget", "5",
              "--rejoin-after", "0s", "--on-health", "shrink"});
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_NE(job.out().find("on 2 ranks"), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("1 GPUs left, 0 ranks lost, 0 back; nothing wrong"), std::string::npos)
      << job.out();
  EXPECT_TRUE(job.nothing_left());
}

/// A flipped byte in what is dealt out after a loss ends the job.
TEST(Torture, AFlippedByteInAShareIsFound) {
  if (ranks_here(3) < 3) GTEST_SKIP() << "ranks are lost";
  Job job(3, kLoss + Arguments{"--spoil", "5"});
  EXPECT_EQ(job.wait(), 1) << job.out();
  EXPECT_NE(job.err().find("WRONG CONTENTS"), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

/// Without mpirun it starts jobs itself. What it finds there it makes smaller: the falsified
/// download is of the final look at all buffers, for which no operation is needed. The job of an
/// even seed gets a folder.
TEST(Torture, AFailingProgramIsMadeSmaller) {
  const Scratch scratch;
  Job job(Job::kNoMpirun,
          {"--seed", "2", "--faults", "off", "--rounds", "free", "--tokens", "off", "--ranks", "1",
           "--operations", "15", "--spoil", "3", "--reduce", "on", "--folder",
           scratch.file("").string()},
          {.limit = 400s});
  EXPECT_EQ(job.wait(), 1) << job.err();
  EXPECT_NE(job.err().find("WRONG CONTENTS"), std::string::npos) << job.err();
  EXPECT_NE(job.out().find("reduced, in "), std::string::npos) << job.out();
  EXPECT_NE(job.out().find("--leave-out 0-"), std::string::npos) << job.out();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Torture, AFolderMustBeThere) {
  const Scratch scratch;
  Job job(Job::kNoMpirun, {"--folder", scratch.file("missing").string()});
  EXPECT_EQ(job.wait(), 2) << job.out();
  EXPECT_NE(job.err().find("missing: No such file or directory"), std::string::npos) << job.err();
}

}  // namespace
}  // namespace troupe::test
