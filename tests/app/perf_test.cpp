#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "job.hpp"

// troupe-perf as its users run it: with nccl-tests' options, its table and its JSON.

namespace troupe::test {
namespace {

using Json = nlohmann::json;

/// What the table has in its rows, word by word.
std::vector<std::vector<std::string>> rows(const std::string& out) {
  std::vector<std::vector<std::string>> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    all.push_back(words);
  }
  return all;
}

/// Runs it to a good end. Its JSON, and what it has printed in `out`.
Json perf(int ranks, Arguments arguments, std::string* out = nullptr) {
  const Scratch scratch;
  const auto file = scratch.file("perf.json");
  arguments = arguments + Arguments{"-J", file};
  Job job(ranks, arguments);
  EXPECT_EQ(job.wait(), 0) << job.out() << job.err();
  EXPECT_EQ(job.err(), "");
  EXPECT_TRUE(job.nothing_left());
  if (out != nullptr) *out = job.out();
  const auto report = Json::parse(read_file(file), nullptr, false);
  EXPECT_TRUE(report.is_object() && report.contains("results")) << job.out();
  return report.is_object() ? report : Json::object();
}

void expect_right(const Json& measured) {
  ASSERT_TRUE(measured.is_object()) << measured;
  EXPECT_EQ(measured.value("nwrong", -1), 0);
  EXPECT_GT(measured.value("time", 0.0), 0);
  EXPECT_GE(measured.value("alg_bw", -1.0), 0);
}

bool is_one_of(const Json& row, const std::vector<std::string>& operations) {
  const auto name = row.value("operation", "");
  return std::find(operations.begin(), operations.end(), name) != operations.end();
}

TEST(Perf, EveryOperationIsRight) {
  const int ranks = ranks_here(3);
  Arguments arguments{
      "--operation", "all,fetch,put,tell", "-b", "4", "-e", "10000", "-f", "50", "-n", "3", "-r",
      "all"};
  if (!on_cuda()) arguments = arguments + Arguments{"--peer", "mpi"};
  const auto report = perf(ranks, arguments);
  const auto all_roots = static_cast<std::size_t>(ranks);
  EXPECT_EQ(report["results"].size(), 3 * (9 + 4 * all_roots));
  for (const auto& row : report["results"]) {
    SCOPED_TRACE(row.dump());
    const bool in_place =
        !is_one_of(row, {"all_to_all", "all_to_all_v", "send_recv", "fetch", "put", "tell"});
    expect_right(row["out_of_place"]);
    EXPECT_EQ(row["in_place"].is_object(), in_place);
    if (in_place) expect_right(row["in_place"]);
    EXPECT_EQ(row["redop"] == "sum", is_one_of(row, {"all_reduce", "reduce_scatter", "reduce"}));
    EXPECT_EQ(row["root"] != "-1", is_one_of(row, {"broadcast", "reduce", "gather", "scatter"}));
    if (on_cuda()) continue;
    expect_right(row["peer_out_of_place"]);
    if (in_place) expect_right(row["peer_in_place"]);
  }
  EXPECT_EQ(report["out_of_bounds"]["count"], 0);
}

TEST(Perf, EveryTypeAndReductionIsRight) {
  const auto report = perf(ranks_here(3), {"--operation", "all_reduce,fetch", "-d", "all", "-o",
                                           "all", "-b", "1000", "-e", "1000", "-n", "1"});
  EXPECT_EQ(report["results"].size(), 12u * 6 + 12);
  for (const auto& row : report["results"]) {
    SCOPED_TRACE(row.dump());
    expect_right(row["out_of_place"]);
  }
}

TEST(Perf, PrintsTheTableOfNcclTests) {
  std::string out;
  const auto report = perf(
      ranks_here(2), {"-b", "8", "-e", "2K", "-f", "16", "-n", "2", "-w", "0", "-g", "1"}, &out);
  const auto table = rows(out);
  ASSERT_EQ(table.size(), 3u) << out;
  EXPECT_EQ(report["results"].size(), 3u);
  const std::vector<std::vector<std::string>> starts = {{"8", "2", "float", "sum", "-1"},
                                                        {"128", "32", "float", "sum", "-1"},
                                                        {"2048", "512", "float", "sum", "-1"}};
  for (std::size_t i = 0; i < table.size(); ++i) {
    ASSERT_EQ(table[i].size(), 13u) << out;
    EXPECT_TRUE(std::equal(starts[i].begin(), starts[i].end(), table[i].begin())) << out;
    EXPECT_EQ(table[i][8], "0");
    EXPECT_EQ(table[i][12], "0");
  }
  for (const auto* line :
       {"#       size         count      type   redop    root     time   algbw   busbw  #wrong     "
        "time   algbw   busbw  #wrong\n",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
        " (us)  (GB/s)  (GB/s)        \n",
        "# Out of bounds values : 0 OK\n", "# Avg bus bandwidth    : "})
    EXPECT_NE(out.find(line), std::string::npos) << line << out;
}

TEST(Perf, GroupsWorkBesideEachOther) {
  const int ranks = ranks_here(4);
  if (ranks < 4) GTEST_SKIP() << "needs 4 ranks";
  std::string out;
  const auto report = perf(
      ranks,
      {"--group", "2", "--operation", "all_gather", "-b", "64", "-e", "64", "-n", "2", "-r", "1"},
      &out);
  EXPECT_EQ(report["group"], 2);
  ASSERT_EQ(report["results"].size(), 1u);
  EXPECT_EQ(report["results"][0]["count"], 8) << "a half of 16 elements: of a group, not the world";
  expect_right(report["results"][0]["out_of_place"]);
  EXPECT_NE(out.find("# 2 groups of 2 ranks"), std::string::npos) << out;
}

TEST(Perf, CallsMayBeRecorded) {
  const auto report =
      perf(ranks_here(2), {"-G", "3", "-b", "1K", "-e", "1K", "-n", "5", "-c", "2"});
  ASSERT_EQ(report["results"].size(), 1u);
  EXPECT_EQ(report["config"]["graph"], 3);
  expect_right(report["results"][0]["out_of_place"]);
  expect_right(report["results"][0]["in_place"]);
}

TEST(Perf, WithoutChecksNothingIsCalledRight) {
  std::string out;
  const auto report = perf(ranks_here(2), {"-b", "8", "-e", "8", "-c", "0", "-z", "3"}, &out);
  ASSERT_EQ(rows(out).size(), 1u);
  EXPECT_EQ(rows(out)[0][8], "N/A");
  EXPECT_TRUE(report["results"][0]["out_of_place"]["nwrong"].is_null());
}

/// One device host of rank 1 is killed in each of these rows, and in no other.
void expect_overcome(const Arguments& arguments, const std::vector<std::size_t>& struck) {
  SCOPED_TRACE(arguments.back());
  std::string out;
  const auto report = perf(ranks_here(3), arguments, &out);
  for (std::size_t i = 0; i < report["results"].size(); ++i) {
    const auto& row = report["results"][i];
    const bool here = std::find(struck.begin(), struck.end(), i) != struck.end();
    expect_right(row["out_of_place"]);
    EXPECT_EQ(row["repeated"], here ? 1 : 0) << i << out;
    ASSERT_EQ(row["recoveries"].size(), here ? 1u : 0u) << i << out;
    if (!here) continue;
    EXPECT_EQ(row["recoveries"][0]["kind"], "kill");
    EXPECT_EQ(row["recoveries"][0]["rank"], 1);
    EXPECT_GT(row["recoveries"][0]["total_ms"], 0);
  }
  EXPECT_EQ(report["recoveries"].size(), struck.size());
  EXPECT_GT(report.value("seconds", 0.0), report["recoveries"][0].value("total_ms", 0.0) / 1e3);
  EXPECT_NE(out.find("# fault in the row above: rank 1, kill, overcome in "), std::string::npos)
      << out;
  EXPECT_NE(out.find("# Faults overcome      : " + std::to_string(struck.size()) + "\n"),
            std::string::npos)
      << out;
}

TEST(Perf, GoesOnAfterAKillInTheMiddle) {
  if (ranks_here(3) < 2) GTEST_SKIP() << "it is rank 1's";
  const Arguments sizes{"-b", "64", "-e", "4K", "-f", "8", "-n", "5"};
  expect_overcome(sizes + Arguments{"-G", "2", "--fault", "kill@12:1"}, {0});
  // 30 calls of all_reduce, 10 of a row, then 15 fetches and 15 messages, 5 of a row.
  expect_overcome(sizes + Arguments{"--operation", "all_reduce,fetch,tell", "--restart-budget", "9",
                                    "--fault", "kill@12:1,kill@37:1,kill@50:1"},
                  {1, 4, 7});
}

void expect_refused(const Arguments& arguments, const std::vector<std::string>& words) {
  SCOPED_TRACE(words.back());
  Job job(Job::kNoMpirun, arguments);
  EXPECT_EQ(job.wait(), 2) << job.out() << job.err();
  const auto lines = job.complaints();
  ASSERT_EQ(lines.size(), 1u) << job.err();
  for (const auto& word : words) EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0];
}

TEST(Perf, WhatCannotBeMeasuredIsRefused) {
  expect_refused({"-b", "lots"}, {"minbytes", "lots"});
  // These ask the world.
  expect_refused({"--fault", "kill@40:0"}, {"fault", "iteration 40 among 40"});
  if (!on_cuda()) expect_refused({"--peer", "nccl"}, {"peer", "NCCL needs GPUs"});
  expect_refused({"-b", "8", "-e", "8", "-J", "/nonexistent/perf.json"},
                 {"/nonexistent/perf.json"});
}

}  // namespace
}  // namespace troupe::test
