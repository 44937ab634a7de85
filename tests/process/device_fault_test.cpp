#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>

#include "device_rig.hpp"

// Device hosts die at every kind of point, of real causes. Each time: all futures resolve in time,
// what was not being written is intact byte by byte, what was is stale and refuses use, commands
// that were never issued run exactly once, and the device works afterwards.

namespace troupe::test {
namespace {

using memory::FaultKind;

/// A cause of death: an order to the device host, or a signal from outside.
struct Cause {
  std::string name;
  std::optional<FaultKind> kind;  ///< nullopt: SIGKILL from outside
};

std::vector<Cause> causes() {
  std::vector<Cause> list{{"sigkill", std::nullopt}};
  const std::size_t count = on_cuda() ? memory::kFaultKindCount : 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<FaultKind>(i) == FaultKind::device_failure) continue;  // nobody takes its place
    std::string name(to_string(static_cast<FaultKind>(i)));
    std::replace(name.begin(), name.end(), '-', '_');
    list.push_back({name, static_cast<FaultKind>(i)});
  }
  return list;
}

/// Sticky faults are found out some time after they happen, the others at once.
bool sticky(const Cause& cause) {
  return cause.kind && *cause.kind >= FaultKind::illegal_address;
}

class DeviceFault : public ::testing::TestWithParam<Cause> {
 protected:
  /// Lets the fault strike; the future of the command that ordered it, if it was one.
  static std::vector<Future<void>> strike(Device& device) {
    if (GetParam().kind) return {device.inject(*GetParam().kind)};
    EXPECT_TRUE(kill_active());
    return {};
  }
};
INSTANTIATE_TEST_SUITE_P(Every, DeviceFault, ::testing::ValuesIn(causes()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(DeviceFault, WhileIdle) {
  DeviceRig rig({"--heartbeat-timeout", "1s"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 1);
  const auto old = active_host();
  const auto ordered = strike(device);
  ASSERT_TRUE(all_resolved(ordered));
  for (const auto& future : ordered) EXPECT_EQ(future.wait().code(), Errc::device_lost);
  ASSERT_TRUE(replaced(old));
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

TEST_P(DeviceFault, WhileThousandsOfCommandsAreQueued) {
  DeviceRig rig({"--heartbeat-timeout", "1s"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 2);
  constexpr std::size_t kCells = 16;
  Counters before(device, kCells), after(device, kCells);
  for (std::size_t i = 0; i < 2000; ++i) before.add(i % kCells);
  const auto ordered = strike(device);
  for (std::size_t i = 0; i < 4000; ++i) after.add(i % kCells);
  ASSERT_TRUE(all_resolved(ordered));
  ASSERT_TRUE(all_resolved(before.futures()));
  ASSERT_TRUE(all_resolved(after.futures()));
  EXPECT_EQ(before.disagreement(), "");
  EXPECT_EQ(after.disagreement(), "");
  // The host never got past a fault that struck at its place in the program.
  if (GetParam().kind && !sticky(GetParam())) {
    for (std::size_t i = 0; i < kCells; ++i) EXPECT_EQ(after.failed(i), 0u) << i;
  }
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

TEST_P(DeviceFault, DuringCopiesToAndFromTheHost) {
  DeviceRig rig({"--heartbeat-timeout", "1s"});
  auto& device = rig.device();
  constexpr std::size_t kLength = 4u << 20;
  const Bystanders bystanders(device, 3);
  const auto contents = random_bytes(kLength, 4);
  const auto source = device.pinned<std::uint8_t>(kLength);
  std::copy(contents.begin(), contents.end(), source.data());
  const auto kept = device.alloc<std::uint8_t>(kLength);
  device.copy(source, kept).get();
  std::vector<GpuRef<std::uint8_t>> uploaded;
  std::vector<PinnedBuffer<std::uint8_t>> downloaded;
  std::vector<Future<void>> uploads, downloads, ordered;
  for (int i = 0; i < 12; ++i) {
    uploaded.push_back(device.alloc<std::uint8_t>(kLength));
    downloaded.push_back(device.pinned<std::uint8_t>(kLength));
    device.fill(uploaded.back(), std::uint8_t{0});
  }
  device.nop().get();
  for (std::size_t i = 0; i < uploaded.size(); ++i) {
    uploads.push_back(device.copy(source, uploaded[i]));
    downloads.push_back(device.copy(kept, downloaded[i]));
    if (i == uploaded.size() / 2) ordered = strike(device);
  }
  ASSERT_TRUE(all_resolved(ordered));
  ASSERT_TRUE(all_resolved(uploads));
  ASSERT_TRUE(all_resolved(downloads));
  for (std::size_t i = 0; i < uploaded.size(); ++i) {
    SCOPED_TRACE(i);
    if (uploads[i].wait().ok()) {
      ASSERT_TRUE(uploaded[i].valid());
      EXPECT_TRUE(device.download(uploaded[i]) == contents);
    } else {
      EXPECT_EQ(uploads[i].wait().code(), Errc::device_lost);
      EXPECT_FALSE(uploaded[i].valid());
      EXPECT_EQ(device.fill(uploaded[i], std::uint8_t{1}).wait().code(), Errc::stale);
      auto again = uploaded[i];
      again.renew();
      device.copy(source, again).get();
      EXPECT_TRUE(device.download(again) == contents);
    }
    if (downloads[i].wait().ok()) {
      EXPECT_TRUE(std::equal(contents.begin(), contents.end(), downloaded[i].data()));
    } else {
      EXPECT_EQ(downloads[i].wait().code(), Errc::device_lost);
    }
  }
  ASSERT_TRUE(kept.valid()) << "it was only read";
  EXPECT_TRUE(device.download(kept) == contents);
  EXPECT_EQ(bystanders.damage(), "");
}

TEST_P(DeviceFault, WhileSlabsAreMade) {
  DeviceRig rig({"--slab-size", "2MiB", "--heartbeat-timeout", "1s"});
  auto& device = rig.device();
  constexpr std::int64_t kLength = (2 << 20) - 4096;  // one to a slab
  std::vector<GpuRef<std::uint8_t>> buffers;
  std::vector<Future<void>> fills, ordered;
  std::atomic<int> made{0};
  std::string failure;
  std::thread maker([&] {
    try {
      for (int i = 0; i < 60; ++i) {
        buffers.push_back(device.alloc<std::uint8_t>(kLength));
        fills.push_back(device.fill(buffers.back(), static_cast<std::uint8_t>(i + 1)));
        ++made;
      }
    } catch (const Exception& e) {
      failure = e.what();
    }
  });
  EXPECT_TRUE(eventually([&] { return made >= 20; }));
  ordered = strike(device);
  maker.join();
  ASSERT_EQ(failure, "");
  ASSERT_TRUE(all_resolved(ordered));
  ASSERT_TRUE(all_resolved(fills));
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    SCOPED_TRACE(i);
    if (!fills[i].wait().ok()) {
      EXPECT_FALSE(buffers[i].valid());
      buffers[i].renew();
      device.fill(buffers[i], static_cast<std::uint8_t>(i + 1)).get();
    }
    const auto contents = device.download(buffers[i]);
    EXPECT_EQ(std::count(contents.begin(), contents.end(), static_cast<std::uint8_t>(i + 1)),
              kLength);
  }
  EXPECT_EQ(not_working(device), "");
}

// Points in the life of device hosts

class HostLife : public ::testing::Test {
 protected:
  /// Uses every library at once: a host that has just begun is opening them all.
  static std::vector<Future<void>> use_all(Device& device, const std::vector<GpuRef<double>>& v) {
    std::vector<Future<void>> futures;
    futures.push_back(device.fill(v[0], 1.0));
    futures.push_back(device.rng().uniform(v[1], {.seed = 1}));
    futures.push_back(device.vector().multiply(v[0], v[0], v[2]));
    futures.push_back(device.blas().dot(v[0], v[0], v[3]));
    const auto index = device.alloc<std::int32_t>(v[0].length());
    futures.push_back(device.fill(index, 3));
    futures.push_back(device.sparse().gather(v[0], index, v[4]));
    return futures;
  }
};

TEST_F(HostLife, DeathWhileLibrariesAreOpened) {
  DeviceRig rig({"--standby", "off", "--restart-budget", "20"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 5);
  std::vector<GpuRef<double>> v;
  for (int i = 0; i < 5; ++i) v.push_back(device.alloc<double>(1000));
  int interrupted = 0;
  for (const auto delay : {0us, 200us, 500us, 1000us, 2000us, 5000us}) {
    for (auto& ref : v) ref.renew();
    const auto futures = use_all(device, v);
    std::this_thread::sleep_for(delay);
    ASSERT_TRUE(kill_active());
    ASSERT_TRUE(all_resolved(futures));
    for (const auto& future : futures) {
      const auto code = future.wait().code();
      EXPECT_TRUE(code == Errc::ok || code == Errc::device_lost || code == Errc::stale)
          << future.wait().error().to_string();
      interrupted += code != Errc::ok;
    }
    EXPECT_EQ(bystanders.damage(), "");
  }
  for (auto& ref : v) ref.renew();
  for (const auto& future : use_all(device, v)) EXPECT_TRUE(future.wait().ok());
  EXPECT_EQ(device.download(v[3])[0], 1000.0);
  RecordProperty("interrupted", interrupted);
}

TEST_F(HostLife, DeathOfTheStandbyWhileItStarts) {
  DeviceRig rig;
  auto& device = rig.device();
  const Bystanders bystanders(device, 6);
  Counters counters(device, 4);
  for (const auto delay : {0ms, 10ms, 100ms}) {
    ASSERT_TRUE(eventually([] { return hosts().size() == 2; })) << "no new standby was raised";
    std::this_thread::sleep_for(delay);
    const auto both = hosts();
    ASSERT_EQ(both.size(), 2u);
    ::kill(both[1].pid, SIGKILL);
    for (std::size_t i = 0; i < 400; ++i) counters.add(i % 4);
    ASSERT_TRUE(eventually([&] { return active_host() == both[0].pid && hosts().size() == 1; }));
  }
  ASSERT_TRUE(all_resolved(counters.futures()));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(counters.failed(i), 0u) << "the active one noticed";
  EXPECT_EQ(counters.disagreement(), "");
  EXPECT_EQ(bystanders.damage(), "");
}

TEST_F(HostLife, DeathOfTheActiveWhileTheStandbyStarts) {
  for (const auto delay : {0ms, 20ms}) {
    DeviceRig rig;
    auto& device = rig.device();
    const Bystanders bystanders(device, 7);
    ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
    std::this_thread::sleep_for(delay);
    Counters counters(device, 4);
    for (std::size_t i = 0; i < 400; ++i) counters.add(i % 4);
    ASSERT_TRUE(kill_active());
    ASSERT_TRUE(all_resolved(counters.futures()));
    EXPECT_EQ(counters.disagreement(), "");
    EXPECT_EQ(bystanders.damage(), "");
    EXPECT_EQ(not_working(device), "");
  }
}

// The driver tells of a trap long before a call does.
TEST_F(HostLife, ASignOfTheGpuCostsAHostThatCarriesOutNothing) {
  DeviceRig rig({"--heartbeat-timeout", "1h", "--spin", "50ms"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 8);
  const auto old = active_host();
  const HealthEvent sign{0, HealthKind::application, "Xid 43: a channel was reset", false, 43};
  ASSERT_EQ(::kill(old, SIGSTOP), 0);
  device.inject_health(sign);
  ASSERT_TRUE(eventually([&] { return active_host() != old && active_host() != 0; }));
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

// It may be of another process on the GPU, or of a device host that is lost already.
TEST_F(HostLife, ASignOfTheGpuCostsNothingWhereItIsNotMeant) {
  DeviceRig rig({"--heartbeat-timeout", "1h", "--spin", "0"});  // then it is waited for the answer
  auto& device = rig.device();
  const auto old = active_host();
  for (int i = 0; i < 3; ++i) {
    device.inject_health({0, HealthKind::application, "Xid 43: a channel was reset", false, 43});
    EXPECT_EQ(not_working(device), "");
  }
  EXPECT_EQ(active_host(), old);
}

TEST_F(HostLife, DeathTwiceInARow) {
  DeviceRig rig;
  auto& device = rig.device();
  const Bystanders bystanders(device, 8);
  Counters counters(device, 8);
  const auto first = active_host();
  for (std::size_t i = 0; i < 2000; ++i) counters.add(i % 4);
  ASSERT_TRUE(kill_active());
  for (std::size_t i = 0; i < 2000; ++i) counters.add(4 + i % 4);
  ASSERT_TRUE(replaced(first));
  ASSERT_TRUE(kill_active());  // at once: it may be on its way still
  ASSERT_TRUE(all_resolved(counters.futures()));
  EXPECT_EQ(counters.disagreement(), "");
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

TEST_F(HostLife, DeathOfActiveAndStandbyAtOnce) {
  DeviceRig rig;
  auto& device = rig.device();
  const Bystanders bystanders(device, 9);
  Counters counters(device, 4);
  ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
  for (std::size_t i = 0; i < 2000; ++i) counters.add(i % 4);
  for (const auto& host : hosts()) ::kill(host.pid, SIGKILL);
  ASSERT_TRUE(all_resolved(counters.futures()));
  EXPECT_EQ(counters.disagreement(), "");
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

TEST_F(HostLife, FaultsTheEngineCannotSufferAreRefused) {
  if (on_cuda()) GTEST_SKIP() << "the cuda engine suffers all of them";
  DeviceRig rig;
  EXPECT_EQ(rig.device().inject(FaultKind::illegal_address).wait().code(), Errc::unsupported);
  EXPECT_EQ(not_working(rig.device()), "");
}

// The restart budget

TEST_F(HostLife, TheFourthLossSpendsTheBudgetForEverything) {
  DeviceRig rig({"--restart-budget", "3"});
  auto& device = rig.device();
  const auto x = device.alloc<double>(100);
  for (int loss = 1; loss <= 3; ++loss) {
    ASSERT_TRUE(all_resolved({device.inject(FaultKind::kill)}));
    EXPECT_EQ(not_working(device), "") << "after loss " << loss;
  }
  // The fourth one, with work before and behind it, and a thread that makes more all the time.
  std::vector<Future<void>> pending;
  for (int i = 0; i < 100; ++i) pending.push_back(device.fill(x, 1.0));
  pending.push_back(device.inject(FaultKind::kill));
  const auto untouched = device.alloc<double>(100);
  for (int i = 0; i < 1000; ++i) pending.push_back(device.fill(untouched, 1.0));
  ASSERT_TRUE(all_resolved(pending)) << "futures of a device that was given up";
  EXPECT_EQ(pending.back().wait().code(), Errc::budget_exhausted);
  EXPECT_EQ(device.nop().wait().code(), Errc::budget_exhausted);
  EXPECT_EQ(device.fill(untouched, 2.0).wait().code(), Errc::budget_exhausted);
  EXPECT_EQ(device.try_alloc<std::uint8_t>(1 << 30).code(), Errc::budget_exhausted);
}

TEST_F(HostLife, LossesOutsideTheWindowDoNotCount) {
  DeviceRig rig({"--restart-budget", "1", "--restart-window", "300ms"});
  for (int loss = 1; loss <= 3; ++loss) {
    ASSERT_TRUE(all_resolved({rig.device().inject(FaultKind::kill)}));
    ASSERT_EQ(not_working(rig.device()), "") << "after loss " << loss;
    std::this_thread::sleep_for(400ms);
  }
}

/// A process that traces another one has its end to itself until it has taken note of it: the
/// rank's wait for its child would last as long. The end itself is known.
TEST_F(HostLife, TheEndOfALostProcessIsNotWaitedForTwice) {
  DeviceRig rig({"--heartbeat-timeout", "600s"});
  ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
  ASSERT_EQ(not_working(rig.device()), "");
  const auto both = hosts();
  int told[2] = {-1, -1};
  ASSERT_EQ(::pipe(told), 0);
  const auto tracer = ::fork();
  if (tracer == 0) {
    char traced = 1;
    for (const auto& host : both) {
      if (::ptrace(PTRACE_SEIZE, host.pid, 0, 0) != 0) traced = 0;
    }
    (void)!::write(told[1], &traced, 1);
    for (;;) ::pause();
  }
  char traced = 0;
  EXPECT_EQ(::read(told[0], &traced, 1), 1);
  const auto let_go = [&] {
    ::kill(tracer, SIGKILL);
    ::waitpid(tracer, nullptr, 0);
    ::close(told[0]), ::close(told[1]);
  };
  if (traced == 0) {
    let_go();
    GTEST_SKIP() << "no process may be traced here";
  }
  // The standby first: its end holds up the same thread.
  EXPECT_EQ(::kill(both[1].pid, SIGKILL), 0);
  EXPECT_EQ(::kill(both[0].pid, SIGKILL), 0);
  const auto done = rig.device().fill(rig.device().alloc<double>(100), 1.0);
  EXPECT_TRUE(done.wait_for(kDeadline)) << "the recovery waits for the process to be reaped";
  const bool unreaped = ::kill(both[0].pid, 0) == 0 && ::kill(both[1].pid, 0) == 0;
  let_go();
  EXPECT_TRUE(unreaped) << "nothing was held up";
  EXPECT_EQ(not_working(rig.device()), "");
  EXPECT_TRUE(eventually([&] {
    return ::kill(both[0].pid, 0) != 0 && ::kill(both[1].pid, 0) != 0;
  })) << "a process is never reaped";
}

/// As of a virtual machine. The rank is the first to go on, and finds its host silent.
TEST_F(HostLife, APauseOfTheWholeMachineCostsNothing) {
  DeviceRig rig({"--op-timeout", "5s", "--heartbeat-timeout", "3s"});
  const auto old = active_host();
  ASSERT_EQ(not_working(rig.device()), "");
  const auto command = "kill -STOP " + std::to_string(old) + " " + std::to_string(::getpid()) +
                       "; sleep 6; kill -CONT " + std::to_string(::getpid()) +
                       "; sleep 0.2; kill -CONT " + std::to_string(old);
  const auto pauser = ::fork();
  if (pauser == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ::waitpid(pauser, nullptr, 0);
  EXPECT_EQ(not_working(rig.device()), "");
  EXPECT_EQ(active_host(), old);
}

TEST_F(HostLife, AnOperationPastItsDeadlineCostsItsHost) {
  DeviceRig rig({"--op-timeout", "5s", "--heartbeat-timeout", "600s"});
  const auto old = active_host();
  ASSERT_EQ(not_working(rig.device()), "");
  const auto stuck = rig.device().inject(FaultKind::hang);
  ASSERT_TRUE(stuck.wait_for(kDeadline)) << "long before the heartbeat's deadline";
  EXPECT_EQ(stuck.wait().code(), Errc::device_lost);
  EXPECT_TRUE(replaced(old));
  EXPECT_EQ(not_working(rig.device()), "");
}

}  // namespace
}  // namespace troupe::test
