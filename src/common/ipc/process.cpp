#include "common/ipc/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "common/ipc/system_error.hpp"

extern char** environ;

namespace troupe::ipc {
namespace {

/// posix_spawn's attributes and file actions, released on every path.
struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

std::vector<char*> environment_without(const std::vector<std::string>& prefixes) {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (std::none_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return text.starts_with(prefix); })) {
      kept.push_back(*entry);
    }
  }
  kept.push_back(nullptr);
  return kept;
}

void no_core_dumps() noexcept {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      leads_group_(other.leads_group_),
      pidfd_(std::move(other.pidfd_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(leads_group_, other.leads_group_);
  std::swap(pidfd_, other.pidfd_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill();
  reap();
}

Result<ChildProcess> ChildProcess::spawn(const SpawnOptions& options) {
  SpawnSetup setup;
  // Out of the way of the target numbers first, then into place: dup2 clears close-on-exec. The
  // actions run in the child; the descriptors they name stay open here.
  const int base = 3 + static_cast<int>(options.descriptors.size());
  std::vector<UniqueFd> parked;
  for (int fd : options.descriptors) {
    parked.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, base));
    if (!parked.back()) return system_error("fcntl");
  }
  for (std::size_t i = 0; i < parked.size(); ++i) {
    posix_spawn_file_actions_adddup2(&setup.actions, parked[i].get(), 3 + static_cast<int>(i));
  }
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, base);
  sigset_t blocked, all;
  sigfillset(&all);
  sigemptyset(&blocked);
  if (options.blocks_job_signals) {
    for (const int signal : kJobSignals) sigaddset(&blocked, signal);
  }
  posix_spawnattr_setsigmask(&setup.attributes, &blocked);
  posix_spawnattr_setsigdefault(&setup.attributes, &all);
  const int group = options.leads_group ? POSIX_SPAWN_SETPGROUP : 0;  // of its own number
  posix_spawnattr_setflags(&setup.attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK |
                                                                 POSIX_SPAWN_SETSIGDEF | group));

  std::vector<char*> arguments;
  if (!options.named) arguments.push_back(const_cast<char*>(options.program.c_str()));
  for (const auto& argument : options.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  auto environment = environment_without(options.strip_environment);

  ChildProcess child;
  const int error = ::posix_spawn(&child.pid_, options.program.c_str(), &setup.actions,
                                  &setup.attributes, arguments.data(), environment.data());
  if (error != 0) {
    child.pid_ = -1;
    return system_error("cannot start " + options.program, error);
  }
  child.leads_group_ = options.leads_group;
  child.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.pidfd_) return system_error("pidfd_open");
  return child;
}

void ChildProcess::kill() const noexcept {
  if (pid_ > 0) ::kill(leads_group_ ? -pid_ : pid_, SIGKILL);
}

std::optional<std::string> ChildProcess::try_reap() {
  return reap(WNOHANG);
}

std::string ChildProcess::reap() {
  return *reap(0);
}

std::optional<std::string> ChildProcess::reap(int how) {
  if (pid_ < 0) return "not running";
  if (leads_group_) {
    siginfo_t info{};  // not reaped yet: until then nobody else has its number
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | how) < 0 &&
           errno == EINTR) {
    }
    if (info.si_pid == 0) return std::nullopt;
    ::kill(-pid_, SIGKILL);
  }
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, how)) < 0 && errno == EINTR) {
  }
  if (ended == 0) return std::nullopt;
  pid_ = -1;
  pidfd_.reset();
  if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
  return "exited with status " + std::to_string(WEXITSTATUS(status));
}

void ignore_job_signals() noexcept {
  sigset_t ignored;
  sigemptyset(&ignored);
  for (const int signal : kJobSignals) {
    ::signal(signal, SIG_IGN);
    sigaddset(&ignored, signal);
  }
  ::signal(SIGTTOU, SIG_IGN);  // in a group of its own it writes to the terminal all the same
  ::sigprocmask(SIG_UNBLOCK, &ignored, nullptr);
}

void die_with_parent(pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  no_core_dumps();
}

void die_with_rank(pid_t rank, std::function<void()> last) {
  const auto parent = ::getppid();
  // The rank has gone, and with it the wrapper perhaps.
  if (parent != rank && ::kill(rank, 0) != 0) ::_exit(0);
  const int life = static_cast<int>(::syscall(SYS_pidfd_open, rank, 0));
  // Some tools do not know this call: then the end of the rank's socket must do.
  if (life >= 0) {
    const bool own_group = ::getpgrp() != ::getpgid(rank);
    std::thread([life, own_group, last = std::move(last)] {
      pollfd end{life, POLLIN, 0};
      while (::poll(&end, 1, -1) < 0) {
      }
      if (last) last();
      ::kill(own_group ? 0 : ::getpid(), SIGKILL);
    }).detach();
  }
  if (life < 0 || parent != rank) return die_with_parent(parent);
  // The thread ends this process. If it is stopped, it has to go on for that.
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  if (::getppid() != parent) ::_exit(0);
  no_core_dumps();
}

}  // namespace troupe::ipc
