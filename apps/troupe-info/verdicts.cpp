#include "verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace troupe::info {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;
/// Besides slabs: device hosts and standbys, sockets, libraries, MPI, files of the program.
constexpr std::uint64_t kOtherDescriptors = 256;
/// With fewer a rank does not start, or cannot start another device host.
constexpr std::uint64_t kLeastDescriptors = 96;
/// Open MPI's shared memory of each rank (btl_vader_segment_size).
constexpr std::uint64_t kMpiSegment = 4 * kMiB;
/// What NCCL's documentation advises for containers (`--shm-size=1g`).
constexpr std::uint64_t kNcclAdvises = kGiB;

std::string name_of(const RankFacts& rank) {
  return fmt::format("rank {} ({})", rank.rank, rank.host);
}

/// The ranks of which the predicate is true.
std::vector<const RankFacts*> which(const std::vector<RankFacts>& ranks,
                                    const std::function<bool(const RankFacts&)>& is_so) {
  std::vector<const RankFacts*> found;
  for (const auto& rank : ranks) {
    if (is_so(rank)) found.push_back(&rank);
  }
  return found;
}

std::string list_of(const std::vector<int>& cores) {
  std::string text;
  for (std::size_t first = 0; first < cores.size();) {
    auto last = first;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cores[first]);
    if (last > first) text += fmt::format("-{}", cores[last]);
    first = last + 1;
  }
  return text;
}

/// A variable of the rank's environment; empty: it is not set.
std::string variable(const RankFacts& rank, const std::string& name) {
  const auto found = rank.environment.find(name);
  return found == rank.environment.end() ? "" : found->second;
}

std::size_t ranks_on(const std::vector<RankFacts>& ranks, int node) {
  return which(ranks, [node](const RankFacts& rank) { return rank.node == node; }).size();
}
bool on_several_nodes(const std::vector<RankFacts>& ranks) {
  return ranks_on(ranks, ranks.front().node) < ranks.size();
}

/// How many cores the rank has to itself.
double share_of(const RankFacts& rank, const std::vector<RankFacts>& ranks) {
  const auto here = which(ranks, [&](const RankFacts& other) { return other.node == rank.node; });
  double share = 0;
  for (const int core : rank.cores) {
    share += 1.0 / static_cast<double>(
                       std::count_if(here.begin(), here.end(), [core](const RankFacts* other) {
                         return std::binary_search(other->cores.begin(), other->cores.end(), core);
                       }));
  }
  return share + 1e-6;  // thirds do not add up exactly
}

/// Two ranks of a node that were bound to different cores, and share some.
const RankFacts* bound_to_cores_of(const RankFacts& rank, const std::vector<RankFacts>& ranks) {
  for (const auto& other : ranks) {
    if (other.node != rank.node || other.rank <= rank.rank || other.cores == rank.cores) continue;
    std::vector<int> shared;
    std::set_intersection(rank.cores.begin(), rank.cores.end(), other.cores.begin(),
                          other.cores.end(), std::back_inserter(shared));
    if (!shared.empty()) return &other;
  }
  return nullptr;
}

std::string shown_devices(const RankFacts& rank) {
  const auto visible = rank.environment.find("CUDA_VISIBLE_DEVICES");
  return visible == rank.environment.end() ? "CUDA_VISIBLE_DEVICES is not set"
                                           : "CUDA_VISIBLE_DEVICES=" + visible->second;
}

}  // namespace

Finding judge_tasks(const std::vector<RankFacts>& ranks) {
  Finding finding{"Slurm", Verdict::ok, "", ""};
  const auto size = ranks.size();
  const auto text = variable(ranks.front(), "SLURM_NTASKS");
  if (text.empty()) {
    finding.found = fmt::format("MPI has {} rank{}; no job of Slurm says how many it is to have",
                                size, size == 1 ? "" : "s");
    return finding;
  }
  const bool by_mpirun = !variable(ranks.front(), "OMPI_COMM_WORLD_SIZE").empty();
  finding.found =
      fmt::format("Slurm has {} tasks, MPI has {} rank{}", text, size, size == 1 ? "" : "s");
  if (text == std::to_string(size)) return finding;
  const auto tasks = static_cast<std::size_t>(std::strtoull(text.c_str(), nullptr, 10));
  if (!by_mpirun) {
    finding.verdict = Verdict::failed;
    finding.remedy =
        "each task is a job of its own: use srun --mpi=pmix and an MPI that knows PMIx, or mpirun";
  } else if (size < tasks) {
    finding.verdict = size == 1 ? Verdict::failed : Verdict::warning;
    finding.remedy = "leave out mpirun's -n, or ask Slurm for as many tasks (--ntasks)";
  } else {
    finding.verdict = Verdict::failed;
    finding.remedy = "ask Slurm for as many tasks as mpirun starts (--ntasks)";
  }
  return finding;
}

