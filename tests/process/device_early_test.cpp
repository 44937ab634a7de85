#include <gtest/gtest.h>

#include <filesystem>

#include "device_rig.hpp"

// A device host that is started before its process knows which rank it will be.

namespace troupe::test {
namespace {

using rank_process::DeviceCore;
using rank_process::EarlyHost;

DeviceCore::Options options_of_device() {
  const char* const arguments[] = {
      "test",         "--log-level", "error",          "--device-host", TROUPE_TEST_DEVICE_HOST,
      "--flight-dir", "none",        "--kernel-cache", "none",          "--tuning-cache",
      "none"};
  const auto config = Config::parse(static_cast<int>(std::size(arguments)), arguments).take();
  return rank_process::device_options(Settings::of(config), engine(), 0, 1).take();
}

/// The segments of device hosts that this process has open.
std::ptrdiff_t open_ports() {
  std::ptrdiff_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    found += target.find("troupe-port") != std::string::npos ? 1 : 0;
  }
  return found;
}

template <class F>
bool eventually(const F& f) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!f()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(EarlyHost, IsTheFirstOneOfTheDevice) {
  auto options = options_of_device();
  options.early = EarlyHost::start(options.settings.launch, options.flight).take();
  const auto before = children_of(::getpid());
  ASSERT_EQ(before.size(), 1u);
  ActorSystem system(ProductionScheduler::start({.workers = 2}).take());
  auto core = DeviceCore::open(system, std::move(options), 0).take();
  {
    Device device(core);
    const Bystanders bystanders(device, 3);
    EXPECT_EQ(bystanders.damage(), "");
    // It dies as any other does, and nothing of it is kept.
    ASSERT_EQ(::kill(before[0], SIGKILL), 0);
    EXPECT_TRUE(eventually([&] {
      const auto now = children_of(::getpid());
      return std::find(now.begin(), now.end(), before[0]) == now.end();
    }));
    EXPECT_EQ(bystanders.damage(), "");
    EXPECT_TRUE(eventually(
        [&] { return open_ports() == std::ssize(children_of(::getpid())) && open_ports() > 0; }));
  }
  core->shut_down();
}

TEST(EarlyHost, IsNotUsedForAnotherLaunch) {
  const auto options = options_of_device();
  const auto& [launch, flight] = std::tie(options.settings.launch, options.flight);
  const auto host = EarlyHost::start(launch, flight).take();
  EXPECT_TRUE(host->suits(launch, flight));
  auto other = launch;
  other.threads = launch.threads + 1;
  EXPECT_FALSE(host->suits(other, flight));
  auto traces = flight;
  traces.activities = 8;
  EXPECT_FALSE(host->suits(launch, traces));
  const auto children = children_of(::getpid());
  ASSERT_EQ(children.size(), 1u);
  ASSERT_EQ(::kill(children[0], SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return !host->suits(launch, flight); }));
}

}  // namespace
}  // namespace troupe::test
