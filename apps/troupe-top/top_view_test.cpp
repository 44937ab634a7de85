#include "view.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

// What troupe-top prints.

namespace troupe::top {
namespace {

RunningRank rank(int number) {
  RunningRank one;
  one.job = "4711";
  one.command = "troupe-heat --points 64";
  one.pid = 100 + number;
  one.rank = number;
  one.size = 4;
  one.device = "NVIDIA H200";
  one.epoch = 2;
  one.active = true;
  one.recoveries = 1;
  one.held_bytes = std::uint64_t{3} << 29;
  one.seconds = 12;
  one.host_pid = 200 + number;
  one.host_state = "runs";
  one.recorded = true;
  one.commands = 1000;
  one.commands_per_second = 1234.4;
  one.under_way = "blas.gemm";
  one.under_way_seconds = 0.0042;
  one.queues = {{1, 0.25}, {3, 0.875}};
  return one;
}

TEST(TopView, HasALineForEachRankAndAHeadingForEachJob) {
  auto ranks = std::vector{rank(1), rank(3), rank(0)};
  ranks[1].host_state = "is gone";
  ranks[1].active = false;
  ranks[2].job = "5";
  ranks[2].epoch = 0;
  ranks[2].active = false;
  ranks[2].recorded = false;
  ranks[2].commands_per_second = {};
  ranks[2].device = "";
  const auto text = to_text(ranks, "n01", "");
  for (const std::string part :
       {"n01, job 4711: troupe-heat --points 64\n  2 of 4 ranks here, since 12.0 s\n",
        "n01, job 5: ", "1 of 4 ranks here",
        "1234  88 %      2   1.5 GiB  runs, blas.gemm for 4.2 ms                   NVIDIA H200\n",
        "is gone; the world is formed again           NVIDIA H200\n",
        "runs, not recorded; the world forms          -\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TopView, SaysThatNothingRuns) {
  EXPECT_EQ(to_text({}, "n01", ""), "n01: no troupe job of this user runs here\n");
  EXPECT_EQ(to_text({}, "n01", "9"), "n01: job 9 does not run here\n");
}

TEST(TopView, HasAllOfItAsJson) {
  auto ranks = std::vector{rank(1), rank(2)};
  ranks[1].commands_per_second = {};
  ranks[1].under_way = "";
  ranks[1].command = "bad \xff bytes";
  const auto text = to_json(ranks, "n01");
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "it is one line";
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["host"], "n01");
  ASSERT_EQ(json["ranks"].size(), 2u);
  const auto& first = json["ranks"][0];
  EXPECT_EQ(first["commands_per_second"], 1234.4);
  EXPECT_EQ(first["queues"][1]["queue"], 3);
  EXPECT_EQ(first["queues"][1]["busy"], 0.875);
  EXPECT_EQ(first["under_way"], "blas.gemm");
  EXPECT_FALSE(json["ranks"][1].contains("commands_per_second"));
  EXPECT_FALSE(json["ranks"][1].contains("under_way"));
}

TEST(TopView, TakesThePlaceOfWhatATerminalShows) {
  EXPECT_EQ(on_terminal("first line\nb\n", 5), "\033[Hfirst\033[K\nb\033[K\n\033[J");
  EXPECT_EQ(on_terminal("", 5), "\033[H\033[J");
}

}  // namespace
}  // namespace troupe::top
