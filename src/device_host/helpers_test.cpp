#include "device_host/helpers.hpp"

#include <gtest/gtest.h>

#include <future>

namespace troupe::host {
namespace {

TEST(Helpers, SayWhetherAJobMayWaitForTheDevice) {
  Helpers helpers(ipc::Doorbell::create().take());
  std::promise<void> go_on;
  const auto may_end = go_on.get_future().share();
  const auto job = [may_end] {
    may_end.wait();
    return Helpers::Finish([] {});
  };
  const auto finished = [&](std::size_t left) {
    while (helpers.running() > left) (void)helpers.run_finished();
  };

  ASSERT_TRUE(helpers.start(job, Helpers::WaitsFor::stream));
  EXPECT_FALSE(helpers.may_wait_for_device());
  ASSERT_TRUE(helpers.start(job)) << "whoever says nothing may wait for all";
  EXPECT_TRUE(helpers.may_wait_for_device());
  go_on.set_value();
  finished(0);
  EXPECT_FALSE(helpers.may_wait_for_device());
}

}  // namespace
}  // namespace troupe::host
