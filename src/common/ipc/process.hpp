#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// Signals that a launcher sends to every process of a job, or a terminal to a process group. What
/// they mean is for the ranks to decide; their device hosts end with them anyway.
inline constexpr int kJobSignals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

/// How a child is started. The child inherits no signal settings of this process: all dispositions
/// are the default ones, and no signal is blocked except by blocks_job_signals.
struct SpawnOptions {
  std::string program;                 ///< absolute path
  std::vector<std::string> arguments;  ///< without argv[0], which is `program`
  std::vector<std::string>
      strip_environment;         ///< prefixes of variables that the child must not see
  std::vector<int> descriptors;  ///< become 3, 4, 5, … in the child; all others are closed there
  /// Starts with kJobSignals blocked, until it calls ignore_job_signals().
  bool blocks_job_signals = false;
  /// Leads a process group, so that its own children end with it; else it is in the group of this
  /// process.
  bool leads_group = true;
  bool named = false;  ///< the first of the arguments is argv[0]
};

/// A child process. It is killed and reaped, if need be, when this object goes. The processes that
/// it has started end with it, as far as they have stayed in its group.
///
/// The child is expected to ask for PR_SET_PDEATHSIG, and so to go with a wrapper that is killed:
/// that signal follows the *thread* that spawned it, so spawn from a thread that lives as long as
/// the child shall.
class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  static Result<ChildProcess> spawn(const SpawnOptions& options);

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Readable once the process has ended.
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }
  void kill() const noexcept;
  /// How it has ended, "killed by signal 9", "exited with status 3": it is reaped then. Nothing: it
  /// runs. Never waits.
  std::optional<std::string> try_reap();
  /// The same, once it has ended. What is left of the child's group is killed.
  std::string reap();

 private:
  std::optional<std::string> reap(int how);

  pid_t pid_ = -1;
  bool leads_group_ = false;
  UniqueFd pidfd_;
};

/// Ignores kJobSignals from now on, and that a terminal may be for another process group.
void ignore_job_signals() noexcept;

/// Makes this process die with its parent, and at once if the parent is gone already. No core
/// dumps.
void die_with_parent(pid_t parent) noexcept;
/// The same for a process that `rank` has started itself or through a wrapper that stays, such as a
/// debugger: it dies with either. Once the rank has ended, `last` is called, on a thread of its
/// own, and then the group of this process is killed, unless it is the rank's.
void die_with_rank(pid_t rank, std::function<void()> last = {});

}  // namespace troupe::ipc