Finding judge_devices(const std::vector<RankFacts>& ranks) {
  Finding finding{"devices", Verdict::failed, "", ""};
  const auto without =
      which(ranks, [](const RankFacts& rank) { return !rank.device_error.empty(); });
  if (!without.empty()) {
    finding.found = fmt::format("{}{}: {}; {}", name_of(*without[0]), and_more(without.size()),
                                without[0]->device_error, shown_devices(*without[0]));
    finding.remedy = "give each rank a GPU (--gpus-per-node), or take --engine cpu";
    return finding;
  }
  std::map<std::pair<int, std::string>, const RankFacts*> owners;
  for (const auto& rank : ranks) {
    const auto [owner, fresh] = owners.try_emplace({rank.node, rank.uuid}, &rank);
    if (fresh) continue;
    finding.found = fmt::format("{} and rank {} both have {}; {}", name_of(*owner->second),
                                rank.rank, rank.uuid, shown_devices(rank));
    finding.remedy =
        "one rank per GPU: as many tasks per node as GPUs, all shown to every rank of the node or "
        "one bound to each (--gpus-per-task=1)";
    return finding;
  }
  finding.verdict = Verdict::ok;
  finding.found = fmt::format("{} rank{}, each with its own; engine {}, {}", ranks.size(),
                              ranks.size() == 1 ? "" : "s", ranks[0].engine, ranks[0].device_name);
  for (const auto& rank : ranks) {
    if (rank.engine == ranks[0].engine && rank.device_name == ranks[0].device_name) continue;
    finding.verdict = Verdict::warning;
    finding.found += fmt::format("; but {} has {}", name_of(rank), rank.device_name);
    finding.remedy = "all ranks wait for the slowest: ask for nodes of one kind (--constraint)";
    break;
  }
  return finding;
}

Finding judge_cores(const std::vector<RankFacts>& ranks) {
  Finding finding{"cores", Verdict::warning, "", ""};
  constexpr double kWanted = 2;
  const auto few =
      which(ranks, [&](const RankFacts& rank) { return share_of(rank, ranks) < kWanted; });
  if (!few.empty()) {
    finding.found = fmt::format(
        "{}{} has {:.3g} to itself (of {}); it wants 2, one for its device host", name_of(*few[0]),
        and_more(few.size()), share_of(*few[0], ranks), list_of(few[0]->cores));
    finding.remedy = "--cpus-per-task=2 or more, mpirun --bind-to none, or fewer ranks per node";
    return finding;
  }
  for (const auto& rank : ranks) {
    const auto* other = bound_to_cores_of(rank, ranks);
    if (other == nullptr) continue;
    finding.found = fmt::format("{} is bound to {}, rank {} to {}: they share some", name_of(rank),
                                list_of(rank.cores), other->rank, list_of(other->cores));
    finding.remedy = "bind each rank to cores of its own, or none (mpirun --bind-to none)";
    return finding;
  }
  finding.verdict = Verdict::ok;
  const auto least =
      std::min_element(ranks.begin(), ranks.end(), [&](const RankFacts& a, const RankFacts& b) {
        return share_of(a, ranks) < share_of(b, ranks);
      });
  finding.found = fmt::format("{:.3g} or more for each rank", share_of(*least, ranks));
  return finding;
}

Finding judge_places(const std::vector<RankFacts>& ranks) {
  Finding finding{"NUMA nodes", Verdict::ok, "", ""};
  const auto known = which(ranks, [](const RankFacts& rank) {
    return rank.device_node >= 0 && rank.nodes.contains(std::to_string(rank.device_node));
  });
  const auto far = which(ranks, [](const RankFacts& rank) {
    const auto near = rank.nodes.find(std::to_string(rank.device_node));
    return rank.device_node >= 0 && near != rank.nodes.end() &&
           std::find_first_of(rank.cores.begin(), rank.cores.end(), near->second.begin(),
                              near->second.end()) == rank.cores.end();
  });
  if (far.empty()) {
    finding.found = known.empty() ? "it is not known at which one the devices are"
                                  : fmt::format("{} of {} ranks are known to run near their GPU",
                                                known.size(), ranks.size());
    return finding;
  }
  const auto& rank = *far[0];
  finding.verdict = Verdict::warning;
  finding.found =
      fmt::format("{}{} may run on cores {}, none of them on node {} of its GPU", name_of(rank),
                  and_more(far.size()), list_of(rank.cores), rank.device_node);
  finding.remedy =
      "--gpu-bind=closest, or leave the ranks of a node unbound (mpirun --bind-to none)";
  return finding;
}

