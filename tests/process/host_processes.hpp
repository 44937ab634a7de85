#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

/// Device hosts as the kernel sees them, from outside troupe.
namespace troupe::test {

using namespace std::chrono_literals;

/// Nothing here takes longer unless it hangs.
inline constexpr auto kDeadline = 30s;

/// A device host as the kernel sees it.
struct HostProcess {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< clock ticks after boot
};

/// All children of a process, in no order. Reading one list is far cheaper than to look at every
/// process of the machine. A list that is read while a child goes may lack another one: what two
/// reads agree on is right.
inline std::vector<pid_t> children_of(pid_t parent) {
  const auto read = [parent] {
    std::vector<pid_t> children;
    std::error_code gone;
    const auto tasks = "/proc/" + std::to_string(parent) + "/task";
    // A parent that ends meanwhile has no more of them.
    for (std::filesystem::directory_iterator task(tasks, gone), end; task != end;
         task.increment(gone)) {
      std::ifstream file(task->path() / "children");
      for (pid_t child = 0; file >> child;) children.push_back(child);
    }
    std::sort(children.begin(), children.end());
    return children;
  };
  auto children = read();
  for (auto again = read(); again != children; again = read()) children = std::move(again);
  return children;
}

/// True if the process has not ended. A zombie, which nobody has waited for yet, has ended.
inline bool is_alive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("State:"))
      return line.find("Z (") == std::string::npos && line.find("X (") == std::string::npos;
  }
  return false;
}

/// The children of `parent` that are device hosts and not dead, oldest first: the first one is the
/// active one.
inline std::vector<HostProcess> hosts_of(pid_t parent) {
  std::vector<HostProcess> hosts;
  for (const auto child : children_of(parent)) {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string line;
    if (!std::getline(file, line)) continue;
    // pid (name) state ppid …: the name may hold anything, so count from its end.
    const auto open = line.find('('), close = line.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    std::istringstream rest(line.substr(close + 2));
    std::string state, field;
    rest >> state;
    if (state == "Z" || state == "X") continue;
    if (!line.substr(open + 1, close - open - 1).starts_with("troupe-device")) continue;
    for (int i = 4; i < 22; ++i) rest >> field;
    hosts.push_back({child, 0});
    rest >> hosts.back().started;
  }
  std::sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.started, a.pid) < std::pair(b.started, b.pid);
  });
  return hosts;
}
inline std::vector<HostProcess> hosts() {
  return hosts_of(::getpid());
}

/// Waits until `condition` holds; false if it does not in time.
template <class Condition>
bool eventually(Condition condition, std::chrono::nanoseconds limit = kDeadline) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// The active device host; 0 if there is none at the moment.
inline pid_t active_host() {
  const auto found = hosts();
  return found.empty() ? 0 : found.front().pid;
}
/// True once another device host than `old` is the active one.
inline bool replaced(pid_t old) {
  return eventually([old] {
    const auto now = active_host();
    return now != 0 && now != old;
  });
}

/// Kills the active device host with a real SIGKILL; false if there is none.
inline bool kill_active() {
  const auto found = hosts();
  return !found.empty() && ::kill(found.front().pid, SIGKILL) == 0;
}

/// A thread as the kernel sees it.
struct ThreadOfProcess {
  pid_t id = 0;
  std::string name;
  bool asleep = false;
  std::uint64_t wakeups = 0;  ///< how often it has gone to sleep of its own accord
};
inline std::vector<ThreadOfProcess> threads_of(pid_t process) {
  std::vector<ThreadOfProcess> threads;
  std::error_code gone;
  const auto folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
    ThreadOfProcess thread;
    thread.id = std::stoi(entry.path().filename().string());
    std::ifstream file(entry.path() / "status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("Name:")) thread.name = line.substr(line.find_last_of("\t ") + 1);
      if (line.starts_with("State:")) thread.asleep = line.find("S (") != std::string::npos;
      if (line.starts_with("voluntary_ctxt_switches:"))
        thread.wakeups = std::stoull(line.substr(line.find(':') + 1));
    }
    threads.push_back(thread);
  }
  return threads;
}

}  // namespace troupe::test
