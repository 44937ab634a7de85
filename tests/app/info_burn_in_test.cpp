#include <gtest/gtest.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "burn_in_verdicts.hpp"
#include "job.hpp"

// troupe-info --burn-in: jobs whose devices do wrong, and verdicts on made-up facts.

namespace troupe::test {
namespace {

using info::BurnIn, info::Judged, info::Verdict;

const std::vector<std::string> kLoadChecks = {
    "burn-in",      "memory test", "products",  "transfers",   "copy rate",
    "product rate", "host copies", "peer rate", "collectives", "under load"};

/// The line of a check; empty: there is none.
std::string check_line(const Job& job, const std::string& check) {
  std::istringstream text(job.out());
  for (std::string line; std::getline(text, line);) {
    if (line.size() > 24 && line.substr(9, 15) == check + std::string(15 - check.size(), ' '))
      return line;
  }
  return {};
}
std::string last_line(const Job& job) {
  std::istringstream text(job.out());
  std::string last;
  for (std::string line; std::getline(text, line);) last = line;
  return last;
}
std::string all_of(const Job& job) {
  return job.out() + job.err();
}
std::string host_name() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

void expect_bad(const Job& job, const std::string& check, const std::string& why) {
  const auto line = check_line(job, check);
  EXPECT_TRUE(line.starts_with("failed ")) << all_of(job);
  EXPECT_NE(line.find(why), std::string::npos) << all_of(job);
}

TEST(InfoBurnIn, GoodDevicesPassWithinTheirTime) {
  const Scratch scratch;
  const auto file = scratch.file("burn_in.json");
  const int ranks = ranks_here(2);
  Job job(ranks, {"--burn-in", "1s", "--json", file.string()});
  ASSERT_EQ(job.wait(), 0) << all_of(job);
  for (const auto& check : kLoadChecks)
    EXPECT_FALSE(check_line(job, check).empty()) << check << all_of(job);
  EXPECT_FALSE(check_line(job, "peer access").empty())
      << "--burn-in implies --check: " << all_of(job);
  EXPECT_EQ(last_line(job), "burn-in: no bad host");
  const auto json = nlohmann::json::parse(read_file(file));
  const auto& facts = json["burn_in"];
  EXPECT_TRUE(facts["bad_hosts"].empty());
  ASSERT_EQ(facts["ranks"].size(), static_cast<std::size_t>(ranks));
  for (const auto& rank : facts["ranks"]) {
    EXPECT_GE(rank["rounds"].get<int>(), 1);
    EXPECT_GE(rank["seconds"].get<double>(), 1);
    EXPECT_GE(rank["memory"]["verified"].get<int>(), 5) << "five patterns";
    EXPECT_GT(rank["transfers"]["done"].get<int>(), 0);
    for (const auto* name : {"copy_gb_s", "product_f32_gflop_s", "product_f64_gflop_s",
                             "to_device_gb_s", "from_device_gb_s"})
      EXPECT_GT(rank["rates"].value(name, 0.0), 0) << name;
    for (const auto* name : {"peer_gb_s", "all_reduce_gb_s", "ring_gb_s"})
      EXPECT_EQ(rank["rates"].contains(name), ranks > 1) << name;
  }
  EXPECT_TRUE(job.nothing_left());
}

TEST(InfoBurnIn, FindsTheBitOfMemoryThatIsWrong) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "this wants two GPUs";
  Job job(2, {"--burn-in", "100ms", "--fault", "flip-result@0:1"});
  EXPECT_EQ(job.wait(), 1) << all_of(job);
  expect_bad(job, "memory test", "rank 1 (" + host_name() + ", ");
  const auto line = check_line(job, "memory test");
  std::uint64_t got = 0, wanted = 0, first = 0, last = 0;
  const auto at = line.find(": bytes ");
  ASSERT_NE(at, std::string::npos) << line;
  ASSERT_EQ(std::sscanf(line.c_str() + at, ": bytes %lu to %lu, the first word is 0x%lx, not 0x%lx",
                        &first, &last, &got, &wanted),
            4)
      << line;
  EXPECT_EQ(first + 7, last) << "one word is wrong: " << line;
  const auto mask = got ^ wanted;
  EXPECT_TRUE(mask != 0 && (mask & (mask - 1)) == 0) << "one bit is wrong: " << line;
  EXPECT_TRUE(check_line(job, "products").starts_with("ok ")) << all_of(job);
  EXPECT_EQ(last_line(job), "burn-in: bad hosts: " + host_name());
}

TEST(InfoBurnIn, NamesTheRankWhoseProductIsWrong) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "this wants two GPUs";
  Job job(2, {"--burn-in", "100ms", "--fault", "flip-result@1:1"});
  EXPECT_EQ(job.wait(), 1) << all_of(job);
  expect_bad(job, "products", "rank 1 (" + host_name() + ", ");
  expect_bad(job, "products", ": 1 of ");
  EXPECT_TRUE(check_line(job, "memory test").starts_with("ok ")) << all_of(job);
  EXPECT_EQ(last_line(job), "burn-in: bad hosts: " + host_name());
}