std::uint64_t descriptors_for(std::uint64_t device_bytes, std::uint64_t slab_bytes) {
  std::uint64_t count = kOtherDescriptors;
  for (std::uint64_t held = 0, slab = std::max(slab_bytes, 2 * kMiB); held < device_bytes;
       ++count) {
    while (slab <= kGiB && slab <= held / 8) slab *= 2;
    held += slab;
  }
  return count;
}

Finding judge_descriptors(const std::vector<RankFacts>& ranks, const Wants& wants) {
  const auto& least = *std::min_element(
      ranks.begin(), ranks.end(),
      [](const RankFacts& a, const RankFacts& b) { return a.descriptors < b.descriptors; });
  const auto wanted = descriptors_for(least.device_bytes, wants.slab_bytes);
  Finding finding{"descriptors", Verdict::ok, "", ""};
  finding.found = fmt::format("{} may open {}", name_of(least),
                              least.descriptors == kUnlimited ? std::string("any number")
                                                              : std::to_string(least.descriptors));
  if (least.descriptors >= wanted) return finding;
  finding.verdict = least.descriptors < kLeastDescriptors ? Verdict::failed : Verdict::warning;
  finding.found += fmt::format("; all of its device's memory wants {}", wanted);
  finding.remedy =
      "raise the hard limit (ulimit -Hn, LimitNOFILE of slurmd), or larger --slab-size";
  return finding;
}

Finding judge_locked_memory(const std::vector<RankFacts>& ranks, const Wants& wants) {
  const auto& least = *std::min_element(
      ranks.begin(), ranks.end(),
      [](const RankFacts& a, const RankFacts& b) { return a.locked_bytes < b.locked_bytes; });
  Finding finding{"locked memory", Verdict::ok, "", ""};
  finding.found = fmt::format("{} may lock {}", name_of(least), in_words(least.locked_bytes));
  const auto rdma = which(ranks, [&](const RankFacts& rank) {
    return rank.rdma && rank.locked_bytes < wants.pinned_bytes;
  });
  if (rdma.empty()) {
    if (least.locked_bytes < wants.pinned_bytes)
      finding.found += "; only networks with RDMA would want more, and there is none";
    return finding;
  }
  finding.verdict = on_several_nodes(ranks) ? Verdict::failed : Verdict::warning;
  finding.found = fmt::format(
      "{}{} may lock {}, and its network's RDMA registers {} of pinned memory", name_of(*rdma[0]),
      and_more(rdma.size()), in_words(rdma[0]->locked_bytes), in_words(wants.pinned_bytes));
  finding.remedy = "ulimit -l unlimited; under Slurm LimitMEMLOCK=infinity for slurmd";
  return finding;
}

Finding judge_shared_memory(const std::vector<RankFacts>& ranks) {
  Finding finding{"/dev/shm", Verdict::ok, "", ""};
  for (const auto& rank : ranks) {
    const auto here = ranks_on(ranks, rank.node);
    const bool nccl = rank.engine == "cuda" && here > 1;
    const auto least = std::min<std::uint64_t>(here * kMpiSegment, kGiB);
    const bool full = rank.shm_free < least;
    if (!full && !(nccl && rank.shm_bytes < kNcclAdvises)) continue;
    finding.verdict = full ? Verdict::failed : Verdict::warning;
    finding.found = fmt::format("{}: {} free of {}; {}", rank.host, in_words(rank.shm_free),
                                in_words(rank.shm_bytes),
                                nccl ? "NCCL advises 1 GiB in all"
                                     : "MPI wants " + in_words(least) + " for the node's ranks");
    finding.remedy =
        "mount -o remount,size=… /dev/shm, docker run --shm-size=1g, or remove what "
        "lies there";
    if (full) return finding;
  }
  if (finding.verdict == Verdict::ok)
    finding.found = fmt::format("{}: {} free of {}", ranks[0].host, in_words(ranks[0].shm_free),
                                in_words(ranks[0].shm_bytes));
  return finding;
}

Finding judge_host_memory(const std::vector<RankFacts>& ranks, const Wants& wants) {
  Finding finding{"host memory", Verdict::ok, "", ""};
  for (const auto& rank : ranks) {
    const auto here = ranks_on(ranks, rank.node);
    const auto each = wants.pinned_bytes + wants.ring_bytes;
    const auto text =
        fmt::format("{}: {} can be had; ranks here: {}, each shares {} with its device host",
                    rank.host, in_words(rank.host_memory), here, in_words(each));
    if (finding.found.empty()) finding.found = text;
    if (rank.host_memory / here >= each) continue;
    finding.verdict = Verdict::failed;
    finding.found = text;
    finding.remedy = "a smaller --pinned-pool, or more memory for the job (--mem)";
    return finding;
  }
  return finding;
}

