// Windows of a rank's own time.
#include "rank/world/pace_meter.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

using namespace std::chrono_literals;

/// A rank whose intervals are all alike.
class PaceMeterTest : public ::testing::Test {
 protected:
  std::optional<RankPace> commit(std::chrono::nanoseconds interval,
                                 std::chrono::nanoseconds waited = {},
                                 std::chrono::nanoseconds idle = {}) {
    now_.time += interval;
    now_.waited += waited;
    now_.idle += idle;
    now_.collectives += 3;
    return meter_.at_commit(epoch_, run_, now_);
  }

  std::uint32_t epoch_ = 1, run_ = 1;
  PaceMeter meter_;
  PaceMeter::Reading now_{.time = 100s, .waited = 7s, .idle = 5s, .collectives = 11};
};

TEST_F(PaceMeterTest, AWindowHasItsTimeAndItsIntervals) {
  EXPECT_FALSE(commit(500ms)) << "the first commit begins it";
  for (int i = 1; i < PaceMeter::kLeastIntervals; ++i) EXPECT_FALSE(commit(500ms, 100ms, 300ms));
  EXPECT_EQ(
      commit(500ms, 100ms, 300ms),
      (RankPace{
          .wall_us = 4'000'000, .own_us = 3'200'000, .idle_us = 2'400'000, .collectives = 24}));
  for (int i = 1; i < 20; ++i) EXPECT_FALSE(commit(100ms));
  const auto next = commit(100ms);
  ASSERT_TRUE(next) << "it begins with the end of the one before";
  EXPECT_EQ(next->wall_us, 2'000'000);
  EXPECT_EQ(next->own_us, 2'000'000);
}

TEST_F(PaceMeterTest, AnEpochAndARunBeginOneAnew) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(commit(1s));
  ++epoch_;
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(commit(1s));
  ++run_;
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(commit(1s));
  EXPECT_EQ(commit(1s)->wall_us, 8'000'000);
}

/// Of collectives that are sampled each stands for several.
TEST_F(PaceMeterTest, NobodyWaitsForLongerThanThereWas) {
  for (int i = 0; i < 8; ++i) EXPECT_FALSE(commit(1s));
  const auto pace = commit(1s, 60s, 1s);
  ASSERT_TRUE(pace);
  EXPECT_EQ(pace->own_us, 0);
  EXPECT_EQ(pace->idle_us, 0);
}

}  // namespace
}  // namespace troupe::rank_process
