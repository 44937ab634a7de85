#include <gtest/gtest.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "common/wire/port_layout.hpp"
#include "common/wire/record.hpp"
#include "device_rig.hpp"

// How a device runs and ends: completion strategies, isolation, shared memory that holds nonsense,
// nothing left behind.

namespace troupe::test {
namespace {

// Plain operation

/// A chain of dependent operations over several lanes, many times over; the result is known
/// exactly.
std::string run_chain(Device& device) {
  constexpr std::int64_t kLength = 10'000;
  (void)device.take_error();  // what earlier work left
  const auto x = device.alloc<double>(kLength), y = device.alloc<double>(kLength),
             dot = device.alloc<double>(1);
  const auto host = device.pinned<double>(static_cast<std::size_t>(kLength));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<double>(i % 7);
  device.copy(host, x);
  device.fill(y, 0.0);
  for (int i = 0; i < 500; ++i) {
    device.blas().axpy(1.0, x, y);          // y = (i + 1) x
    device.vector().axpby(0.0, y, 1.0, x);  // x as it was
  }
  device.blas().dot(x, y, dot);
  double expected = 0;
  for (std::int64_t i = 0; i < kLength; ++i)
    expected += 500.0 * static_cast<double>((i % 7) * (i % 7));
  const auto value = device.download(dot)[0];
  if (value != expected)
    return "the chain gives " + std::to_string(value) + ", not " + std::to_string(expected);
  const auto failed = device.take_error();
  return failed.ok() ? "" : failed.error().to_string();
}

class Completion : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Every, Completion, ::testing::Values("event", "host_fn", "sync"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(Completion, DeliversEveryOutcome) {
  DeviceRig rig({"--completion", GetParam()});
  EXPECT_EQ(run_chain(rig.device()), "");
  std::vector<Future<void>> futures;
  for (int i = 0; i < 5000; ++i) futures.push_back(rig.device().nop());
  EXPECT_TRUE(all_resolved(futures));
  // And across the death of a host.
  Counters counters(rig.device(), 4);
  for (std::size_t i = 0; i < 1000; ++i) counters.add(i % 4);
  ASSERT_TRUE(kill_active());
  ASSERT_TRUE(all_resolved(counters.futures()));
  EXPECT_EQ(counters.disagreement(), "");
  EXPECT_EQ(run_chain(rig.device()), "");
}

TEST_P(Completion, TellsOfAStickyFaultWithNothingBehindIt) {
  if (!on_cuda()) GTEST_SKIP() << "the cpu engine has no sticky faults";
  DeviceRig rig({"--completion", GetParam()});
  auto& device = rig.device();
  const auto x = device.alloc<double>(1000);
  std::vector<Future<void>> futures;
  futures.push_back(device.fill(x, 1.0));
  futures.push_back(device.inject(memory::FaultKind::misaligned));
  ASSERT_TRUE(all_resolved(futures));
  EXPECT_EQ(run_chain(device), "");
}

TEST(Standby, OffMeansOneHostAndRecoveryAllTheSame) {
  DeviceRig rig({"--standby", "off"});
  const Bystanders bystanders(rig.device(), 2);
  std::this_thread::sleep_for(300ms);
  ASSERT_EQ(hosts().size(), 1u);
  ASSERT_TRUE(kill_active());
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(rig.device()), "");
  EXPECT_EQ(hosts().size(), 1u);
}

TEST(CommandRing, AFullRingHoldsTheCallerBackAndLosesNothing) {
  DeviceRig rig({"--ring-size", "64KiB"});
  Counters counters(rig.device(), 8);
  for (std::size_t i = 0; i < 40'000; ++i) counters.add(i % 8);
  ASSERT_TRUE(all_resolved(counters.futures()));
  EXPECT_EQ(counters.disagreement(), "");
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(counters.failed(i), 0u);
}

// Shared memory that holds nonsense

/// The port segment of the only device host, as this process has it mapped.
wire::PortHeader* find_port() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:troupe-port") == std::string::npos) continue;
    return reinterpret_cast<wire::PortHeader*>(std::stoull(line, nullptr, 16));
  }
  return nullptr;
}

/// Where the next record comes to stand.
std::uint64_t end_of(ipc::RingControl& control, const std::byte* data, std::uint64_t capacity) {
  ipc::RingConsumer reader(&control, data, capacity);
  for (auto record = reader.front(); record.ok() && !record->empty(); record = reader.front())
    reader.skip();
  return reader.position();
}

class Nonsense : public ::testing::Test {
 protected:
  DeviceRig rig{{"--standby", "off"}};
  Device& device = rig.device();
  Bystanders bystanders{device, 3};
  pid_t old = active_host();
  wire::PortHeader* port = find_port();
  std::byte* commands = reinterpret_cast<std::byte*>(port) + wire::kPortDataOffset;
  std::vector<Future<void>> futures;

