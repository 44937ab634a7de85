#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "job.hpp"

// troupe-top beside a job that runs. Other jobs may run on this machine: each test looks at its
// own.

namespace troupe::test {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int status = -1;
  std::string out;  ///< standard output, and standard error behind it
};

/// Runs troupe-top to its end.
Outcome top(const std::string& arguments) {
  Outcome outcome;
  std::FILE* pipe =
      ::popen((std::string(TROUPE_TEST_TOP) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char piece[4096];
  while (const auto length = std::fread(piece, 1, sizeof piece, pipe))
    outcome.out.append(piece, length);
  const int raw = ::pclose(pipe);
  if (WIFEXITED(raw)) outcome.status = WEXITSTATUS(raw);
  return outcome;
}

/// What it shows of the ranks of a job, by rank.
std::vector<Json> ranks_of(const Job& job, const std::string& arguments = "--interval 0.1") {
  const auto shown = top("--once --json " + arguments);
  EXPECT_EQ(shown.status, 0) << shown.out;
  const auto all = Json::parse(shown.out, nullptr, false);
  if (!all.is_object()) {
    ADD_FAILURE() << shown.out;
    return {};
  }
  const auto its = job.processes("troupe-heat");
  std::vector<Json> ranks;
  for (const auto& rank : all["ranks"]) {
    if (std::count(its.begin(), its.end(), rank["pid"].get<pid_t>()) != 0) ranks.push_back(rank);
  }
  return ranks;
}

/// Looks again and again, until all ranks are as they should be.
template <class Good>
std::vector<Json> await(const Job& job, std::size_t count, Good good) {
  const auto end = std::chrono::steady_clock::now() + 40s;
  for (;;) {
    auto ranks = ranks_of(job);
    if (ranks.size() == count && std::all_of(ranks.begin(), ranks.end(), good)) return ranks;
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "it stays at " << Json(ranks).dump() << job.err();
      return {};
    }
  }
}

bool runs(const Json& rank) {
  return rank["active"] == true && rank["host_state"] == "runs" &&
         rank.value("commands_per_second", 0.0) > 0;
}

/// Steps without an end.
const Arguments kEndless{"--points", "16", "--steps", "1000000000", "--log-level", "error"};

TEST(Top, ShowsTheRanksOfARunningJob) {
  const int count = ranks_here(2);
  Job job(count, kEndless);
  const auto ranks = await(job, static_cast<std::size_t>(count), runs);
  ASSERT_FALSE(ranks.empty());
  const auto hosts = job.processes("troupe-device");
  std::set<int> places;
  for (const auto& rank : ranks) {
    places.insert(rank["rank"].get<int>());
    EXPECT_EQ(rank["size"], count);
    EXPECT_EQ(rank["job"], ranks[0]["job"]);
    EXPECT_EQ(rank["epoch"], 1);
    EXPECT_EQ(rank["recoveries"], 0);
    EXPECT_NE(rank["command"].get<std::string>().find("--steps 1000000000"), std::string::npos);
    EXPECT_FALSE(rank["device"].get<std::string>().empty());
    // Two grids of 16^3 doubles, and two copies of one for commits.
    EXPECT_GE(rank["held_bytes"], 4 * 16 * 16 * 16 * 8);
    EXPECT_EQ(std::count(hosts.begin(), hosts.end(), rank["host_pid"].get<pid_t>()), 1);
    EXPECT_TRUE(rank["recorded"].get<bool>());
    EXPECT_FALSE(rank["queues"].empty());
    for (const auto& queue : rank["queues"]) {
      EXPECT_GE(queue["queue"], 1);
      EXPECT_GE(queue["busy"], 0);
      EXPECT_LE(queue["busy"], 1);
    }
    EXPECT_EQ(rank.value("under_way", "").find("operation 0x"), std::string::npos) << rank.dump();
  }
  EXPECT_EQ(places.size(), ranks.size());
  const auto name = ranks[0]["job"].get<std::string>();
  const auto shown = top("--once --interval 0.05 --job " + name);
  EXPECT_EQ(shown.status, 0);
  EXPECT_NE(shown.out.find("job " + name + ": "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find(std::to_string(count) + " of " + std::to_string(count) + " ranks here"),
            std::string::npos)
      << shown.out;
  EXPECT_EQ(shown.out.find('\033'), std::string::npos) << "it is no terminal";
  job.kill_all();
}

TEST(Top, ShowsThatADeviceHostIsReplaced) {
  const int count = ranks_here(2);
  Job job(count, kEndless);
  const auto before = await(job, static_cast<std::size_t>(count), runs);
  ASSERT_FALSE(before.empty());
  const auto killed = before.back()["host_pid"].get<pid_t>();
  ::kill(killed, SIGKILL);
  const auto after = await(job, static_cast<std::size_t>(count), [&](const Json& rank) {
    return runs(rank) && rank["recoveries"] == 1 && rank["epoch"].get<int>() > 1;
  });
  ASSERT_FALSE(after.empty());
  EXPECT_NE(after.back()["host_pid"], killed);
  job.kill_all();
}

TEST(Top, ShowsThatADeviceHostIsStopped) {
  // The job waits for it longer than this test needs to see it.
  Job job(1, kEndless + Arguments{"--heartbeat-timeout", "600s", "--phase-timeout", "700s",
                                  "--token-timeout", "700s"});
  const auto ranks = await(job, 1, runs);
  ASSERT_FALSE(ranks.empty());
  const auto host = ranks[0]["host_pid"].get<pid_t>();
  ::kill(host, SIGSTOP);
  await(job, 1, [](const Json& rank) { return rank["host_state"] == "is stopped"; });
  ::kill(host, SIGCONT);
  await(job, 1, runs);
  job.kill_all();
}

TEST(Top, EndsWithTheJobThatItIsAskedFor) {
  Job job(1, kEndless);
  const auto ranks = await(job, 1, runs);
  ASSERT_FALSE(ranks.empty());
  const Scratch scratch;
  const auto file = scratch.file("looks");
  Outcome outcome;
  std::thread beside([&] {
    outcome = top("--json --interval 0.02 --job " + ranks[0]["job"].get<std::string>() + " | tee " +
                  file.string());
  });
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (std::count_if(std::istreambuf_iterator<char>(std::ifstream(file).rdbuf()), {},
                       [](char c) { return c == '\n'; }) < 3 &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(10ms);
  job.kill_all();
  beside.join();
  EXPECT_EQ(outcome.status, 0);
  std::istringstream text(outcome.out);
  std::vector<std::size_t> counts;
  for (std::string line; std::getline(text, line);) {
    const auto look = Json::parse(line, nullptr, false);
    ASSERT_TRUE(look.is_object()) << line;
    counts.push_back(look["ranks"].size());
  }
  ASSERT_GE(counts.size(), 4u);
  EXPECT_EQ(counts.front(), 1u);
  EXPECT_EQ(counts.back(), 0u);
}

TEST(Top, SaysThatNothingRuns) {
  const auto text = top("--once --interval 0.01 --job none-such");
  EXPECT_EQ(text.status, 0);
  EXPECT_NE(text.out.find("job none-such does not run here"), std::string::npos) << text.out;
  const auto json = top("--once --interval 0.01 --job none-such --json");
  EXPECT_EQ(json.status, 0);
  EXPECT_EQ(Json::parse(json.out, nullptr, false).value("ranks", Json()), Json::array());
}

TEST(Top, SaysWhatItDoesNotTake) {
  const std::pair<std::string, std::string> cases[] = {
      {"--interval 0", "--interval wants seconds, from 0.01 to 3600"},
      {"--interval -1", "--interval"},
      {"--interval soon", "interval"},
      {"--interval nan", "--interval wants seconds"},
      {"--every 1", "--every"},
      {"stray", "too many positional options"},
      {"--job", "--job"}};
  for (const auto& [arguments, word] : cases) {
    const auto refused = top(arguments + " --once");
    EXPECT_EQ(refused.status, 2) << arguments;
    EXPECT_TRUE(refused.out.starts_with("troupe-top: ")) << refused.out;
    EXPECT_NE(refused.out.find(word), std::string::npos) << refused.out;
    EXPECT_EQ(std::count(refused.out.begin(), refused.out.end(), '\n'), 1) << refused.out;
  }
}

}  // namespace
}  // namespace troupe::test
