// Which command each thing belongs to that the GPU did.
#include <gtest/gtest.h>

#include "device_host/engine/cuda/activity_join.hpp"

namespace troupe::host::cuda {
namespace {

class ActivityJoining : public ::testing::Test {
 protected:
  using Told = std::vector<std::pair<std::uint64_t, std::string>>;
  void ran(std::uint32_t call, const std::string& name) { join_.ran(call, {10, 20, 7, name}); }

  Told told_;
  ActivityJoin join_{[this](std::uint64_t ticket, std::int64_t begin, std::int64_t end,
                            std::uint32_t stream, std::string_view name) {
    EXPECT_EQ(begin, 10);
    EXPECT_EQ(end, 20);
    EXPECT_EQ(stream, 7u);
    told_.emplace_back(ticket, name);
  }};
};

TEST_F(ActivityJoining, TellsAllThatACallLaunched) {
  join_.launched(5, 100), join_.launched(6, 101);
  ran(5, "graph's first"), ran(6, "other"), ran(5, "graph's second");
  join_.settle();
  EXPECT_EQ(told_, (Told{{100, "graph's first"}, {101, "other"}, {100, "graph's second"}}));
}

TEST_F(ActivityJoining, FindsACommandInTheNextBuffer) {
  ran(5, "early");
  join_.settle();
  EXPECT_TRUE(told_.empty());
  join_.launched(5, 100);
  join_.settle();
  EXPECT_EQ(told_, (Told{{100, "early"}}));
  join_.settle();
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(ActivityJoining, TellsNothingOfWhatIsNoCommands) {
  ran(5, "warming up");
  join_.settle(), join_.settle();
  join_.launched(5, 100);
  join_.settle();
  EXPECT_TRUE(told_.empty());
}

TEST_F(ActivityJoining, DoesNotTakeAnOldCallForANewOne) {
  join_.launched(5, 100);
  ran(5 + (1u << 16), "of another call");
  join_.settle(), join_.settle();
  EXPECT_TRUE(told_.empty());
}

}  // namespace
}  // namespace troupe::host::cuda
