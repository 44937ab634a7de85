#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A queue of a rank's device host.
struct RunningQueue {
  int index = 0;    ///< from 1
  double busy = 0;  ///< the share of the time looked at in which it had a command under way
};

/// A rank of a job that is running, as it shows itself to other processes of its user.
struct RunningRank {
  std::string job;      ///< Slurm's number, or the process id of the job's rank 0
  std::string command;  ///< its command line
  int pid = 0, rank = 0, size = 0;
  std::string device;       ///< its name; empty: it is not there yet
  std::uint32_t epoch = 0;  ///< the newest of the world; 0: there was none yet
  bool active = false;      ///< false: the world forms, or is being formed again
  std::uint32_t recoveries = 0;
  std::uint64_t held_bytes = 0;  ///< of device memory, for its buffers
  double seconds = 0;            ///< since its flight recorder was made

  /// The process of its device host, and how that is: "runs", "is stopped", "is gone"; "none":
  /// there is none yet; "in the rank": it is a thread.
  int host_pid = 0;
  std::string host_state;

  /// Of what follows nothing is known if the rank keeps no record (--flight-records 0).
  bool recorded = false;
  std::uint64_t commands = 0;                   ///< that were issued so far
  std::optional<double> commands_per_second{};  ///< since the look before
  /// The oldest command that is under way, and since when; empty: there is none.
  std::string under_way;
  double under_way_seconds = 0;
  /// Those that had a command lately. The time looked at goes back to the look before, or as far
  /// as the record does.
  std::vector<RunningQueue> queues;
};

/// Looks at the running jobs of this user on this node. The ranks are not asked, and do nothing for
/// it: what a rank shows is in memory that it shares with its device host, which is mapped here to
/// be read. One thread at a time.
///
/// Operations of libraries whose header the program has not included are "operation NUMBER".
class RunningRanks {
 public:
  RunningRanks();
  ~RunningRanks();
  RunningRanks(const RunningRanks&) = delete;
  RunningRanks& operator=(const RunningRanks&) = delete;

  /// The ranks that are there now, by job and rank.
  [[nodiscard]] std::vector<RunningRank> look();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace troupe
