#include <gtest/gtest.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "job.hpp"
#include "verdicts.hpp"

// troupe-info --check: jobs in which something is wrong, and the verdicts on what no job here has.

namespace troupe::test {
namespace {

using info::Finding, info::RankFacts, info::Verdict, info::Wants;

const std::vector<std::string> kWithoutWorld = {
    "Slurm",        "cores",       "NUMA nodes", "descriptors", "locked memory", "/dev/shm",
    "saved states", "near states", "devices",    "host memory", "world",         "versions"};
const std::vector<std::string> kChecks = {
    "Slurm",    "cores",        "NUMA nodes",  "descriptors", "locked memory",
    "/dev/shm", "saved states", "near states", "devices",     "host memory",
    "world",    "all_reduce",   "peer access", "health",      "versions"};

/// The lines of checks, by their names: "failed   /dev/shm       …" is that of "/dev/shm".
std::vector<std::pair<std::string, std::string>> lines_of(const Job& job) {
  std::vector<std::pair<std::string, std::string>> lines;
  std::istringstream text(job.out());
  for (std::string line; std::getline(text, line);) {
    if (line.size() < 24) continue;
    auto name = line.substr(9, 14);
    name.erase(name.find_last_not_of(' ') + 1);
    lines.emplace_back(name, line);
  }
  return lines;
}
std::vector<std::string> names_in(const Job& job) {
  std::vector<std::string> names;
  for (const auto& [name, line] : lines_of(job)) names.push_back(name);
  return names;
}
std::string line_of(const Job& job, const std::string& check) {
  for (const auto& [name, line] : lines_of(job)) {
    if (name == check) return line;
  }
  return "no line: " + job.out() + job.err();
}
void expect_failed(const Job& job, const std::string& check, const std::string& why) {
  const auto line = line_of(job, check);
  EXPECT_TRUE(line.starts_with("failed ")) << line;
  EXPECT_NE(line.find(why), std::string::npos) << line;
  EXPECT_NE(line.find(" -> "), std::string::npos) << "no remedy: " << line;
}

TEST(InfoCheck, HasALineForEachCheck) {
  const Scratch scratch;
  const auto file = scratch.file("check.json");
  const auto folder = scratch.file("states");  // which a run would make
  Job job(ranks_here(2), {"--check", "--json", file.string(), "--checkpoint-dir", folder.string()});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(names_in(job), kChecks) << job.out();
  EXPECT_TRUE(line_of(job, "all_reduce").starts_with("ok ")) << job.out();
  EXPECT_TRUE(line_of(job, "saved states").starts_with("ok ")) << job.out();
  EXPECT_NE(line_of(job, "saved states").find("a run makes it in "), std::string::npos);
  const auto json = nlohmann::json::parse(read_file(file));
  EXPECT_FALSE(json["failed"].get<bool>());
  ASSERT_EQ(json["checks"].size(), kChecks.size());
  EXPECT_EQ(json["checks"][11]["check"], "all_reduce");
  EXPECT_EQ(json["checks"][11]["result"], "ok");
  // Nothing but the report is left, not even the folder.
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.file("")), fs::directory_iterator()), 1);
  EXPECT_TRUE(job.nothing_left());
}

TEST(InfoCheck, OneThatFailsHidesNoOther) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "this wants two GPUs";
  const Scratch scratch;
  scratch.write("file", "in the way");
  const auto missing = scratch.file("file/missing");
  Job job(2,
          {"--check", "job", "--pinned-pool", "100TiB", "--checkpoint-dir", missing.string(),
           "--checkpoint-local", (missing / "near").string()},
          {.environment = {"SLURM_NTASKS=1"}});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  EXPECT_EQ(names_in(job), kWithoutWorld) << job.out();
  expect_failed(job, "Slurm", "Slurm has 1 tasks, MPI has 2 ranks");
  expect_failed(job, "saved states", "it is no folder");
  expect_failed(job, "near states", "it is no folder");
  expect_failed(job, "host memory", "shares 100 TiB");
  expect_failed(job, "world", "not tried");
  EXPECT_FALSE(fs::exists(missing));
}

TEST(InfoCheck, AnAllReduceThatFailsIsOneLine) {
  Job job(ranks_here(2), {"--check", "--memory-limit", "2MiB"});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  EXPECT_EQ(names_in(job), kChecks) << job.out();
  expect_failed(job, "all_reduce", "out_of_memory");
  EXPECT_TRUE(line_of(job, "versions").starts_with("ok ")) << job.out();
  EXPECT_TRUE(job.nothing_left());
}

