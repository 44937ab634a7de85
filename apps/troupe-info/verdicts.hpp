#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts.hpp"

/// The verdicts of `troupe-info --check`: pure functions of what the ranks know.
namespace troupe::info {

enum class Verdict { ok, warning, failed };

/// One line of the answer.
struct Finding {
  std::string check;  ///< "GPUs", "cores", …
  Verdict verdict = Verdict::ok;
  std::string found;
  std::string remedy;  ///< empty where nothing is wrong
};

/// What the settings of the program want of a rank's node.
struct Wants {
  std::uint64_t pinned_bytes = 0;  ///< of each rank: --pinned-pool
  std::uint64_t ring_bytes = 0;    ///< of each rank: --ring-size
  std::uint64_t slab_bytes = 0;    ///< the first piece of device memory: --slab-size
  std::string folder;              ///< --checkpoint-dir; empty: none
  std::string near;                ///< --checkpoint-local; empty: none
};

// Each takes the facts of all ranks, in their order, at least one.

/// Whether Slurm started as many tasks as MPI has ranks.
Finding judge_tasks(const std::vector<RankFacts>& ranks);
/// Whether each rank has a device, and no two of a node the same.
Finding judge_devices(const std::vector<RankFacts>& ranks);
/// Whether each rank has cores enough to itself: one for it, one for its device host. A core that
/// several ranks of a node may run on is divided among them.
Finding judge_cores(const std::vector<RankFacts>& ranks);
/// Whether the ranks run on the NUMA node that their GPU is at, where that is known.
Finding judge_places(const std::vector<RankFacts>& ranks);
/// Whether there are descriptors for all memory of the device, and for starting device hosts.
Finding judge_descriptors(const std::vector<RankFacts>& ranks, const Wants& wants);
/// Whether networks with RDMA may lock the pinned memory.
Finding judge_locked_memory(const std::vector<RankFacts>& ranks, const Wants& wants);
/// Whether /dev/shm has room for what MPI and NCCL keep there.
Finding judge_shared_memory(const std::vector<RankFacts>& ranks);
/// Whether the node's memory holds what its ranks pin and share with device hosts.
Finding judge_host_memory(const std::vector<RankFacts>& ranks, const Wants& wants);
/// Whether all ranks have the same versions.
Finding judge_versions(const std::vector<RankFacts>& ranks);
/// Whether all ranks can use one folder of saved states.
Finding judge_folder(const std::vector<RankFacts>& ranks, const Wants& wants);
/// Each rank can use its node's folder of states.
Finding judge_near_folder(const std::vector<RankFacts>& ranks, const Wants& wants);

/// What the ranks, in their order, tell of a check that they have made: nothing where all is well,
/// which `well` says; else what is wrong, which has that verdict and remedy.
Finding judge_told(const std::string& check, const std::vector<std::string>& told,
                   const std::string& well, Verdict otherwise, const std::string& remedy);

/// How many descriptors a rank needs for a device of so many bytes, each slab being one: they grow
/// from `slab_bytes` to 2 GiB as more is held (see MemoryPool), and others are for device hosts,
/// sockets, libraries and the program.
std::uint64_t descriptors_for(std::uint64_t device_bytes, std::uint64_t slab_bytes);

/// " (and 3 more ranks)"; empty: there are no others.
std::string and_more(std::size_t count);
std::string_view to_string(Verdict verdict);
/// "warning  cores            rank 0 …; REMEDY", without its end.
std::string line_of(const Finding& finding);

}  // namespace troupe::info
