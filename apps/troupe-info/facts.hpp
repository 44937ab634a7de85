#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <troupe/config.hpp>
#include <troupe/device_info.hpp>
#include <troupe/error.hpp>
#include <troupe/launched_job.hpp>

/// What each rank of a job knows of itself before the job runs, for `troupe-info --check`.
namespace troupe::info {

/// A limit of the system that there is not.
inline constexpr std::uint64_t kUnlimited = UINT64_MAX;

/// What one rank knows. It travels to rank 0 as JSON: there a field that a rank of another version
/// did not send has its default.
struct RankFacts {
  int rank = 0, local_rank = 0;
  int node = 0;  ///< the same on all ranks of a node, and on no other
  std::string host;
  /// Variables of Slurm, mpirun, CUDA and NCCL that are set: "SLURM_NTASKS" and so on.
  std::map<std::string, std::string> environment;
  std::vector<int> cores;                         ///< that the rank may run on
  std::map<std::string, std::vector<int>> nodes;  ///< cores of each NUMA node, by its number
  std::uint64_t descriptors = 0;                ///< hard limit of open descriptors (RLIMIT_NOFILE)
  std::uint64_t locked_bytes = 0;               ///< soft limit of locked memory (RLIMIT_MEMLOCK)
  bool rdma = false;                            ///< the node has network adapters with RDMA
  std::uint64_t shm_bytes = 0, shm_free = 0;    ///< of /dev/shm
  std::uint64_t host_memory = 0;                ///< that can be had, on the node
  std::map<std::string, std::string> versions;  ///< of troupe, MPI, the driver and libraries
  std::string folder_error;  ///< why this rank cannot use the folder of saved states; empty: it can
  std::string folder_made_in;     ///< where a run makes that folder; empty: it is there
  std::uint64_t folder_free = 0;  ///< bytes that are free there
  std::string near_error;  ///< why this rank cannot use its node's folder of states; empty: it can
  std::string near_made_in;     ///< where a run makes that folder; empty: it is there
  std::uint64_t near_free = 0;  ///< bytes that are free there

  // Of the device, once it was tried.
  std::string device_error;  ///< why it cannot be had; empty: it can
  std::string engine;        ///< "cpu" or "cuda"; empty: the device cannot be had
  std::string device_name, uuid;
  int device_node = -1;  ///< NUMA node of the GPU; -1: unknown
  std::uint64_t device_bytes = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankFacts, rank, local_rank, node, host,
                                                environment, cores, nodes, descriptors,
                                                locked_bytes, rdma, shm_bytes, shm_free,
                                                host_memory, versions, folder_error, folder_made_in,
                                                folder_free, near_error, near_made_in, near_free,
                                                device_error, engine, device_name, uuid,
                                                device_node, device_bytes)

/// What this rank knows without a device.
RankFacts facts_of(const LaunchedJob& job);
/// Adds what is known of the device, or why it cannot be had.
void add_device(RankFacts& facts, const Result<DeviceInfo>& device);

/// Whether all ranks see one folder of saved states: rank 0 writes a file with a random value
/// there, all read it, and each tries to write one. Where the folder is missing, which a run makes,
/// it is the nearest above it that is there. Sets folder_error, folder_made_in and folder_free; an
/// empty folder is none. All ranks call it.
void look_at_folder(const LaunchedJob& job, const std::string& folder, RankFacts& facts);

/// Tries to write into this rank's node's folder of states, or where a run makes it. Sets
/// near_error, near_made_in and near_free; an empty folder is none.
void look_at_near_folder(const std::string& folder, RankFacts& facts);

/// "1.5 GiB"; "unlimited"
std::string in_words(std::uint64_t bytes);

}  // namespace troupe::info
