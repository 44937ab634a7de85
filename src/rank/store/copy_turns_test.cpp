#include "rank/store/copy_turns.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace troupe::rank_process {
namespace {

using Turn = CopyTurns::Turn;

TEST(CopyTurns, EveryCommitIsCopiedWhereThereIsTime) {
  CopyTurns turns;
  for (std::uint32_t i = 1; i < 10; ++i) {
    ASSERT_TRUE(turns.is_due(7, false));
    turns.copy(7);
    EXPECT_EQ(turns.passed(), (Turn{7, i}));
    turns.complete(turns.passed());
  }
}

TEST(CopyTurns, WhatComesMeanwhileIsNotCopied) {
  CopyTurns turns;
  ASSERT_TRUE(turns.is_due(1, false));
  turns.copy(1);
  EXPECT_FALSE(turns.is_due(1, true));
  turns.complete({1, 4});  // another rank is two commits further
  EXPECT_FALSE(turns.is_due(1, false));
  EXPECT_FALSE(turns.is_due(1, false));
  EXPECT_TRUE(turns.is_due(1, false));
}

TEST(CopyTurns, AnEpochBeginsWithACopy) {
  CopyTurns turns;
  turns.copy(1);
  turns.complete({1, 100});
  EXPECT_TRUE(turns.is_due(2, true));
  EXPECT_TRUE(turns.is_due(2, true)) << "it has not been made";
  turns.copy(2);
  turns.complete({1, 200});  // of ranks that were still in the epoch before
  EXPECT_TRUE(turns.is_due(2, false));
}

/// Ranks at different speeds, whose copies take different times: all copy the same commits.
TEST(CopyTurns, AllRanksChooseTheSame) {
  std::mt19937 random(1);
  const auto one_of = [&](int sides) {
    return std::uniform_int_distribution(0, sides - 1)(random) == 0;
  };
  for (int round = 0; round < 200; ++round) {
    struct Rank {
      CopyTurns turns;
      bool busy = false, told = false;
      std::uint32_t made = 0;
      std::vector<std::uint32_t> copied;
    };
    std::vector<Rank> ranks(4);
    for (int event = 0; event < 2000; ++event) {
      auto& rank = ranks[static_cast<std::size_t>(random() % 4)];
      const auto least = std::min_element(ranks.begin(), ranks.end(),
                                          [](auto& a, auto& b) { return a.made < b.made; });
      if (!rank.told && rank.made <= least->made && !one_of(3)) {  // none is ahead by two
        ++rank.made;
        if (rank.turns.is_due(1, rank.busy)) {
          ASSERT_FALSE(rank.busy);
          rank.turns.copy(1);
          rank.busy = true;
          rank.copied.push_back(rank.made);
        }
      } else if (rank.busy && one_of(4)) {
        rank.told = true;
      }
      if (!std::all_of(ranks.begin(), ranks.end(), [](auto& one) { return one.told; })) continue;
      Turn farthest;
      for (const auto& one : ranks) farthest = std::max(farthest, one.turns.passed());
      for (auto& one : ranks) {
        one.turns.complete(farthest);
        one.busy = one.told = false;
        ASSERT_EQ(one.copied, ranks[0].copied);
      }
    }
    EXPECT_GT(ranks[0].copied.size(), 10u);
  }
}

}  // namespace
}  // namespace troupe::rank_process
