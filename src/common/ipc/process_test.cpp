// Child processes: how they start, what they see of this one, how their end is told.
#include "common/ipc/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace troupe::ipc {
namespace {

std::string child_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "process_child").string();
}

struct Pipe {
  Pipe() {
    int ends[2];
    check(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  /// Everything until all writing ends are closed.
  std::string read_all() {
    writing.reset();
    std::string text;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(reading.get(), part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(got));
    return text;
  }
  UniqueFd reading, writing;
};

bool readable(int fd, int timeout_ms) {
  pollfd look{fd, POLLIN, 0};
  return ::poll(&look, 1, timeout_ms) == 1;
}

ChildProcess start(std::vector<std::string> arguments, std::vector<int> descriptors = {},
                   std::vector<std::string> strip = {}) {
  auto child = ChildProcess::spawn(
      {child_program(), std::move(arguments), std::move(strip), std::move(descriptors)});
  EXPECT_TRUE(child.ok()) << child.error().to_string();
  return child.ok() ? std::move(*child) : ChildProcess();
}

/// What the child writes to its descriptor 3.
std::string output_of(std::vector<std::string> arguments, std::vector<std::string> strip = {}) {
  Pipe pipe;
  auto child = start(std::move(arguments), {pipe.writing.get()}, std::move(strip));
  const auto text = pipe.read_all();
  EXPECT_EQ(child.reap(), "exited with status 0");
  return text;
}

TEST(Process, ReapSaysHowItEnded) {
  EXPECT_EQ(start({"exit", "0"}).reap(), "exited with status 0");
  EXPECT_EQ(start({"exit", "3"}).reap(), "exited with status 3");
  auto child = start({"wait"});
  ASSERT_GT(child.pid(), 0);
  EXPECT_FALSE(readable(child.pidfd(), 0)) << "it runs";
  EXPECT_EQ(child.try_reap(), std::nullopt);
  child.kill();
  EXPECT_TRUE(readable(child.pidfd(), 20'000)) << "the end makes the pidfd readable";
  EXPECT_EQ(child.try_reap(), "killed by signal 9");
  EXPECT_EQ(child.reap(), "not running");
  EXPECT_EQ(child.pid(), -1);
}

/// fill_standard_descriptors() keeps the numbers 0 to 2 from files that are opened later. Reading
/// or writing through a standard descriptor that was closed still fails.
TEST(Process, ClosedStandardDescriptorsAreNobodyElses) {
  EXPECT_EQ(output_of({"closed", "1", "2"}), "4 no output no errors");
  EXPECT_EQ(output_of({"closed", "2"}), "4 no errors");
  EXPECT_EQ(output_of({"closed", "0", "1", "2"}), "4 no input no output no errors");
}

TEST(Process, AMissingProgramIsAnErrorThatNamesIt) {
  const auto child = ChildProcess::spawn({"/nowhere/troupe-device-host", {}, {}, {}});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.code(), Errc::io);
  EXPECT_EQ(child.error().native, ENOENT);
  EXPECT_NE(child.error().message.find("/nowhere/troupe-device-host"), std::string::npos);
}

TEST(Process, ArgumentsArriveAsTheyAre) {
  EXPECT_EQ(output_of({"arguments", "two words", "", "--x=1"}), "two words||--x=1|");
}

TEST(Process, StripsVariablesByPrefixAndKeepsTheRest) {
  ::setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  ::setenv("PMIX_NAMESPACE", "x", 1);
  ::setenv("COMPI_KEPT", "y", 1);
  const auto seen = output_of({"environment"}, {"OMPI_", "PMIX_"});
  EXPECT_EQ(seen.find("OMPI_COMM_WORLD_RANK"), std::string::npos);
  EXPECT_EQ(seen.find("PMIX_"), std::string::npos);
  EXPECT_NE(seen.find("COMPI_KEPT=y"), std::string::npos) << "a prefix is not a part";
  EXPECT_NE(std::getenv("OMPI_COMM_WORLD_RANK"), nullptr) << "this process keeps its own";
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("PMIX_NAMESPACE");
  ::unsetenv("COMPI_KEPT");
}

TEST(Process, OnlyTheGivenDescriptorsArrive) {
  // Open ones of every sort in this process: low, high, and one that is not close-on-exec.
  const UniqueFd inherited(::open("/dev/null", O_RDONLY));
  const UniqueFd high(::fcntl(inherited.get(), F_DUPFD, 300));
  ASSERT_TRUE(inherited && high);
  EXPECT_EQ(output_of({"descriptors"}), "0 1 2 3 ");
}

TEST(Process, DescriptorsArriveInOrderWhateverTheirNumbersHere) {
  Pipe a, b, c;
  // Numbers that collide with the targets 3, 4, 5 in the wrong order, or would be overwritten while
  // being placed.
  const int given[3] = {c.writing.get(), a.writing.get(), b.writing.get()};
  auto child = start({"numbers"}, {given[0], given[1], given[2]});
  EXPECT_EQ(c.read_all(), "3");
  EXPECT_EQ(a.read_all(), "4");
  EXPECT_EQ(b.read_all(), "5");
  EXPECT_EQ(child.reap(), "exited with status 0");
}

TEST(Process, ABadDescriptorIsAnError) {
  const auto child = ChildProcess::spawn({child_program(), {"exit", "0"}, {}, {987}});
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.error().native, EBADF);
}

TEST(Process, BlockedAndIgnoredSignalsAreNotInherited) {
  sigset_t block, before;
  sigemptyset(&block);
  sigaddset(&block, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &block, &before), 0);
  auto* const pipe = ::signal(SIGPIPE, SIG_IGN);
  auto* const term = ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(start({"signals"}).reap(), "exited with status 0") << "the status is a signal";
  ::signal(SIGPIPE, pipe);
  ::signal(SIGTERM, term);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

/// Starts a child that starts others, which have the writing end too; returns once they are there.
ChildProcess start_family(Pipe& pipe, std::vector<std::string> arguments) {
  auto child = start(std::move(arguments), {pipe.writing.get()});
  pipe.writing.reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe.reading.get(), &byte, 1), 1) << "they are not up";
  return child;
}
/// True once all that have the writing end have ended.
bool all_ended(const Pipe& pipe) {
  char byte = 0;
  return readable(pipe.reading.get(), 20'000) && ::read(pipe.reading.get(), &byte, 1) == 0;
}

TEST(Process, WhatItHasStartedIsKilledWithIt) {
  Pipe pipe;
  auto child = start_family(pipe, {"parent"});
  child.kill();
  EXPECT_TRUE(all_ended(pipe)) << "its child lives on";
  EXPECT_EQ(child.reap(), "killed by signal 9");
}

TEST(Process, WhatItHasLeftBehindIsKilledWhenItIsReaped) {
  Pipe pipe;
  auto child = start_family(pipe, {"leaver"});
  EXPECT_EQ(child.reap(), "exited with status 0");
  EXPECT_TRUE(all_ended(pipe)) << "its child lives on";
}

TEST(DieWithRank, EndsWithAllThatItHasStarted) {
  for (const auto* const host : {"host", "stopped-host"}) {
    Pipe pipe;
    auto rank = start_family(pipe, {"rank", host});
    ::kill(rank.pid(), SIGKILL);  // alone: nothing of troupe's ends the others
    EXPECT_TRUE(all_ended(pipe)) << host << " or its child lives on";
    EXPECT_EQ(rank.reap(), "killed by signal 9");
  }
}

TEST(Process, ASignalToTheJobWaitsUntilItIsIgnored) {
  Pipe pipe;
  SpawnOptions options{.program = child_program(),
                       .arguments = {"job-signals"},
                       .strip_environment = {},
                       .descriptors = {pipe.writing.get()},
                       .blocks_job_signals = true};
  auto child = ChildProcess::spawn(options).take();
  for (const int signal : kJobSignals) ASSERT_EQ(::kill(child.pid(), signal), 0);
  EXPECT_EQ(pipe.read_all(), "ignored");
  EXPECT_EQ(child.reap(), "exited with status 0");
}

TEST(Process, GoesWithItsOwner) {
  Pipe pipe;
  pid_t pid = -1;
  {
    const auto child = start({"wait"}, {pipe.writing.get()});
    pid = child.pid();
    ASSERT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(pipe.read_all(), "") << "its end closes the pipe";
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH) << "killed, and reaped";
}

TEST(Process, MovingKeepsTheChild) {
  auto first = start({"wait"});
  const auto pid = first.pid();
  ChildProcess second(std::move(first));
  EXPECT_EQ(second.pid(), pid);
  ChildProcess third;
  third = std::move(second);
  EXPECT_EQ(third.pid(), pid);
  EXPECT_EQ(::kill(pid, 0), 0);
  third.kill();
  EXPECT_EQ(third.reap(), "killed by signal 9");
}

TEST(DieWithParent, EndsAtOnceIfTheParentIsGoneAlready) {
  EXPECT_EQ(start({"orphan"}).reap(), "exited with status 0");
}

TEST(DieWithParent, EndsWhenTheParentIsKilled) {
  Pipe pipe;
  auto parent = start({"family"}, {pipe.writing.get()});
  pipe.writing.reset();
  char byte = 0;
  ASSERT_EQ(::read(pipe.reading.get(), &byte, 1), 1) << "the grandchild is up";
  parent.kill();
  EXPECT_EQ(parent.reap(), "killed by signal 9");
  ASSERT_TRUE(readable(pipe.reading.get(), 20'000)) << "the grandchild lives on";
  EXPECT_EQ(::read(pipe.reading.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace troupe::ipc
