// Which command a call of CUDA's was made for.
#include "device_host/engine/cuda/activity_join.hpp"

#include <gtest/gtest.h>

namespace troupe::host::cuda {
namespace {

TEST(ActivityJoin, KnowsTheCommandOfACall) {
  ActivityJoin join;
  join.launched(5, 100);
  join.launched(6, 101);
  EXPECT_EQ(join.ticket_of(5), 100u);
  EXPECT_EQ(join.ticket_of(5), 100u) << "a graph's second kernel";
  EXPECT_EQ(join.ticket_of(6), 101u);
  EXPECT_EQ(join.ticket_of(7), 0u) << "of no command";
}

TEST(ActivityJoin, ForgetsTheOldest) {
  constexpr auto kCalls = static_cast<std::uint32_t>(ActivityJoin::kCalls);
  ActivityJoin join;
  for (std::uint32_t call = 1; call <= kCalls + 2; ++call) join.launched(call, 10 * call);
  EXPECT_EQ(join.ticket_of(1), 0u);
  EXPECT_EQ(join.ticket_of(2), 0u);
  EXPECT_EQ(join.ticket_of(3), 30u);
  EXPECT_EQ(join.ticket_of(kCalls + 2), 10u * (kCalls + 2));
}

}  // namespace
}  // namespace troupe::host::cuda