TEST(InfoBurnIn, ALostDeviceHostIsAFailureOfItsRank) {
  if (ranks_here(2) < 2) GTEST_SKIP() << "this wants two GPUs";
  for (const auto* fault : {"kill@0:1", "kill@2:1"}) {
    Job job(2, {"--burn-in", "100ms", "--fault", fault});
    EXPECT_EQ(job.wait(), 1) << all_of(job);
    expect_bad(job, "burn-in", "rank 1 (" + host_name());
    expect_bad(job, "burn-in", "the device host was lost (kill)");
    EXPECT_EQ(check_line(job, "burn-in").find("more rank"), std::string::npos) << all_of(job);
    EXPECT_TRUE(job.nothing_left());
  }
}

TEST(InfoBurnIn, AFaultThatTheEngineLacksFailsTheBurnIn) {
  if (on_cuda()) GTEST_SKIP() << "GPUs have every kind of fault";
  Job job(1, {"--burn-in", "100ms", "--fault", "trap@0:0"});
  EXPECT_EQ(job.wait(), 1) << all_of(job);
  expect_bad(job, "burn-in", "trap happens on GPUs only");
  EXPECT_EQ(last_line(job), "burn-in: not run");
}

TEST(InfoBurnIn, RefusesFaultsThatItHasNoUseFor) {
  const std::vector<std::pair<Arguments, std::string>> wrong = {
      {{"--fault", "kill@0:0"}, "--burn-in"},
      {{"--check", "--fault", "kill@0:0"}, "--burn-in"},
      {{"--burn-in", "1s", "--fault", "flip@0:0"}, "number of a part"},
      {{"--burn-in", "1s", "--fault", "rank@0:0"}, "number of a part"},
      {{"--burn-in", "1s", "--fault", "flip-result@0:7"}, "no rank 7"},
      {{"--burn-in", "soon"}, "duration"}};
  for (const auto& [arguments, why] : wrong) {
    Job job(1, arguments);
    EXPECT_EQ(job.wait(), 2) << arguments.back() << all_of(job);
    ASSERT_EQ(job.complaints().size(), 1u) << arguments.back() << all_of(job);
    EXPECT_NE(job.complaints()[0].find(why), std::string::npos) << job.complaints()[0];
  }
}

// Made-up facts.

constexpr std::uint64_t kRight = 7;

