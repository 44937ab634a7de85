// The names that a device host leaves to the rank.
#include "common/wire/shm_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::wire {
namespace {

TEST(ShmNames, AreThoseOfNccl) {
  ShmNames names{};
  EXPECT_TRUE(names.paths().empty());
  names.note("/dev/shm/nccl-aB3xYz");
  names.note("/dev/shm/ncclXaB3xYz");
  names.note("/dev/shm/nccl-aB3xYz0");
  names.note("");
  names.note("/dev/shm/nccl-qqqqqq");
  EXPECT_EQ(names.paths(),
            (std::vector<std::string>{"/dev/shm/nccl-aB3xYz", "/dev/shm/nccl-qqqqqq"}));
}

TEST(ShmNames, LeadNowhereElse) {
  ShmNames names{};
  names.note("/dev/shm/nccl-/../ab");
  names.note(std::string_view("/dev/shm/nccl-ab\0\0\0\0", 20));  // half of it written
  names.note("/dev/shm/nccl-qqqqqq");
  EXPECT_EQ(names.paths(), std::vector<std::string>{"/dev/shm/nccl-qqqqqq"});
}

TEST(ShmNames, AreTheLastOnes) {
  ShmNames names{};
  const auto name = [](std::size_t i) { return "/dev/shm/nccl-" + std::to_string(100000 + i); };
  for (std::size_t i = 0; i <= ShmNames::kCapacity; ++i) names.note(name(i));
  const auto paths = names.paths();
  EXPECT_EQ(paths.size(), ShmNames::kCapacity);
  EXPECT_EQ(std::count(paths.begin(), paths.end(), name(0)), 0);
  EXPECT_EQ(std::count(paths.begin(), paths.end(), name(ShmNames::kCapacity)), 1);
}

}  // namespace
}  // namespace troupe::wire
