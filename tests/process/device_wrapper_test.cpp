#include <gtest/gtest.h>

#include <spawn.h>
#include <sys/wait.h>

#include <fstream>

#include "device_rig.hpp"

// A device host behind a process that stays, as debuggers and profilers do.

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

/// A script that runs the device host without becoming it, in a folder that goes with this. Its
/// name makes hosts() find it.
class Wrapper {
 public:
  /// `after`: what the script does once the device host has ended.
  explicit Wrapper(const std::string& after) {
    char name[] = "/tmp/troupe-wrapper-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::ofstream(program()) << "#!/bin/sh\n"
                             << TROUPE_TEST_DEVICE_HOST << " \"$@\"\nstatus=$?\n"
                             << after << "\nexit $status\n";
    fs::permissions(program(), fs::perms::owner_all);
  }
  ~Wrapper() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Wrapper(const Wrapper&) = delete;
  Wrapper& operator=(const Wrapper&) = delete;
  [[nodiscard]] std::string program() const { return folder_ / "troupe-device-wrapper"; }
  [[nodiscard]] std::vector<std::string> options() const { return {"--device-host", program()}; }

 private:
  fs::path folder_;
};

/// The device hosts behind the wrappers of `rank`.
std::vector<pid_t> wrapped_hosts(pid_t rank) {
  std::vector<pid_t> found;
  for (const auto& wrapper : hosts_of(rank)) {
    for (const auto& host : hosts_of(wrapper.pid)) found.push_back(host.pid);
  }
  return found;
}

/// True once the rank knows `host` by a pidfd: once it has been ready. One that is still starting
/// is killed at the end, with its wrapper.
bool known(pid_t host) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/self/fdinfo", gone)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      if (line == "Pid:\t" + std::to_string(host)) return true;
    }
  }
  return false;
}

bool gone(pid_t pid) {
  return eventually([pid] { return ::kill(pid, 0) != 0; }, 10s);
}

void expect_that_losses_are_overcome(const Wrapper& wrapper) {
  std::vector<pid_t> all;
  {
    DeviceRig rig(wrapper.options());
    EXPECT_EQ(not_working(rig.device()), "");
    const Bystanders bystanders(rig.device(), 1);
    for (int loss = 0; loss < 2; ++loss) {
      ASSERT_TRUE(eventually([] { return wrapped_hosts(::getpid()).size() == 2; }));
      const auto before = active_host();
      const auto real = hosts_of(before);
      ASSERT_EQ(real.size(), 1u) << "the device host is not behind its wrapper";
      ASSERT_EQ(::kill(real.front().pid, SIGKILL), 0);
      EXPECT_TRUE(replaced(before));
      EXPECT_EQ(bystanders.damage(), "");
      EXPECT_EQ(not_working(rig.device()), "");
      EXPECT_TRUE(gone(real.front().pid));
    }
    ASSERT_TRUE(eventually([] { return wrapped_hosts(::getpid()).size() == 2; }));
    for (const auto& one : hosts()) all.push_back(one.pid);
    for (const auto pid : wrapped_hosts(::getpid())) all.push_back(pid);
  }
  for (const auto pid : all) EXPECT_TRUE(gone(pid)) << pid << " lives on";
}

TEST(Wrapped, ByAScriptThatWaitsForIt) {
  expect_that_losses_are_overcome(Wrapper(""));
}

TEST(Wrapped, ByAToolThatStaysWhenItHasEnded) {
  expect_that_losses_are_overcome(Wrapper("[ $status = 0 ] || kill -STOP $$"));
}

TEST(Wrapped, ByAToolThatWritesItsResultsAtTheEnd) {
  const Wrapper wrapper("echo $status > \"$0.$$\"");
  std::vector<pid_t> wrappers;
  {
    DeviceRig rig(wrapper.options());
    EXPECT_EQ(not_working(rig.device()), "");
    ASSERT_TRUE(eventually([] {
      const auto both = wrapped_hosts(::getpid());
      return both.size() == 2 && std::all_of(both.begin(), both.end(), known);
    }));
    for (const auto& one : hosts()) wrappers.push_back(one.pid);
  }
  for (const auto pid : wrappers) {
    std::string status;
    std::ifstream(wrapper.program() + "." + std::to_string(pid)) >> status;
    EXPECT_EQ(status, "0") << "the wrapper was killed before it could write, or its host was";
  }
}

TEST(Wrapped, HostsEndWithTheirRank) {
  const Wrapper wrapper("");
  int out[2];
  ASSERT_EQ(::pipe(out), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  auto program = std::string(TROUPE_TEST_RANK_CHILD), option = std::string("--device-host"),
       value = wrapper.program();
  char* arguments[] = {program.data(), option.data(), value.data(), nullptr};
  pid_t rank = 0;
  ASSERT_EQ(::posix_spawn(&rank, program.c_str(), &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  ::close(out[1]);
  char ready = 0;
  ASSERT_EQ(::read(out[0], &ready, 1), 1) << "the rank did not start";
  ASSERT_TRUE(eventually([&] { return wrapped_hosts(rank).size() == 2; }));
  auto all = wrapped_hosts(rank);
  for (const auto& one : hosts_of(rank)) all.push_back(one.pid);
  ::kill(rank, SIGKILL);
  ::waitpid(rank, nullptr, 0);
  ::close(out[0]);
  for (const auto pid : all) EXPECT_TRUE(gone(pid)) << pid << " lives on";
}

}  // namespace
}  // namespace troupe::test
