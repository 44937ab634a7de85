#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "rank/launch.hpp"

namespace troupe::rank_process {
namespace {

TEST(CoreShare, RanksThatShareANodeDivideIt) {
  const std::vector<std::string> masks(4, std::string(32, '1'));
  for (std::size_t rank = 0; rank < masks.size(); ++rank) EXPECT_EQ(core_share(masks, rank), 8);
}

TEST(CoreShare, ABoundRankHasItsCoresToItself) {
  const std::vector<std::string> masks = {"11110000", "00001111"};
  EXPECT_EQ(core_share(masks, 0), 4);
  EXPECT_EQ(core_share(masks, 1), 4);
}

TEST(CoreShare, MasksThatOverlapAreSharedWhereTheyDo) {
  const std::vector<std::string> masks = {"111111", "000111", "000111"};
  EXPECT_EQ(core_share(masks, 0), 4);
  EXPECT_EQ(core_share(masks, 1), 1);
}

TEST(CoreShare, IsNeverNothing) {
  EXPECT_EQ(core_share(std::vector<std::string>(8, "01"), 3), 1);
  EXPECT_EQ(core_share({""}, 0), 1);
  EXPECT_EQ(core_share(std::vector<std::string>(3, "111"), 0), 1);
}

TEST(CoreMask, IsOfThisProcess) {
  const auto mask = core_mask();
  EXPECT_GT(std::count(mask.begin(), mask.end(), '1'), 0);
}

Result<void> settings(std::vector<const char*> options) {
  options.insert(options.begin(), "test");
  return check_settings(
      Settings::of(Config::parse(static_cast<int>(options.size()), options.data()).take()));
}

TEST(Settings, DeadlinesThatContradictOneAnotherAreRefused) {
  EXPECT_TRUE(settings({}).ok()) << "the defaults";
  const auto phase = settings({"--phase-timeout", "3s"});
  EXPECT_EQ(phase.code(), Errc::invalid);
  EXPECT_EQ(phase.error().message,
            "phase-timeout = 3 s must be longer than heartbeat-timeout = 3 s: a device host that "
            "hangs in a recovery has to be found in time");
  EXPECT_EQ(settings({"--token-timeout", "2.5s"}).code(), Errc::invalid);
  EXPECT_EQ(settings({"--heartbeat-timeout", "60s"}).code(), Errc::invalid);
  EXPECT_TRUE(
      settings({"--heartbeat-timeout", "60s", "--phase-timeout", "61s", "--token-timeout", "61s"})
          .ok());
  EXPECT_TRUE(settings({"--op-timeout", "0s"}).ok()) << "none is no contradiction";
}

TEST(Settings, KernelsAreToldOfInATraceOnly) {
  const auto alone = settings({"--trace-kernels", "on"});
  EXPECT_EQ(alone.code(), Errc::invalid);
  EXPECT_EQ(alone.error().message, "trace-kernels = on needs trace: the file to tell of them in");
  EXPECT_TRUE(settings({"--trace-kernels", "on", "--trace", "trace.json"}).ok());
}

/// Memory that processes share counts as files: who makes more of it is ended by a signal.
TEST(Settings, ALimitOfFileSizesBelowTheFirstSegmentsIsNamed) {
  const auto ready = [](const char* engine, std::vector<const char*> options) {
    options.insert(options.begin(), "test");
    return check_segments(
        Settings::of(Config::parse(static_cast<int>(options.size()), options.data()).take()),
        engine);
  };
  EXPECT_TRUE(ready("cpu", {}).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit lower{std::uint64_t{32} << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
  const auto slab = ready("cpu", {}), pinned = ready("cuda", {}),
             fits = ready("cpu", {"--slab-size", "32MiB", "--pinned-pool", "16MiB"});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(slab.code(), Errc::io);
  EXPECT_EQ(slab.error().native, EFBIG);
  EXPECT_EQ(slab.error().message,
            "slab-size of 67108864 bytes is shared memory, and so a file: above the limit of "
            "33554432 bytes (RLIMIT_FSIZE; see `ulimit -f`): raise it, or lower --slab-size");
  EXPECT_EQ(pinned.error().message.substr(0, 11), "pinned-pool");
  EXPECT_TRUE(fits.ok());
}

}  // namespace
}  // namespace troupe::rank_process