  /// Queues commands for a host that is stopped, lets `spoil` loose on the first of them, and lets
  /// the host go on.
  template <class Spoil>
  void spoil_commands(Spoil spoil) {
    ASSERT_NE(port, nullptr);
    device.nop().get();
    ::kill(old, SIGSTOP);
    const auto tail = end_of_commands();
    for (int i = 0; i < 50; ++i) futures.push_back(device.nop());
    ASSERT_LT(tail + 64 * 50, port->command_capacity) << "no wrap here";
    spoil(commands + tail);
    ::kill(old, SIGCONT);
  }
  [[nodiscard]] std::uint64_t end_of_commands() const {
    return end_of(port->command, commands, port->command_capacity);
  }
  /// The length and the place of a record.
  static std::uint64_t word_of(const std::byte* record) {
    return ipc::ring_detail::word_at(record).load();
  }
  /// The host is gone, the rank is not, all futures are resolved, and life goes on.
  void expect_recovery() {
    EXPECT_TRUE(replaced(old)) << "the host lives on";
    ASSERT_TRUE(all_resolved(futures));
    for (const auto& future : futures) {
      const auto code =
          future.wait().code();  // stale: the operand that was spoiled names no buffer
      EXPECT_TRUE(code == Errc::ok || code == Errc::device_lost || code == Errc::stale)
          << to_string(code);
    }
    EXPECT_EQ(bystanders.damage(), "");
    EXPECT_EQ(not_working(device), "");
  }
};

TEST_F(Nonsense, ARecordThatIsTooLong) {
  spoil_commands([](std::byte* record) {
    ipc::ring_detail::word_at(record).store(word_of(record) | 0x7fff'ffff);
  });
  expect_recovery();
}

TEST_F(Nonsense, AnUnknownOperation) {
  spoil_commands([](std::byte* record) {
    const std::uint32_t opcode = 0xdeadbeef;
    std::memcpy(record + 8 + offsetof(wire::CommandHeader, opcode), &opcode, sizeof opcode);
  });
  expect_recovery();
}

TEST_F(Nonsense, AnUnknownOperationInTheMiddle) {
  spoil_commands([](std::byte* record) {
    for (int i = 0; i < 25; ++i)
      record += ipc::ring_detail::padded(static_cast<std::uint32_t>(word_of(record)));
    const std::uint32_t opcode = 0xdeadbeef;
    std::memcpy(record + 8 + offsetof(wire::CommandHeader, opcode), &opcode, sizeof opcode);
  });
  expect_recovery();
}

TEST_F(Nonsense, RandomBytesOverEverything) {
  spoil_commands([](std::byte* record) {
    const auto noise = random_bytes(64 * 40, 11);
    std::memcpy(record, noise.data(), noise.size());
  });
  expect_recovery();
}

TEST_F(Nonsense, AnOperandOutsideItsRegion) {
  const auto x = device.alloc<double>(1000);
  device.fill(x, 1.0).get();
  ::kill(old, SIGSTOP);
  const auto tail = end_of_commands();
  futures.push_back(device.fill(x, 2.0));
  auto* record = commands + tail + 8;
  auto* fill = reinterpret_cast<memory::Fill*>(record + sizeof(wire::CommandHeader));
  fill->destination.offset = std::uint64_t{1} << 40;
  ::kill(old, SIGCONT);
  expect_recovery();
}

TEST_F(Nonsense, ARecordOfAnotherLap) {
  spoil_commands([this](std::byte* record) {
    ipc::ring_detail::word_at(record).store(word_of(record) + (port->command_capacity / 8 << 32));
  });
  expect_recovery();
}

TEST_F(Nonsense, RepliesThatNobodyCanRead) {
  for (int i = 0; i < 50; ++i) futures.push_back(device.nop());
  ASSERT_TRUE(all_resolved(futures));
  ::kill(old, SIGSTOP);
  for (int i = 0; i < 50; ++i) futures.push_back(device.nop());
  auto* replies = commands + port->command_capacity;
  const auto tail = end_of(port->reply, replies, port->reply_capacity);
  ASSERT_LT(tail + 64, port->reply_capacity);
  ipc::ring_detail::word_at(replies + tail).store(std::uint64_t{1} << 50);
  expect_recovery();  // the host stands still: the rank alone can find out
}

TEST_F(Nonsense, AnAnswerForMoreCommandsThanThereCanBe) {
  device.nop().get();
  ::kill(old, SIGSTOP);
  for (int i = 0; i < 50; ++i) futures.push_back(device.nop());
  auto* replies = commands + port->command_capacity;
  const auto tail = end_of(port->reply, replies, port->reply_capacity);
  ASSERT_LT(tail + 64, port->reply_capacity);
  const wire::ReplyHeader reply{.first_ticket = 1, .count = 0xffffffff, .code = 0};
  std::memcpy(replies + tail + 8, &reply, sizeof reply);
  ipc::ring_detail::word_at(replies + tail).store(ipc::ring_detail::word_of(tail, sizeof reply));
  expect_recovery();
}

// Nothing is left

/// The names of the files in /dev/shm, without those of MPI jobs and of the torture test, which may
/// run at the same time.
std::set<std::string> shared_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    const auto name = entry.path().filename().string();
    const bool of_mpi = name.starts_with("vader_segment") || name.starts_with("sm_segment") ||
                        name.starts_with("ompi");
    if (!of_mpi && !name.starts_with("troupe-torture-test")) names.insert(name);
  }
  return names;
}

