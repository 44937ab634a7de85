#include "rank/device/host/warm_set.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

WarmSet::Blob blob(std::size_t number, std::size_t bytes = 8) {
  WarmSet::Blob made(bytes);
  for (std::size_t i = 0; i < sizeof number && i < bytes; ++i)
    made[i] = static_cast<std::byte>(number >> 8 * i);
  return made;
}

TEST(WarmSet, KeepsTheKindsThatCameLast) {
  WarmSet set;
  for (std::size_t i = 0; i < WarmSet::kMaxKinds; ++i) EXPECT_TRUE(set.add_kind(i, blob(i)));
  EXPECT_FALSE(set.add_kind(0, blob(0))) << "it is known";
  EXPECT_TRUE(set.add_kind(1000, blob(1000)));
  const auto kinds = set.kinds();
  ASSERT_EQ(kinds.size(), WarmSet::kMaxKinds);
  EXPECT_EQ(kinds[0], blob(1000));
  EXPECT_EQ(kinds[1], blob(0)) << "it came again";
  EXPECT_EQ(std::count(kinds.begin(), kinds.end(), blob(1)), 0) << "the oldest was to go";
}

TEST(WarmSet, BoundsPlansByNumberAndBytes) {
  WarmSet set;
  for (std::size_t i = 0; i <= WarmSet::kMaxPlans; ++i) EXPECT_TRUE(set.add_plan("dnn", blob(i)));
  EXPECT_FALSE(set.add_plan("dnn", blob(5)));
  EXPECT_TRUE(set.add_plan("fft", blob(5))) << "of another library";
  EXPECT_EQ(set.plans().size(), WarmSet::kMaxPlans);
  EXPECT_TRUE(set.add_plan("dnn", blob(1, WarmSet::kMaxPlanBytes - 16)));
  EXPECT_EQ(set.plans().size(), 3u);
  EXPECT_FALSE(set.add_plan("dnn", blob(2, WarmSet::kMaxPlanBytes + 1)));
  EXPECT_EQ(set.plans()[0].library, "dnn");
}

TEST(WarmSet, ForgetsKindsAndPlansButNotLibraries) {
  WarmSet set;
  EXPECT_TRUE(set.add_library("fft"));
  EXPECT_FALSE(set.add_library("fft"));
  set.add_kind(1, blob(1));
  set.add_plan("fft", blob(2));
  set.clear_kinds();
  EXPECT_TRUE(set.kinds().empty() && set.plans().empty());
  EXPECT_EQ(set.libraries().size(), 1u);
  EXPECT_TRUE(set.add_plan("fft", blob(2)));
}

}  // namespace
}  // namespace troupe::rank_process
