#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "rank/launch.hpp"

namespace troupe::rank_process {
namespace {

TEST(CoreShare, RanksThatShareANodeDivideIt) {
  const std::vector<std::string> masks(4, std::string(32, '1'));
  for (std::size_t rank = 0; rank < masks.size(); ++rank) EXPECT_EQ(core_share(masks, rank), 8);
}

TEST(CoreShare, ABoundRankHasItsCoresToItself) {
  const std::vector<std::string> masks = {"11110000", "00001111"};
  EXPECT_EQ(core_share(masks, 0), 4);
  EXPECT_EQ(core_share(masks, 1), 4);
}

TEST(CoreShare, MasksThatOverlapAreSharedWhereTheyDo) {
  const std::vector<std::string> masks = {"111111", "000111", "000111"};
  EXPECT_EQ(core_share(masks, 0), 4);
  EXPECT_EQ(core_share(masks, 1), 1);
}

TEST(CoreShare, IsNeverNothing) {
  EXPECT_EQ(core_share(std::vector<std::string>(8, "01"), 3), 1);
  EXPECT_EQ(core_share({""}, 0), 1);
  EXPECT_EQ(core_share(std::vector<std::string>(3, "111"), 0), 1);
}

TEST(CoreMask, IsOfThisProcess) {
  const auto mask = core_mask();
  EXPECT_GT(std::count(mask.begin(), mask.end(), '1'), 0);
}

Result<void> deadlines(std::vector<const char*> options) {
  options.insert(options.begin(), "test");
  return check_deadlines(Config::parse(static_cast<int>(options.size()), options.data()).take());
}

TEST(Deadlines, ThoseThatContradictOneAnotherAreRefused) {
  EXPECT_TRUE(deadlines({}).ok()) << "the defaults";
  const auto phase = deadlines({"--phase-timeout", "3s"});
  EXPECT_EQ(phase.code(), Errc::invalid);
  EXPECT_EQ(phase.error().message,
            "phase-timeout = 3 s must be longer than heartbeat-timeout = 3 s: a device host that "
            "hangs in a recovery has to be found in time");
  EXPECT_EQ(deadlines({"--token-timeout", "2.5s"}).code(), Errc::invalid);
  EXPECT_EQ(deadlines({"--heartbeat-timeout", "60s"}).code(), Errc::invalid);
  EXPECT_TRUE(
      deadlines({"--heartbeat-timeout", "60s", "--phase-timeout", "61s", "--token-timeout", "61s"})
          .ok());
  EXPECT_TRUE(deadlines({"--op-timeout", "0s"}).ok()) << "none is no contradiction";
}

}  // namespace
}  // namespace troupe::rank_process
