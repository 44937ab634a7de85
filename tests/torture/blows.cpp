#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stop_token>

#include "blows.hpp"

// Faults of all kinds: commands, signals from outside, processes that stand still for a while.

extern char** environ;

namespace troupe::torture {
namespace {

using Clock = std::chrono::steady_clock;

/// A library that fails more often than this in so long is given up, with some seconds to spare.
constexpr std::size_t kLibraryFailures = 3;
constexpr std::chrono::seconds kLibraryWindow{65};
/// A device host that serves and stands still is found, and killed, within this.
constexpr std::chrono::seconds kNoticed{20};

/// A rank cannot wake itself: a shell that outlives the call does.
void freeze_self(std::uint64_t microseconds) {
  const auto order = fmt::format("(kill -STOP {0}; sleep {1}; kill -CONT {0}) > /dev/null 2>&1 &",
                                 ::getpid(), static_cast<double>(microseconds) * 1e-6);
  std::string shell = "/bin/sh", option = "-c", text = order;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/bin/sh", nullptr, nullptr, arguments, environ) != 0) return;
  int status = 0;
  (void)::waitpid(pid, &status, 0);
}

/// The processes that this one has started. A list that is read while one of them goes may lack
/// another: what two reads agree on is right.
std::vector<pid_t> children() {
  const auto read = [] {
    std::vector<pid_t> found;
    std::error_code gone;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
      std::ifstream file(task.path() / "children");
      for (pid_t child = 0; file >> child;) found.push_back(child);
    }
    std::sort(found.begin(), found.end());
    return found;
  };
  auto found = read();
  for (auto again = read(); again != found; again = read()) found = std::move(again);
  return found;
}

}  // namespace

std::vector<pid_t> device_hosts() {
  std::vector<std::pair<std::uint64_t, pid_t>> found;
  for (const auto child : children()) {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    // pid (name) state ppid …: the name may hold anything, so count from its end.
    const auto open = line.find('('), close = line.rfind(')');
    if (close == std::string::npos || line.compare(open + 1, 13, "troupe-device") != 0) continue;
    std::istringstream rest(line.substr(close + 2));
    std::string state, field;
    rest >> state;
    if (state == "Z" || state == "X") continue;
    for (int i = 4; i < 22; ++i) rest >> field;
    std::uint64_t started = 0;
    rest >> started;
    found.emplace_back(started, child);
  }
  std::sort(found.begin(), found.end());
  std::vector<pid_t> hosts;
  for (const auto& [started, pid] : found) hosts.push_back(pid);
  return hosts;
}

Future<void> Blows::strike(const Operation& op) {
  {
    const std::lock_guard lock(mutex_);
    if (!dealt_.insert(op.id).second) return {};
  }
  return deal(op);
}

Future<void> Blows::deal(const Operation& op) {
  const bool from_outside = op.blow >= Blow::kill_active && op.blow <= Blow::freeze_host;
  const auto hosts = from_outside ? device_hosts() : std::vector<pid_t>();
  switch (op.blow) {
    case Blow::inject: return device_.inject(op.fault);
    case Blow::phase:
      (void)world_.inject_in_phase(
          op.fault, std::string(kRecoveryPhases[op.data % std::size(kRecoveryPhases)]));
      return device_.inject(op.fault);
    case Blow::kill_active:
      if (hosts.empty()) break;
      if (op.id % 2 == 0) {
        ::kill(hosts.front(), SIGKILL);
      } else {  // a dead context: the driver tells of it, and nothing ends any more
        ::kill(hosts.front(), SIGSTOP);
        device_.inject_health({0, HealthKind::application, "Xid 43", false, 43});
        // The rank misses a host that was starting only after 60 s, and torture waits no longer for
        // any operation: so the host is woken before.
        const std::lock_guard lock(mutex_);
        wakers_.emplace_back([pid = hosts.front()](const std::stop_token& stop) {
          std::mutex alone;
          std::unique_lock waits(alone);
          std::condition_variable_any end;
          if (!end.wait_for(waits, stop, kNoticed, [&] { return stop.stop_requested(); }))
            ::kill(pid, SIGCONT);
        });
      }
      break;
    case Blow::kill_standby:
      if (hosts.size() > 1) ::kill(hosts.back(), SIGKILL);
      break;
    case Blow::freeze_host: {
      if (hosts.empty()) break;
      ::kill(hosts.front(), SIGSTOP);
      const std::lock_guard lock(mutex_);
      helpers_.emplace_back([pid = hosts.front(), time = op.data] {
        std::this_thread::sleep_for(std::chrono::microseconds(time));
        ::kill(pid, SIGCONT);
      });
      break;
    }
    case Blow::freeze_rank: freeze_self(op.data); break;
    case Blow::kill_rank: ::kill(::getpid(), SIGKILL); break;
    case Blow::failing_gpu:
      device_.inject_health(
          {0, HealthKind::bus, "it is failing: blow " + std::to_string(op.id), true});
      break;
  }
  return {};
}

bool Blows::fail_library(std::string_view library) {
  {
    const std::lock_guard lock(mutex_);
    auto& failures = failures_[std::string(library)];
    const auto now = Clock::now();
    std::erase_if(failures, [&](const auto& when) { return when + kLibraryWindow < now; });
    if (failures.size() >= kLibraryFailures) return false;
    failures.push_back(now);
  }
  device_.inject_library_fault(library);
  return true;
}

void Blows::fail_library_of(const Operation& op) {
  const bool fails = fail_library(library_of(op.kind));
  const std::lock_guard lock(mutex_);
  if (fails) {
    dealt_.insert(op.id);
  } else {
    dealt_.erase(op.id);  // one of an earlier program may have had the same number
  }
}

bool Blows::has_failed_library_of(const Operation& op) {
  const std::lock_guard lock(mutex_);
  return dealt_.contains(op.id);
}

void Blows::end() {
  std::vector<std::jthread> helpers;
  const std::lock_guard lock(mutex_);
  helpers.swap(helpers_);
}

}  // namespace troupe::torture
