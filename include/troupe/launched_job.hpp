#pragma once

#include <memory>
#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/device_info.hpp>

namespace troupe {

namespace rank_process {
class Session;
}

/// "0.1.0". Any thread.
std::string troupe_version();

/// The ranks of a job before there is a Runtime, and where none can be made: for programs that look
/// over what they were launched with. The main thread makes and uses it; all ranks make the same
/// calls. It outlives any Runtime that is made beside it.
class LaunchedJob {
 public:
  /// Initialises MPI unless the program has.
  LaunchedJob(int argc, char** argv);
  ~LaunchedJob();
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] int local_rank() const;  ///< among the ranks of this node
  [[nodiscard]] int node() const;        ///< the same on all ranks of this node, and on no other
  /// The text of every rank.
  [[nodiscard]] std::vector<std::string> gather_text(const std::string& text) const;
  /// The device that a Runtime of this rank would have: starts a device host, which ends again.
  /// Errors, of this rank alone: what keeps the Runtime from having it.
  [[nodiscard]] Result<DeviceInfo> try_device(const Config& config);

 private:
  std::shared_ptr<rank_process::Session> mpi_;
};

}  // namespace troupe
