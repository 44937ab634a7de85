// Which slab a region stands for, while slabs come and go.
#include "rank/token/shared_slabs.hpp"

#include <gtest/gtest.h>

namespace troupe::rank_process {
namespace {

TEST(SharedSlabs, AreKnownUntilTheyAreDropped) {
  SharedSlabs slabs;
  EXPECT_FALSE(slabs.find(3));
  ASSERT_TRUE(slabs.add(3, {.serial = 7, .bytes = 64}, slabs.now()));
  EXPECT_EQ(slabs.find(3)->serial, 7u);
  EXPECT_EQ(slabs.drop(3)->serial, 7u);
  EXPECT_FALSE(slabs.find(3));
  EXPECT_FALSE(slabs.drop(3));
}

TEST(SharedSlabs, AnAnswerAboutADroppedSlabDoesNotStandForTheNextOne) {
  SharedSlabs slabs;
  const auto asked = slabs.now();
  slabs.drop(3);  // nobody knew it yet
  EXPECT_FALSE(slabs.add(3, {.serial = 7, .bytes = 64}, asked));
  EXPECT_FALSE(slabs.find(3)) << "the serial of memory that is gone";
  ASSERT_TRUE(slabs.add(3, {.serial = 8, .bytes = 64}, slabs.now()));
  EXPECT_EQ(slabs.find(3)->serial, 8u);
}

}  // namespace
}  // namespace troupe::rank_process