TEST(InfoCheck, KnowsTheLimitsOfEachRank) {
  if (on_cuda()) GTEST_SKIP() << "CUDA wants more descriptors than that";
  Job job(2, {"--check"}, {.environment = {"prlimit", "--nofile=64:64", "--memlock=65536:65536"}});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  EXPECT_EQ(names_in(job), kChecks) << job.out();
  expect_failed(job, "descriptors", "may open 64;");
  EXPECT_NE(line_of(job, "locked memory").find("may lock 64 KiB"), std::string::npos) << job.out();
  // What comes of it: there is no descriptor left for the other rank's memory.
  EXPECT_TRUE(line_of(job, "peer access").starts_with("warning ")) << job.out();
}

TEST(InfoCheck, SeesFoldersAndSharedMemoryAsEachRankDoes) {
  if (std::system("unshare -m true 2>/dev/null") != 0)
    GTEST_SKIP() << "this wants mount namespaces, for which one must be root";
  if (ranks_here(2) < 2) GTEST_SKIP() << "this wants two GPUs";
  const Scratch scratch;
  const auto folder = scratch.file("states");
  fs::create_directory(folder);
  // Rank 1 has another file system there, and little shared memory.
  const auto elsewhere = "mount -t tmpfs none " + folder.string() +
                         " && mount -t tmpfs -o size=64k none /dev/shm && exec \"$@\"";
  const auto here = "[ $OMPI_COMM_WORLD_RANK = 1 ] || exec \"$@\"; exec unshare -m bash -c '" +
                    elsewhere + "' - \"$@\"";
  Job job(2, {"--check", "--checkpoint-dir", folder.string()},
          {.environment = {"OMPI_MCA_btl=self,tcp", "bash", "-c", here, "-"}});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  expect_failed(job, "saved states", "rank 1");
  expect_failed(job, "saved states", "not the folder that rank 0 sees");
  expect_failed(job, "/dev/shm", "64 KiB free of 64 KiB");
}

TEST(InfoCheck, NamesRanksWithoutADevice) {
  Job job(ranks_here(2), {"--check", "--device-host", "/nowhere/troupe-device-host"});
  EXPECT_EQ(job.wait(), 1) << job.out() << job.err();
  EXPECT_EQ(names_in(job), kWithoutWorld) << job.out();
  expect_failed(job, "devices", "there is no device-host program at /nowhere/troupe-device-host");
}

// What no job here has.

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

/// Ranks with eight cores and a GPU each, `each` of them on a node, nothing wrong.
std::vector<RankFacts> ranks_of(int count, int each) {
  std::vector<RankFacts> ranks;
  for (int i = 0; i < count; ++i) {
    RankFacts rank;
    rank.rank = i;
    rank.local_rank = i % each;
    rank.node = i / each * each;
    rank.host = "n" + std::to_string(i / each);
    for (int core = 0; core < 8; ++core) rank.cores.push_back(8 * rank.local_rank + core);
    rank.nodes = {{"0", {0, 1, 2, 3, 4, 5, 6, 7}}, {"1", {8, 9, 10, 11, 12, 13, 14, 15}}};
    rank.descriptors = 4096;
    rank.locked_bytes = info::kUnlimited;
    rank.shm_bytes = rank.shm_free = 4 * kGiB;
    rank.host_memory = 64 * kGiB;
    rank.versions = {{"troupe", "0.1.0"}, {"NCCL", "2.28.3"}, {"NVIDIA driver", "580.65.06"}};
    rank.engine = "cuda";
    rank.device_name = "NVIDIA H200";
    rank.uuid = "GPU-" + std::to_string(i);
    rank.device_node = rank.local_rank % 2;
    rank.device_bytes = 140 * kGiB;
    ranks.push_back(rank);
  }
  return ranks;
}
const Wants kWants{.pinned_bytes = 64 * kMiB,
                   .ring_bytes = 4 * kMiB,
                   .slab_bytes = 64 * kMiB,
                   .folder = {},
                   .near = {}};

void expect(const Finding& finding, Verdict verdict, const std::string& found) {
  EXPECT_EQ(finding.verdict, verdict) << info::line_of(finding);
  EXPECT_NE(finding.found.find(found), std::string::npos) << info::line_of(finding);
  EXPECT_EQ(finding.remedy.empty(), verdict == Verdict::ok) << info::line_of(finding);
}

