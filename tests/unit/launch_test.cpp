#include <gtest/gtest.h>

#include <algorithm>

#include "rank/launch.hpp"

namespace troupe::rank {
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

}  // namespace
}  // namespace troupe::rank
