#include "common/actor/cpu_binding.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <string>

namespace troupe {
namespace {

/// A machine of two nodes with four cores each: hwloc reads it instead of this one.
class Nodes : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::setenv("HWLOC_SYNTHETIC", "numa:2 pu:4", 1), 0); }
  void TearDown() override { ::unsetenv("HWLOC_SYNTHETIC"); }
};

TEST_F(Nodes, NearANodeAreItsCoresThatTheLauncherGave) {
  const auto all = CpuBinding::near_node(0, "0-7").take();
  EXPECT_EQ(all.list(), "0-3");
  EXPECT_EQ(all.count(), 4u);
  EXPECT_EQ(CpuBinding::near_node(1, "0-7").take().list(), "4-7");
  EXPECT_EQ(CpuBinding::near_node(1, "1,3-5,7").take().list(), "4-5,7");
  EXPECT_EQ(CpuBinding::near_node(0, "2").take().count(), 1u);
}

TEST_F(Nodes, NothingNearIsAnError) {
  EXPECT_EQ(CpuBinding::near_node(1, "0-3").code(), Errc::invalid);
  EXPECT_EQ(CpuBinding::near_node(2, "0-7").code(), Errc::invalid);
  EXPECT_EQ(CpuBinding::near_node(-1, "0-7").code(), Errc::invalid);
  EXPECT_EQ(CpuBinding::near_node(0, "").code(), Errc::invalid);
}

TEST(CpuBinding, RefusesWhatIsNoListOrNotAllowed) {
  EXPECT_EQ(CpuBinding::parse("first").code(), Errc::invalid);
  EXPECT_EQ(CpuBinding::parse("100000").code(), Errc::invalid);
}

TEST(CpuBinding, AllowedCoresAreThoseOfTheThread) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const auto all = allowed_cores().take();
  EXPECT_EQ(CpuBinding::parse(all).take().count(), static_cast<unsigned>(CPU_COUNT(&before)));
  const auto first = all.substr(0, all.find_first_of(",-"));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(std::stoul(first), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(allowed_cores().take(), first);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace troupe