TEST(InfoVerdicts, NothingIsWrongWithAGoodJob) {
  const auto ranks = ranks_of(4, 2);
  for (const auto& finding :
       {info::judge_tasks(ranks), info::judge_devices(ranks), info::judge_cores(ranks),
        info::judge_places(ranks), info::judge_descriptors(ranks, kWants),
        info::judge_locked_memory(ranks, kWants), info::judge_shared_memory(ranks),
        info::judge_host_memory(ranks, kWants), info::judge_versions(ranks),
        info::judge_folder(ranks, kWants), info::judge_near_folder(ranks, kWants)})
    expect(finding, Verdict::ok, "");
}

TEST(InfoVerdicts, TasksOfSlurmAndRanksOfMpi) {
  auto ranks = ranks_of(2, 2);
  const auto set = [&](const std::string& name, const std::string& value) {
    for (auto& rank : ranks) rank.environment[name] = value;
  };
  set("SLURM_NTASKS", "2");
  expect(info::judge_tasks(ranks), Verdict::ok, "Slurm has 2 tasks, MPI has 2 ranks");
  set("SLURM_NTASKS", "4");
  expect(info::judge_tasks(ranks), Verdict::failed, "Slurm has 4 tasks");
  set("OMPI_COMM_WORLD_SIZE", "2");  // mpirun may start fewer
  expect(info::judge_tasks(ranks), Verdict::warning, "Slurm has 4 tasks");
  set("SLURM_NTASKS", "1");
  expect(info::judge_tasks(ranks), Verdict::failed, "MPI has 2 ranks");
}

TEST(InfoVerdicts, OneGpuForTwoRanks) {
  auto ranks = ranks_of(4, 2);
  ranks[3].uuid = ranks[1].uuid;  // as if two nodes had GPUs of one name: they are not one GPU
  expect(info::judge_devices(ranks), Verdict::ok, "");
  ranks[1].uuid = ranks[0].uuid;
  ranks[1].environment["CUDA_VISIBLE_DEVICES"] = "0";
  expect(info::judge_devices(ranks), Verdict::failed,
         "rank 0 (n0) and rank 1 both have GPU-0; CUDA_VISIBLE_DEVICES=0");
  ranks[1].device_error = "invalid: no GPU with the number 1";
  expect(info::judge_devices(ranks), Verdict::failed, "rank 1 (n0): invalid: no GPU");
  auto mixed = ranks_of(2, 1);
  mixed[1].device_name = "NVIDIA H100";
  expect(info::judge_devices(mixed), Verdict::warning, "rank 1 (n1) has NVIDIA H100");
}

TEST(InfoVerdicts, CoresAndWhereTheyAre) {
  auto ranks = ranks_of(2, 2);
  ranks[1].cores = {7, 8, 9, 10};
  expect(info::judge_cores(ranks), Verdict::warning, "rank 0 (n0) is bound to 0-7, rank 1 to 7-10");
  ranks[0].cores = ranks[1].cores = {0, 1, 2, 3};  // unbound: two each
  expect(info::judge_cores(ranks), Verdict::ok, "2 or more");
  ranks[0].cores = ranks[1].cores = {0, 1, 3};
  expect(info::judge_cores(ranks), Verdict::warning, "has 1.5 to itself (of 0-1,3)");
  expect(info::judge_places(ranks), Verdict::warning, "rank 1 (n0) may run on cores 0-1,3");
  ranks[1].device_node = -1;
  expect(info::judge_places(ranks), Verdict::ok, "1 of 2 ranks");
}

TEST(InfoVerdicts, LimitsAndMemory) {
  auto ranks = ranks_of(4, 2);
  ranks[2].descriptors = 300;
  expect(info::judge_descriptors(ranks, kWants), Verdict::warning, "rank 2 (n1) may open 300");
  ranks[2].descriptors = 64;
  expect(info::judge_descriptors(ranks, kWants), Verdict::failed, "rank 2 (n1) may open 64");
  ranks[2].locked_bytes = 64 << 10;
  expect(info::judge_locked_memory(ranks, kWants), Verdict::ok, "there is none");
  ranks[2].rdma = true;
  expect(info::judge_locked_memory(ranks, kWants), Verdict::failed, "rank 2 (n1) may lock 64 KiB");
  ranks[3].shm_bytes = ranks[3].shm_free = 64 * kMiB;  // what containers have by default
  expect(info::judge_shared_memory(ranks), Verdict::warning, "NCCL advises 1 GiB");
  ranks[3].shm_free = 0;
  expect(info::judge_shared_memory(ranks), Verdict::failed, "0 B free of 64 MiB");
  ranks[1].host_memory = 128 * kMiB;
  expect(info::judge_host_memory(ranks, kWants), Verdict::failed, "n0: 128 MiB can be had");
}

