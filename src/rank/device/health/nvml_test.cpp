#include "rank/device/health/nvml.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nvml_fake.hpp"

namespace troupe::rank_process {
namespace {

TEST(Nvml, TellsWhatTheDriverTells) {
  const auto nvml = Nvml::load(TROUPE_TEST_NVML);
  ASSERT_TRUE(nvml.ok()) << nvml.error().message;
  void* const module = ::dlopen(TROUPE_TEST_NVML, RTLD_NOW);
  auto& fake = *reinterpret_cast<test::FakeNvmlOf>(::dlsym(module, test::kFakeNvmlOf))();
  fake.pending = 1;
  fake.slowdowns = 0x45;  // idle, power cap, hardware thermal
  fake.recovery_action = 2;
  fake.clock = 900;
  fake.processes = 3;
  const auto health = nvml->health({"GPU-1"});
  fake.pending = fake.recovery_action = fake.processes = 0;
  fake.slowdowns = 0;
  fake.clock = 1980;
  ASSERT_TRUE(health.ok()) << health.error().message;
  EXPECT_EQ(health->temperature, std::nullopt) << "this one does not tell";
  EXPECT_EQ(health->power, 76.5);
  EXPECT_EQ(health->corrected_errors, 7u);
  EXPECT_EQ(health->uncorrected_errors, 1u);
  EXPECT_EQ(health->remapped_rows, 3u);
  EXPECT_EQ(health->remapping_pending, true);
  EXPECT_EQ(health->remapping_failed, false);
  EXPECT_EQ(health->recovery_action, "reboot the node");
  EXPECT_EQ(health->slowed_by, (std::vector<std::string>{"power cap", "hardware thermal"}));
  EXPECT_EQ(health->clock, 900u);
  EXPECT_EQ(health->highest_clock, 1980u);
  EXPECT_EQ(health->processes, 3u);
  EXPECT_EQ(health->nvlinks, 3);
  EXPECT_EQ(health->nvlink_errors, 2u * (1 + 2 + 3)) << "two counters of links 0 to 2";
}

TEST(Nvml, KnowsItsGpusAlone) {
  const auto nvml = Nvml::load(TROUPE_TEST_NVML);
  ASSERT_TRUE(nvml.ok()) << nvml.error().message;
  EXPECT_TRUE(nvml->health({{}, 7}).ok());
  const auto health = nvml->health({"GPU-2"});
  ASSERT_FALSE(health.ok());
  EXPECT_EQ(health.error().code, Errc::library);
  EXPECT_EQ(health.error().message, "NVML: it knows no GPU GPU-2");
  EXPECT_EQ(nvml->health({{}, 8}).error().message, "NVML: it knows no GPU 8");
}

TEST(Nvml, IsMissing) {
  const auto nvml = Nvml::load("libtroupe-there-is-no-such-library.so.1");
  ASSERT_FALSE(nvml.ok());
  EXPECT_EQ(nvml.error().code, Errc::unsupported);
  EXPECT_EQ(nvml.error().message, "NVML: libtroupe-there-is-no-such-library.so.1: not installed");
}

}  // namespace
}  // namespace troupe::rank_process