Finding judge_versions(const std::vector<RankFacts>& ranks) {
  Finding finding{"versions", Verdict::ok, "", ""};
  // A rank without a device does not tell what that stands on.
  const auto with_device = which(ranks, [](const RankFacts& r) { return r.device_error.empty(); });
  const auto& first = with_device.empty() ? ranks[0] : *with_device[0];
  for (const auto& [name, version] : first.versions) {
    finding.found += fmt::format("{}{} {}", finding.found.empty() ? "" : ", ", name, version);
  }
  if (ranks.size() > 1) finding.found += " on all ranks";
  for (const auto& [key, value] : first.versions) {
    const auto& name = key;
    const auto& version = value;
    const auto others = which(ranks, [&](const RankFacts& rank) {
      const auto theirs = rank.versions.find(name);
      return theirs == rank.versions.end() ? rank.device_error.empty() : theirs->second != version;
    });
    const bool must = name == "troupe" || name == "NCCL" || name == "MPI";
    if (others.empty() || finding.verdict == Verdict::failed ||
        (finding.verdict == Verdict::warning && !must))
      continue;
    const auto theirs = others[0]->versions.find(name);
    finding.verdict = must ? Verdict::failed : Verdict::warning;
    finding.found = fmt::format("{}: {} on {}, {} on {}{}", name, version, name_of(first),
                                theirs == others[0]->versions.end() ? "none" : theirs->second,
                                name_of(*others[0]), and_more(others.size()));
    finding.remedy = "the same installation on all nodes (modules, containers, LD_LIBRARY_PATH)";
  }
  return finding;
}

Finding judge_folder(const std::vector<RankFacts>& ranks, const Wants& wants) {
  Finding finding{"saved states", Verdict::ok, "no folder is named (--checkpoint-dir)", ""};
  if (wants.folder.empty()) return finding;
  const auto wrong = which(ranks, [](const RankFacts& rank) { return !rank.folder_error.empty(); });
  if (wrong.empty()) {
    const auto& made_in = ranks[0].folder_made_in;
    finding.found =
        fmt::format("{}: {}; {} free", wants.folder,
                    made_in.empty() ? "all ranks see the same folder"
                                    : "a run makes it in " + made_in + ", which all ranks see",
                    in_words(ranks[0].folder_free));
    return finding;
  }
  finding.verdict = Verdict::failed;
  finding.found = fmt::format("{}: {}{}: {}", wants.folder, name_of(*wrong[0]),
                              and_more(wrong.size()), wrong[0]->folder_error);
  finding.remedy = "make a folder that all ranks may write, on a file system that all nodes share";
  return finding;
}

Finding judge_near_folder(const std::vector<RankFacts>& ranks, const Wants& wants) {
  Finding finding{"near states", Verdict::ok, "no folder is named (--checkpoint-local)", ""};
  if (wants.near.empty()) return finding;
  const auto wrong = which(ranks, [](const RankFacts& rank) { return !rank.near_error.empty(); });
  if (wrong.empty()) {
    const auto least = std::min_element(
        ranks.begin(), ranks.end(),
        [](const auto& one, const auto& other) { return one.near_free < other.near_free; });
    finding.found = fmt::format(
        "{}: {}all ranks may write; {} free at least, on {}", wants.near,
        least->near_made_in.empty() ? "" : "a run makes it in " + least->near_made_in + ", where ",
        in_words(least->near_free), name_of(*least));
    return finding;
  }
  finding.verdict = Verdict::failed;
  finding.found = fmt::format("{}: {}{}: {}", wants.near, name_of(*wrong[0]),
                              and_more(wrong.size()), wrong[0]->near_error);
  finding.remedy =
      "name a folder of each node's own that all ranks may write, such as one in /dev/shm";
  return finding;
}

Finding judge_told(const std::string& check, const std::vector<std::string>& told,
                   const std::string& well, Verdict otherwise, const std::string& remedy) {
  const auto wrong =
      std::find_if(told.begin(), told.end(), [](const auto& t) { return !t.empty(); });
  if (wrong == told.end()) return {check, Verdict::ok, well, ""};
  const auto count = std::count_if(wrong, told.end(), [](const auto& t) { return !t.empty(); });
  return {check, otherwise,
          fmt::format("rank {}{}: {}", wrong - told.begin(),
                      and_more(static_cast<std::size_t>(count)), *wrong),
          remedy};
}

std::string and_more(std::size_t count) {
  if (count <= 1) return {};
  return fmt::format(" (and {} more rank{})", count - 1, count == 2 ? "" : "s");
}

std::string_view to_string(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warning ? "warning" : "failed";
}

std::string line_of(const Finding& finding) {
  return fmt::format("{:<8} {:<14} {}{}{}", to_string(finding.verdict), finding.check,
                     finding.found, finding.remedy.empty() ? "" : " -> ", finding.remedy);
}

}  // namespace troupe::info