TEST(InfoVerdicts, CountsTheDescriptorsOfAGpusMemory) {
  EXPECT_EQ(info::descriptors_for(0, 64 * kMiB), 256u);
  EXPECT_EQ(info::descriptors_for(64 * kMiB, 64 * kMiB), 257u);
  EXPECT_EQ(info::descriptors_for(16 * kGiB, 2 * kGiB), 256u + 8);
  // They double whenever eight of them are held: 8 of 64 MiB, 4 of 128 MiB, 4 of 256 MiB.
  EXPECT_EQ(info::descriptors_for(2 * kGiB, 64 * kMiB), 256u + 8 + 4 + 4);
}

TEST(InfoVerdicts, VersionsThatDiffer) {
  auto ranks = ranks_of(4, 2);
  ranks[2].versions["NVIDIA driver"] = ranks[3].versions["NVIDIA driver"] = "570.1";
  expect(info::judge_versions(ranks), Verdict::warning,
         "NVIDIA driver: 580.65.06 on rank 0 (n0), 570.1 on rank 2 (n1) (and 1 more rank)");
  ranks[3].versions["NCCL"] = "2.27.0";
  expect(info::judge_versions(ranks), Verdict::failed,
         "NCCL: 2.28.3 on rank 0 (n0), 2.27.0 on rank 3");
  ranks[3].versions.erase("NCCL");
  expect(info::judge_versions(ranks), Verdict::failed, "none on rank 3 (n1)");
  ranks[3].device_error = "no GPU";  // then it is no wonder
  expect(info::judge_versions(ranks), Verdict::warning, "NVIDIA driver");
}

TEST(InfoVerdicts, FoldersOfSavedStates) {
  auto ranks = ranks_of(2, 1);
  auto wants = kWants;
  wants.folder = "/shared/state";
  ranks[0].folder_free = 3 * kGiB;
  ranks[0].folder_made_in = "/shared";
  expect(info::judge_folder(ranks, wants), Verdict::ok,
         "/shared/state: a run makes it in /shared,");
  ranks[0].folder_made_in.clear();
  expect(info::judge_folder(ranks, wants), Verdict::ok, "/shared/state: all ranks see the same");
  ranks[1].folder_error = "it is no folder";
  expect(info::judge_folder(ranks, wants), Verdict::failed, "rank 1 (n1): it is no folder");
}

TEST(InfoVerdicts, FoldersOfNodes) {
  auto ranks = ranks_of(2, 1);
  auto wants = kWants;
  wants.near = "/dev/shm/state";
  ranks[0].near_free = 3 * kGiB;
  ranks[1].near_free = kGiB;
  ranks[1].near_made_in = "/dev/shm";
  expect(info::judge_near_folder(ranks, wants), Verdict::ok,
         "/dev/shm/state: a run makes it in /dev/shm, where all ranks may write; 1.0 GiB free at "
         "least, on rank 1 (n1)");
  ranks[0].near_error = "it is no folder";
  expect(info::judge_near_folder(ranks, wants), Verdict::failed, "rank 0 (n0): it is no folder");
}

TEST(InfoVerdicts, WhatRanksTell) {
  const auto judge = [](const std::vector<std::string>& told) {
    return info::judge_told("peer access", told, "well", Verdict::warning, "mend it");
  };
  expect(judge({"", ""}), Verdict::ok, "well");
  expect(judge({"", "no way", "no way"}), Verdict::warning, "rank 1 (and 1 more rank): no way");
}

TEST(InfoVerdicts, FactsTravelAsJson) {
  const nlohmann::json json = ranks_of(2, 1)[1];
  EXPECT_EQ(nlohmann::json(json.get<RankFacts>()), json);
  const auto old = nlohmann::json({{"rank", 3}, {"host", "n7"}}).get<RankFacts>();
  EXPECT_EQ(old.rank, 3);
  EXPECT_EQ(old.device_node, -1);
}

}  // namespace
}  // namespace troupe::test