/// What the descriptors of this process refer to, but for the listing's own.
std::multiset<std::string> open_files() {
  std::multiset<std::string> targets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && target.find("/proc/") == std::string::npos)
      targets.insert(target.substr(0, target.find(':')));
  }
  return targets;
}

/// Mappings of this process that hold device or pinned memory, or rings.
std::vector<std::string> shared_mappings() {
  std::vector<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:troupe") != std::string::npos) found.push_back(line);
  }
  return found;
}

/// The rank refuses to allocate more pinned memory than the machine has: the kernel would kill it.
TEST(Pinned, MoreMemoryThanThereIsIsRefused) {
  DeviceRig rig({"--standby", "off"});
  const auto bytes = 2 * static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  try {
    (void)rig.device().pinned<std::uint8_t>(bytes);
    ADD_FAILURE() << "it was granted";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), Errc::out_of_memory);
    EXPECT_NE(e.error().message.find("pinned memory: "), std::string::npos) << e.what();
    EXPECT_NE(e.error().message.find("stay free"), std::string::npos) << e.what();
  }
  EXPECT_NO_THROW((void)rig.device().pinned<std::uint8_t>(1000));
}

TEST(End, LeavesNoProcessNoMemoryAndNoDescriptor) {
  ASSERT_EQ(shared_mappings(), std::vector<std::string>()) << "from an earlier test";
  const auto shared_before = shared_files();
  { const DeviceRig warm_up; }  // what libraries open once and keep
  const auto files_before = open_files();
  for (int round = 0; round < 2; ++round) {
    DeviceRig rig;
    const Bystanders bystanders(rig.device(), 4);
    const auto pinned = rig.device().pinned<double>(1000);
    ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
    ASSERT_TRUE(kill_active());
    ASSERT_EQ(bystanders.damage(), "");
  }
  EXPECT_TRUE(eventually([] { return hosts().empty(); }));
  EXPECT_LT(::waitpid(-1, nullptr, WNOHANG), 0) << "a child was not reaped";
  EXPECT_EQ(shared_files(), shared_before);
  EXPECT_EQ(open_files(), files_before);
  EXPECT_EQ(shared_mappings(), std::vector<std::string>());
}

