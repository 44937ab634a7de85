#include "common/core/log.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

/// What a piece of code writes to the two standard streams.
struct Captured {
  std::string out, err;
};
template <class F>
Captured capture(F run) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  run();
  return {::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

TEST(LogTest, RankZeroAloneOnStdout) {
  const auto write_both = [] {
    log::info("world", "epoch {}", 7);
    log::warn("world", "slow {}", "peer");
  };
  ASSERT_TRUE(log::init(Rank(0), "info").ok());
  auto seen = capture(write_both);
  EXPECT_NE(seen.out.find(" I [0] world: epoch 7\n"), std::string::npos) << seen.out;
  EXPECT_EQ(seen.out.find("slow"), std::string::npos);
  EXPECT_NE(seen.err.find(" W [0] world: slow peer\n"), std::string::npos) << seen.err;

  ASSERT_TRUE(log::init(Rank(2), "trace").ok());
  seen = capture(write_both);
  EXPECT_EQ(seen.out, "");
  EXPECT_NE(seen.err.find(" W [2] world: slow peer\n"), std::string::npos) << seen.err;
}

TEST(LogTest, LevelPerComponent) {
  ASSERT_TRUE(log::init(Rank(0), "world=debug,warn,device=trace,net=off").ok());
  EXPECT_TRUE(log::enabled("world", log::Level::debug));
  EXPECT_FALSE(log::enabled("world", log::Level::trace));
  EXPECT_TRUE(log::enabled("device", log::Level::trace));
  EXPECT_FALSE(log::enabled("net", log::Level::error));
  EXPECT_TRUE(log::enabled("app", log::Level::warn));
  EXPECT_FALSE(log::enabled("app", log::Level::info));
  const auto seen = capture([] {
    log::debug("world", "seen");
    log::trace("world", "hidden");
    log::error("net", "hidden");
    log::info("app", "hidden");
  });
  EXPECT_NE(seen.out.find(" D [0] world: seen\n"), std::string::npos) << seen.out;
  EXPECT_EQ((seen.out + seen.err).find("hidden"), std::string::npos);
  ASSERT_TRUE(log::init(Rank(0), "world=debug").ok());  // no level stands alone: info
  EXPECT_TRUE(log::enabled("app", log::Level::info));
  EXPECT_FALSE(log::enabled("app", log::Level::debug));
}

TEST(LogTest, BadLevelsChangeNothing) {
  ASSERT_TRUE(log::init(Rank(0), "warn").ok());
  for (const char* text : {"loud", "", "info,", "wurld=info", "world=loud", "world=", "=info",
                           "info,debug", "world=info,world=debug", "world=info=debug", "INFO"}) {
    const auto outcome = log::init(Rank(1), text);
    ASSERT_FALSE(outcome.ok()) << text;
    EXPECT_EQ(outcome.code(), Errc::invalid);
    EXPECT_EQ(outcome.error().message.find("log-level: '"), 0U) << outcome.error().message;
  }
  const auto seen = capture([] {
    log::info("app", "hidden");
    log::warn("app", "shown");
  });
  EXPECT_EQ(seen.out, "");
  EXPECT_NE(seen.err.find(" W [0] app: shown\n"), std::string::npos) << seen.err;
}

TEST(LogTest, BeforeInitWarningsGoToStderr) {
  ::testing::GTEST_FLAG(death_test_style) =
      "threadsafe";  // a new process, in which init() was not called
  EXPECT_EXIT(
      {
        log::info("app", "hidden");
        log::warn("app", "shown");
        std::_Exit(log::enabled("app", log::Level::info) ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "W \\[-\\] app: shown");
}

}  // namespace
}  // namespace troupe
