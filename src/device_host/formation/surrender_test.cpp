// Giving communicators up while the reactor waits.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device_host/formation/surrender.hpp"

namespace troupe::host {
namespace {

struct Surrendering : ::testing::Test {
  ipc::SharedCounter asked{};
  std::atomic<int> given_up{0};
  Surrender surrender{asked, [this] { ++given_up; }};

  void await_given_up(int times) {
    while (given_up < times) std::this_thread::yield();
  }
};

TEST_F(Surrendering, IsDoneOnceForEachRequestWhoeverComesFirst) {
  EXPECT_EQ(given_up, 0);
  for (int times = 1; times <= 50; ++times) {
    asked.advance();
    if (times % 2 == 0) await_given_up(times);  // by the thread
    surrender.catch_up();
    EXPECT_EQ(given_up, times);
  }
}

TEST_F(Surrendering, NothingIsLaunchedBetweenTheRequestAndWhenTheReactorComesToIt) {
  int launched = 0;
  const auto launch = [&] {
    return surrender.use([&]() -> Result<void> {
      ++launched;
      return {};
    });
  };
  EXPECT_TRUE(launch().ok());
  asked.advance();
  await_given_up(1);  // the communicator is freed, and the reactor does not know
  EXPECT_EQ(launch().code(), Errc::world_reformed);
  EXPECT_EQ(launched, 1);
  surrender.catch_up();
  EXPECT_TRUE(launch().ok());
}

TEST_F(Surrendering, ALaunchThatWaitsForACollectiveIsFreed) {
  const auto launched = surrender.use([&]() -> Result<void> {
    asked.advance();
    await_given_up(1);  // for ever, if nobody else did it
    return {};
  });
  EXPECT_TRUE(launched.ok());
}

}  // namespace
}  // namespace troupe::host
