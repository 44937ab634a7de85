// Who is slower than the others.
#include "rank/protocol/slow_ranks.hpp"

#include <gtest/gtest.h>

#include <map>

namespace troupe::rank_process {
namespace {

using Slow = from_supervisor::Slow;

constexpr std::int64_t kWall = 2'000'000;

/// Worlds whose ranks tell one window after another.
class SlowRanksTest : public ::testing::Test {
 protected:
  void begin(SlowRanks::Options options) {
    size_ = options.size;
    slow_.emplace(options);
  }
  /// A window of all members but those excluded: these ranks need such parts of it for themselves,
  /// all others a fifth. The ranks that are told of.
  std::vector<int> window(const std::map<int, double>& own, std::int64_t collectives_of_0 = 100) {
    std::vector<int> told;
    for (int rank = 0; rank < size_; ++rank) {
      if (std::find(excluded_.begin(), excluded_.end(), rank) != excluded_.end()) continue;
      const auto named = own.find(rank);
      const double share = named != own.end() ? named->second : 0.2;
      const RankPace pace{.rank = rank,
                          .wall_us = kWall + 1000 * rank,  // not quite the same window
                          .own_us = static_cast<std::int64_t>(share * (kWall + 1000 * rank)),
                          .collectives = rank == 0 ? collectives_of_0 : 100};
      for (const auto& slow : slow_->receive({.epoch = epoch_, .paces = {pace}}, excluded_)) {
        told.push_back(slow.pace.rank);
        last_ = slow;
      }
    }
    return told;
  }

  using Ranks = std::vector<int>;
  int size_ = 0;
  std::uint32_t epoch_ = 1;
  std::vector<std::int32_t> excluded_;
  std::optional<SlowRanks> slow_;
  Slow last_;
};

TEST_F(SlowRanksTest, ARankThatIsSlowInThreeWindowsIsToldOfOnce) {
  begin({.size = 4});
  EXPECT_EQ(window({{2, 0.9}}), Ranks{});
  EXPECT_EQ(window({{2, 0.9}}), Ranks{});
  EXPECT_EQ(window({{2, 0.9}}), Ranks{2});
  EXPECT_NEAR(ratio_of(last_), 4.5, 0.01);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(window({{2, 0.9}}), Ranks{});
}

TEST_F(SlowRanksTest, OneWindowIsNotEnough) {
  begin({.size = 4});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(window({{2, i % 3 == 2 ? 0.2 : 0.9}}), Ranks{});
}

TEST_F(SlowRanksTest, WhereAllAreAlikeNobodyIs) {
  begin({.size = 5});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(window({{i % 5, 0.28}}), Ranks{}) << "below the factor";
  for (int i = 0; i < 9; ++i) EXPECT_EQ(window({{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}}), Ranks{});
}

TEST_F(SlowRanksTest, ALittleOfTheTimeIsNothing) {
  begin({.size = 3});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(window({{0, 0.01}, {1, 0.05}, {2, 0.01}}), Ranks{});
}

TEST_F(SlowRanksTest, TwoOfFourAreToldOfBoth) {
  begin({.size = 4});
  Ranks told;
  for (int i = 0; i < 3; ++i) told = window({{1, 0.9}, {3, 0.8}});
  EXPECT_EQ(told, (Ranks{1, 3}));
}

TEST_F(SlowRanksTest, WhereTheyLeaveOneGoesAtATime) {
  begin({.size = 4, .one_in_an_epoch = true});
  Ranks told;
  for (int i = 0; i < 3; ++i) told = window({{1, 0.9}, {3, 0.8}});
  EXPECT_EQ(told, Ranks{1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(window({{1, 0.9}, {3, 0.8}}), Ranks{});
  epoch_ = 2;
  excluded_ = {1};
  EXPECT_EQ(window({{3, 0.8}}), Ranks{});
  EXPECT_EQ(window({{3, 0.8}}), Ranks{});
  EXPECT_EQ(window({{3, 0.8}}), Ranks{3}) << "the one that has left is not waited for";
}

TEST_F(SlowRanksTest, AnEpochBeginsTheCountAnew) {
  begin({.size = 3});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(window({{1, 0.9}}), Ranks{});
  epoch_ = 2;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(window({{1, 0.9}}), Ranks{});
  EXPECT_EQ(window({{1, 0.9}}), Ranks{1});
}

TEST_F(SlowRanksTest, OfTwoRanksOneCanBeSlow) {
  begin({.size = 2});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(window({{1, 0.9}}), Ranks{});
  EXPECT_EQ(window({{1, 0.9}}), Ranks{1});
}

TEST_F(SlowRanksTest, ABoundedNumberIsToldOf) {
  begin({.size = 40});
  std::map<int, double> slow;
  for (int rank = 0; rank < 15; ++rank) slow[rank] = 0.9;
  std::size_t told = 0;
  for (int i = 0; i < 9; ++i) told += window(slow).size();
  EXPECT_EQ(told, static_cast<std::size_t>(SlowRanks::kMostTold));
}

/// Rank 0 runs its collectives in a graph, where their times are not known.
TEST_F(SlowRanksTest, WhatIsKnownOfRanksMustBeAlike) {
  begin({.size = 4});
  for (int i = 0; i < 9; ++i) EXPECT_EQ(window({{0, 1}}, 3), Ranks{});
}

TEST_F(SlowRanksTest, NonsenseIsNotCounted) {
  begin({.size = 2});
  EXPECT_TRUE(slow_->receive({.epoch = 1, .paces = {{.rank = -1}, {.rank = 2}}}, {}).empty());
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(slow_->receive({.epoch = 1, .paces = {{.rank = 0}, {.rank = 1}}}, {}).empty());
}

TEST(SlowRank, SaysWhatIsKnownOfWhy) {
  Slow slow{.pace = {.rank = 3, .wall_us = 1000, .own_us = 900, .idle_us = 600, .collectives = 8},
            .median_us = 300};
  const auto begins = std::string("its own work takes 3.0 times as long as the median rank's; ");
  EXPECT_EQ(in_words(slow, {}), begins +
                                    "its program submits late: its device had nothing to do in "
                                    "60 % of the time");
  slow.pace.idle_us = 100;
  EXPECT_EQ(in_words(slow, {}), begins + "its device takes longer, and nothing is known of why");
  GpuHealth hot;
  hot.clock = 900;
  hot.highest_clock = 1980;
  hot.slowed_by = {"hardware thermal"};
  hot.temperature = 91;
  hot.processes = 2;
  EXPECT_EQ(in_words(slow, hot),
            begins +
                "its GPU's clock is 900 of 1980 MHz, its GPU is slowed down by: hardware thermal, "
                "it is at 91 degrees Celsius");
  GpuHealth shared;
  shared.clock = shared.highest_clock = 1980;
  shared.slowed_by.emplace();
  shared.temperature = 60;
  shared.processes = 3;
  EXPECT_EQ(in_words(slow, shared), begins + "3 processes compute on its GPU");
}

}  // namespace
}  // namespace troupe::rank_process