/// A CUDA stream that is full lets each launch wait for the end of a kernel, for seconds in all:
/// that is work, no silence.
TEST(Heartbeat, GoesOnWhileLongKernelsFillTheirQueue) {
  DeviceRig rig;
  auto& device = rig.device();
  // On a GPU of 4 TB/s 16,000 times half a millisecond, more than twice the limit of the heartbeat.
  const auto x = device.alloc<float>(on_cuda() ? std::int64_t{1} << 28 : 1 << 10);
  device.fill(x, 3.0f).get();
  const auto old = active_host();
  std::vector<Future<void>> updates;
  for (int i = 0; i < (on_cuda() ? 16'000 : 2'000); ++i)
    updates.push_back(device.blas().scal(1.0f, x));
  for (const auto& update : updates) ASSERT_TRUE(update.wait().ok());
  EXPECT_EQ(active_host(), old);
  EXPECT_EQ(device.download(x.slice(1000, 3)), std::vector<float>(3, 3.0f));
}

TEST(End, ResolvesWhatIsUnderWay) {
  std::vector<Future<void>> futures;
  {
    DeviceRig rig({"--heartbeat-timeout", "60s"});
    rig.device().inject(memory::FaultKind::hang);
    for (int i = 0; i < 100; ++i) futures.push_back(rig.device().nop());
  }
  ASSERT_TRUE(all_resolved(futures));
  for (const auto& future : futures) EXPECT_EQ(future.wait().code(), Errc::stopped);
}

/// What was asked of a device host that never answers is answered for it when it is given up.
TEST(End, OfADeviceLeavesNoPromiseBehind) {
  DeviceRig rig({"--heartbeat-timeout", "60s"});
  const auto memory = rig.core().pools().allocate_apart(1 << 20);
  ASSERT_TRUE(memory.ok());
  ASSERT_EQ(::kill(active_host(), SIGSTOP), 0);
  const auto mapped = rig.core().pools().map_apart(memory->where);
  wire::FromDeviceHost failure;
  failure.message = wire::from_host::Fatal{{Errc::device_failed, 0, "off the bus"}, false};
  rig.core().tell(rank_process::device_message::FromHost{
      1, std::make_shared<wire::FromDeviceHost>(std::move(failure))});
  ASSERT_TRUE(mapped.wait_for(kDeadline)) << "whoever waits for it waits for ever";
  EXPECT_EQ(mapped.wait().code(), Errc::device_failed);
}

TEST(End, OfTheRankIsTheEndOfItsDeviceHosts) {
  int out[2] = {};
  ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  char program[] = TROUPE_TEST_RANK_CHILD;
  char* arguments[] = {program, nullptr};
  pid_t rank = 0;
  ASSERT_EQ(::posix_spawn(&rank, program, &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  char ready = 0;
  ASSERT_EQ(::read(out[0], &ready, 1), 1) << "the rank did not start";
  const auto its_hosts = hosts_of(rank);
  ASSERT_EQ(its_hosts.size(), 2u);
  ::kill(rank, SIGKILL);
  ::waitpid(rank, nullptr, 0);
  ::close(out[0]);
  for (const auto& host : its_hosts) {
    EXPECT_TRUE(eventually([&] { return !is_alive(host.pid); }))
        << "device host " << host.pid << " lives on";
  }
}

// As to every process of a job, by a launcher or from a terminal.
TEST(JobSignals, AreNotTheDeviceHosts) {
  DeviceRig rig;
  ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
  const auto before = hosts();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    for (const auto& host : before) ASSERT_EQ(::kill(host.pid, signal), 0);
  }
  EXPECT_EQ(not_working(rig.device()), "");
  const auto after = hosts();
  ASSERT_EQ(after.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(after[i].pid, before[i].pid);
}

TEST(Descriptors, TooFewOfThemRefuseMemoryAndLoseNone) {
  char program[] = TROUPE_TEST_RANK_CHILD, descriptors[] = "descriptors";
  char* arguments[] = {program, descriptors, nullptr};
  pid_t rank = 0;
  ASSERT_EQ(::posix_spawn(&rank, program, nullptr, nullptr, arguments, environ), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(rank, &status, 0), rank);
  EXPECT_EQ(status, 0) << "see above";
}

// Last, because a device host that was a thread leaves its mappings in this process.
TEST(Isolation, AThreadDoesTheSameWork) {
  DeviceRig rig({"--isolation", "thread"});
  EXPECT_TRUE(hosts().empty());
  EXPECT_EQ(run_chain(rig.device()), "");
  const Bystanders bystanders(rig.device(), 1);
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(rig.device()), "");
}

}  // namespace
}  // namespace troupe::test