/// Ranks with a GPU each, two of them on a node, after ten good rounds.
std::vector<BurnIn> ranks_of(int count) {
  std::vector<BurnIn> ranks;
  for (int i = 0; i < count; ++i) {
    BurnIn rank;
    rank.rank = i;
    rank.host = "n" + std::to_string(i / 2);
    rank.engine = "cuda";
    rank.device_name = "NVIDIA H200";
    rank.uuid = "GPU-" + std::to_string(i);
    rank.rounds = 10;
    rank.memory = {.buffers = 8, .bytes = 2 << 20, .verified = 400, .wrong = 0, .faults = {}};
    for (const auto* dtype : {"f32", "f64"}) {
      rank.products.push_back(
          {.dtype = dtype, .size = 2048, .expected = kRight, .seen = {{kRight, 100}}, .others = 0});
    }
    for (const auto* name : {info::rate::kCopy, info::rate::kProductF32, info::rate::kProductF64,
                             info::rate::kToDevice, info::rate::kFromDevice, info::rate::kPeer,
                             info::rate::kAllReduce, info::rate::kRing})
      rank.rates[name] = 1000 + i;
    rank.transfers.done = 120;
    rank.health.known = true;
    rank.health.samples = 10;
    rank.health.corrected_before = rank.health.corrected_after = 3;
    rank.health.uncorrected_before = rank.health.uncorrected_after = 1;
    rank.health.slowed_by = {{"power cap", 10}};
    ranks.push_back(rank);
  }
  return ranks;
}

void expect(const Judged& judged, Verdict verdict, const std::string& found,
            const std::vector<int>& failed = {}) {
  EXPECT_EQ(judged.finding.verdict, verdict) << info::line_of(judged.finding);
  EXPECT_NE(judged.finding.found.find(found), std::string::npos) << info::line_of(judged.finding);
  EXPECT_EQ(judged.finding.remedy.empty(), verdict == Verdict::ok) << info::line_of(judged.finding);
  EXPECT_EQ(judged.failed, failed) << info::line_of(judged.finding);
}

TEST(InfoBurnInVerdicts, NothingIsWrongWithGoodDevices) {
  const auto ranks = ranks_of(4);
  const auto verdicts = info::judge_burn_in(ranks);
  std::vector<std::string> names;
  for (const auto& judged : verdicts) {
    expect(judged, Verdict::ok, "");
    EXPECT_LE(judged.finding.check.size(), 14u);
    names.push_back(judged.finding.check);
  }
  EXPECT_EQ(names, kLoadChecks);
  EXPECT_EQ(info::line_of_hosts(info::bad_hosts(verdicts, ranks)), "burn-in: no bad host");
}

TEST(InfoBurnInVerdicts, AnOddProductIsThatOfTheMinority) {
  auto ranks = ranks_of(3);
  ranks[1].products[1].seen = {{kRight, 60}, {8, 30}};
  ranks[1].products[1].others = 10;
  expect(
      info::judge_products(ranks), Verdict::failed,
      "rank 1 (n0, GPU-1): 40 of 100 products of f64 (2048 x 2048) differ from that of most ranks",
      {1});
  ranks[1].products[1].seen = {{8, 100}};  // always wrong, and the host knows no better
  ranks[1].products[1].others = 0;
  expect(info::judge_products(ranks), Verdict::failed, "100 of 100 products of f64", {1});
  auto two = ranks_of(2);  // one against one
  two[0].products[0].seen = {{8, 100}};
  expect(info::judge_products(two), Verdict::failed,
         "rank 0 (n0, GPU-0): 100 of 100 products of f32 (2048 x 2048) differ from the host's",
         {0});
  two[1].products[0].seen = {{8, 100}};  // both against the hosts
  expect(info::judge_products(two), Verdict::failed, "all devices have the same product", {0, 1});
  auto host = ranks_of(3);
  host[2].products[0].expected = 9;
  expect(info::judge_products(host), Verdict::failed, "rank 2 (n1, GPU-2): all devices", {2});
}

