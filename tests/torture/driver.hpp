#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <troupe/config.hpp>

namespace troupe::torture {

/// How a job is started, beside its seed.
struct JobSpec {
  std::filesystem::path folders;  ///< where each job gets one of its own
  int ranks = 2;
  std::vector<std::string> options;
  bool may_end_early = false;  ///< status 75 is a good end
  bool near = false;           ///< states go to a folder of the node's, too
  int kills = 0;               ///< the job is killed and started again so often
  enum class Disk { good, full, read_only } disk = Disk::good;
};

/// Draws the job of a seed.
JobSpec draw_job(std::uint64_t seed, const Config& config);

/// What the program does without mpirun: starts jobs, one after the other, until the time is over
/// or one has found something. The exit status.
int drive(const Config& config, const std::string& executable);

}  // namespace troupe::torture