TEST(InfoBurnInVerdicts, WrongMemoryIsNamedWithItsPlace) {
  auto ranks = ranks_of(2);
  auto& memory = ranks[1].memory;
  memory.wrong = 2;
  info::MemoryFault fault{.pattern = "0xaaaaaaaaaaaaaaaa",
                          .buffer = 3,
                          .still = true,
                          .located = true,
                          .first_byte = 4096,
                          .last_byte = 4103,
                          .wanted = 0xaaaa'aaaa'aaaa'aaaa,
                          .got = 0xaaaa'aaaa'aaaa'aaa2};
  memory.faults = {fault};
  expect(info::judge_memory(ranks), Verdict::failed,
         "rank 1 (n0, GPU-1): 2 of 400 buffers were not as written; buffer 3, pattern "
         "0xaaaaaaaaaaaaaaaa: bytes 4096 to 4103, the first word is 0xaaaaaaaaaaaaaaa2, not "
         "0xaaaaaaaaaaaaaaaa",
         {1});
  EXPECT_EQ(info::judge_memory(ranks).finding.found.find("stuck"), std::string::npos);
  fault.wanted = ~std::uint64_t{0};
  fault.got = ~std::uint64_t{8};
  memory.faults.push_back(fault);
  expect(info::judge_memory(ranks), Verdict::failed, "bit 3 of it is stuck at 0", {1});
  memory.faults[1].first_byte = 8192;  // another place: no bit is known to be stuck
  EXPECT_EQ(info::judge_memory(ranks).finding.found.find("stuck"), std::string::npos);
  memory.faults = {{.pattern = "random", .buffer = 1}};
  expect(info::judge_memory(ranks), Verdict::failed, "pattern random: right when it was read again",
         {1});
}

TEST(InfoBurnInVerdicts, DataThatArrivesWrong) {
  auto ranks = ranks_of(2);
  ranks[1].transfers.wrong = 2;
  ranks[1].transfers.first_wrong = "messages from rank 0";
  expect(info::judge_transfers(ranks), Verdict::failed,
         "rank 1 (n0, GPU-1): 2 of 120 arrived otherwise than they were sent, the first time in "
         "messages from rank 0",
         {1});
}

TEST(InfoBurnInVerdicts, ASlowRankIsComparedWithTheMedianOfItsKind) {
  auto ranks = ranks_of(4);
  for (auto& rank : ranks) rank.rates[info::rate::kCopy] = 1000;
  ranks[2].rates[info::rate::kCopy] = 810;
  expect(info::judge_rates(ranks, "copy rate"), Verdict::ok, "rank 2 0.81 of it");
  ranks[2].rates[info::rate::kCopy] = 790;
  expect(info::judge_rates(ranks, "copy rate"), Verdict::warning,
         "rank 2 (n1, GPU-2): copies within the device: 790 GB/s, 0.79 of the median 1000 GB/s");
  ranks[0].rates[info::rate::kCopy] = 490;
  expect(info::judge_rates(ranks, "copy rate"), Verdict::failed,
         "rank 0 (n0, GPU-0): copies within the device: 490 GB/s", {0});
  ranks[0].device_name = ranks[2].device_name = "NVIDIA L4";
  ranks[2].rates[info::rate::kCopy] = 500;  // both as slow as each other
  expect(info::judge_rates(ranks, "copy rate"), Verdict::ok, "copies within the device");
}

TEST(InfoBurnInVerdicts, LinksMayDifferMore) {
  auto ranks = ranks_of(2);
  ranks[0].rates[info::rate::kFromDevice] = 710;
  expect(info::judge_rates(ranks, "host copies"), Verdict::ok,
         "from the device 1001 GB/s, rank 0 0.71");
  ranks[0].rates[info::rate::kFromDevice] = 690;
  expect(info::judge_rates(ranks, "host copies"), Verdict::warning, "rank 0 (n0, GPU-0): from");
  ranks[1].rates[info::rate::kRing] = 400;
  expect(info::judge_rates(ranks, "collectives"), Verdict::failed, "rank 1", {1});
}

TEST(InfoBurnInVerdicts, RatesOfTheCpuEngineAreOnlyTold) {
  auto ranks = ranks_of(2);
  for (auto& rank : ranks) rank.engine = "cpu";
  ranks[1].rates[info::rate::kProductF64] = 1;
  expect(info::judge_rates(ranks, "product rate"), Verdict::ok, "not judged");
}

TEST(InfoBurnInVerdicts, RanksWithoutPeers) {
  auto alone = ranks_of(1);
  for (const auto* name : {info::rate::kPeer, info::rate::kAllReduce, info::rate::kRing})
    alone[0].rates.erase(name);
  expect(info::judge_rates(alone, "peer rate"), Verdict::ok, "no rank has another one");
  expect(info::judge_rates(alone, "collectives"), Verdict::ok, "no rank has another one");
  auto ranks = ranks_of(2);
  ranks[1].transfers.peer_error = "from rank 0: unsupported: no way";
  expect(info::judge_rates(ranks, "peer rate"), Verdict::warning,
         "rank 1 (n0, GPU-1): not measured: from rank 0: unsupported: no way");
}

TEST(InfoBurnInVerdicts, NewErrorsOfAGpuCountAndOldOnesDoNot) {
  auto ranks = ranks_of(4);
  ranks[3].health.corrected_after = 5;
  ranks[3].health.slowed_by = {{"thermal", 4}};
  expect(
      info::judge_health(ranks), Verdict::warning,
      "rank 3 (n1, GPU-3): 2 new corrected errors of memory, slowed by thermal in 4 of 10 samples");
  ranks[2].health.remapped_after = 1;
  expect(info::judge_health(ranks), Verdict::warning,
         "rank 2 (n1, GPU-2) (and 1 more rank): 1 new remapped rows");
  ranks[2].health.uncorrected_after = 2;
  expect(info::judge_health(ranks), Verdict::failed,
         "rank 2 (n1, GPU-2): 1 new uncorrected error of memory", {2});
  ranks[2].health.uncorrected_after = 1;
  ranks[0].health.action_after = "reset the GPU";
  expect(info::judge_health(ranks), Verdict::failed, "the driver wants: reset the GPU", {0});
}

TEST(InfoBurnInVerdicts, ARankThatGaveUp) {
  auto ranks = ranks_of(3);
  ranks[0].error = "world_reformed: the world is re-formed";
  ranks[0].by_another = true;
  expect(info::judge_end(ranks), Verdict::failed, "rank 0", {0});  // nobody else is known
  ranks[2].error = "the device host was lost (kill)";
  expect(info::judge_end(ranks), Verdict::failed,
         "rank 2 (n1, GPU-2): the device host was lost (kill)", {2});
  BurnIn nothing;
  nothing.rank = 1;
  ranks[1] = nothing;
  for (const auto& judged : {info::judge_memory(ranks), info::judge_products(ranks),
                             info::judge_transfers(ranks), info::judge_rates(ranks, "copy rate")})
    expect(judged, Verdict::warning, "rank 1 (, no device): not tried");
}

TEST(InfoBurnInVerdicts, HostsOfFailedRanksAreBad) {
  auto ranks = ranks_of(6);
  ranks[5].memory.wrong = 1;
  ranks[0].transfers.wrong = ranks[1].transfers.wrong = 1;
  ranks[2].rates[info::rate::kCopy] = 700;  // a warning
  const auto bad = info::bad_hosts(info::judge_burn_in(ranks), ranks);
  EXPECT_EQ(bad, (std::vector<std::string>{"n0", "n2"}));
  EXPECT_EQ(info::line_of_hosts(bad), "burn-in: bad hosts: n0,n2");
}

TEST(InfoBurnInVerdicts, FactsTravelAsJson) {
  auto rank = ranks_of(1)[0];
  rank.memory.faults.push_back({.pattern = "random", .buffer = 1});
  const nlohmann::json json = rank;
  EXPECT_EQ(nlohmann::json(json.get<BurnIn>()), json);
  EXPECT_EQ(json.get<BurnIn>().products[1].seen.at(kRight), 100u);
}

}  // namespace
}  // namespace troupe::test
