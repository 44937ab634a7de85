// Parts of a trace, and the trace that is made of them: read again as JSON.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include <troupe/trace.hpp>

#include "common/trace/part.hpp"

namespace troupe::trace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Trace : public ::testing::Test {
 protected:
  Trace() {
    char name[] = "/tmp/troupe-trace-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Trace() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::unique_ptr<PartWriter> part(int rank, int size = 2,
                                                 const std::string& job = "unit",
                                                 std::int64_t offset = 0) const {
    return PartWriter::create(path("part." + std::to_string(rank)),
                              {job, "node" + std::to_string(rank), rank, size, offset, 1000})
        .take();
  }
  Json merged(int ranks) {
    std::vector<std::string> parts;
    for (int rank = 0; rank < ranks; ++rank) parts.push_back(path("part." + std::to_string(rank)));
    summary_ = merge_trace(parts, path("trace.json")).take();
    std::ifstream file(path("trace.json"));
    return Json::parse(file);
  }
  static std::vector<Json> events(const Json& trace, const std::string& phase,
                                  const std::string& category) {
    std::vector<Json> found;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("ph") == phase && event.value("cat", "") == category) found.push_back(event);
    }
    return found;
  }

  fs::path folder_;
  TraceSummary summary_;
};

TEST_F(Trace, IsNotWrittenThroughALink) {
  std::ofstream(path("precious")) << "as it was";
  for (const std::string name : {"part.0", "trace.json.draft"})
    fs::create_symlink(path("precious"), path(name));
  const Head head{.job = "unit", .host = "node0"};
  const auto refused = PartWriter::create(path("part.0"), head);
  EXPECT_EQ(refused.code(), Errc::invalid);
  EXPECT_EQ(refused.error().message, path("part.0") + " is not used: it is a symbolic link");
  fs::remove(path("part.0"));
  part(0, 1)->flush();
  EXPECT_EQ(merge_trace({path("part.0")}, path("trace.json")).code(), Errc::invalid);
  std::string text;
  std::getline(std::ifstream(path("precious")), text);
  EXPECT_EQ(text, "as it was");
}

Command command(PartWriter& part, std::uint64_t ticket, std::int64_t submitted) {
  return {.ticket = ticket,
          .bytes = 64,
          .submitted = submitted,
          .issued = submitted + 100,
          .completed = submitted + 1000,
          .name = part.name("blas.gemm"),
          .queue = 3};
}

Command collective(PartWriter& part, std::uint64_t ticket, std::int64_t submitted,
                   std::uint32_t number) {
  auto one = command(part, ticket, submitted);
  one.name = part.name("collective.all_reduce");
  one.epoch = 1;
  one.collective = number;
  one.queue = 1;
  return one;
}

/// On each thread slices hold one another or lie apart.
void expect_nested(const Json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double begin = event.at("ts"), length = event.at("dur");
    EXPECT_GE(length, 0);
    threads[{event.at("pid"), event.at("tid")}].emplace_back(begin, begin + length);
  }
  constexpr double kRounding = 1e-4;  // of microseconds with three decimals
  for (const auto& [thread, slices] : threads) {
    for (const auto& a : slices) {
      for (const auto& b : slices) {
        const bool overlap_in_part = a.first < b.first - kRounding &&
                                     b.first < a.second - kRounding &&
                                     a.second < b.second - kRounding;
        EXPECT_FALSE(overlap_in_part)
            << a.first << ".." << a.second << " and " << b.first << ".." << b.second;
      }
    }
  }
}

TEST_F(Trace, HasEachCommandOnce) {
  for (int rank = 0; rank < 2; ++rank) {
    const auto part = this->part(rank);
    for (std::uint64_t ticket = 1; ticket <= 50; ++ticket) {
      auto one = command(*part, ticket, 5000 + 10 * static_cast<std::int64_t>(ticket));
      if (ticket % 10 == 0) one.completed = 0;               // lost with its device host
      if (ticket % 25 == 0) one.issued = one.completed = 0;  // never issued
      part->add(one);
    }
    part->flush();
  }
  const auto trace = merged(2);
  EXPECT_EQ(summary_.commands, 100u);
  EXPECT_EQ(summary_.ranks, 2);
  std::map<int, std::set<int>> submitted;
  for (const auto& event : events(trace, "i", "submit"))
    EXPECT_TRUE(submitted[event.at("pid")].insert(event.at("args").at("ticket").get<int>()).second);
  ASSERT_EQ(submitted.size(), 2u);
  for (const auto& [pid, tickets] : submitted) EXPECT_EQ(tickets.size(), 50u);
  EXPECT_EQ(events(trace, "X", "execute").size(), 2u * 44);
  EXPECT_EQ(events(trace, "i", "lost").size(), 2u * 4);
  EXPECT_EQ(events(trace, "b", "queue").size(), 2u * 48);
  EXPECT_EQ(events(trace, "e", "queue").size(), 2u * 48);
  expect_nested(trace);
}

TEST_F(Trace, DrawsOneChainOfArrowsForEachCollective) {
  for (int rank = 0; rank < 3; ++rank) {
    const auto part = this->part(rank, 3);
    const auto late = static_cast<std::uint32_t>(rank);
    for (std::uint32_t number = 1; number <= 20; ++number)
      part->add(
          collective(*part, number, 5000 + 2000 * number + 100 * ((late + number) % 3), number));
    if (rank == 2) part->add(collective(*part, 21, 90000, 21));  // it alone has this one
    part->flush();
  }
  const auto trace = merged(3);
  EXPECT_EQ(summary_.arrows, 2u * 20);
  struct Chain {
    std::vector<double> begins, steps, ends;
  };
  std::map<std::uint64_t, Chain> chains;
  for (const auto& event : events(trace, "s", "collective"))
    chains[event.at("id")].begins.push_back(event.at("ts"));
  for (const auto& event : events(trace, "t", "collective"))
    chains[event.at("id")].steps.push_back(event.at("ts"));
  for (const auto& event : events(trace, "f", "collective"))
    chains[event.at("id")].ends.push_back(event.at("ts"));
  EXPECT_EQ(chains.size(), 20u);
  for (const auto& [id, chain] : chains) {
    ASSERT_EQ(chain.begins.size(), 1u);
    ASSERT_EQ(chain.steps.size(), 1u);
    ASSERT_EQ(chain.ends.size(), 1u);
    EXPECT_LT(chain.begins[0], chain.steps[0]);
    EXPECT_LT(chain.steps[0], chain.ends[0]);
  }
}

TEST_F(Trace, NamesTheSameGroupOfDifferentEpochsApart) {
  for (int rank = 0; rank < 2; ++rank) {
    const auto part = this->part(rank);
    auto one = collective(*part, 1, 5000, 1);
    part->add(one);
    one.epoch = 2, one.ticket = 2, one.submitted += 5000, one.issued += 5000, one.completed += 5000;
    part->add(one);
    one.group = 4, one.ticket = 3, one.submitted += 5000, one.issued += 5000, one.completed += 5000;
    part->add(one);
    part->flush();
  }
  std::set<std::uint64_t> ids;
  for (const auto& event : events(merged(2), "s", "collective"))
    ids.insert(event.at("id").get<std::uint64_t>());
  EXPECT_EQ(ids.size(), 3u);
}

TEST_F(Trace, NestsWhatOneQueueDidTogether) {
  const auto part = this->part(0, 1);
  // Found done together; then one that was issued before that and ended later; then one that ended
  // before it, as after a death.
  for (std::uint64_t ticket = 1; ticket <= 4; ++ticket) {
    auto one = command(*part, ticket, 5000 + 10 * static_cast<std::int64_t>(ticket));
    one.completed = 9000;
    part->add(one);
  }
  auto late = command(*part, 5, 6000);
  late.completed = 12000;
  part->add(late);
  auto early = command(*part, 6, 7000);
  early.completed = 8000;
  part->add(early);
  part->flush();
  const auto trace = merged(1);
  EXPECT_EQ(events(trace, "X", "execute").size(), 6u);
  expect_nested(trace);
}

TEST_F(Trace, NestsPhasesInTheirRecovery) {
  const auto part = this->part(0, 1);
  part->add(Span{2000, 3000, SpanKind::phase, 0}, "halt");
  part->add(Span{3000, 4500, SpanKind::phase, 0}, "quiesce");
  part->add(Span{1500, 4500, SpanKind::recovery, 0}, "recovery: rank 0 (kill), epoch 2");
  part->add(Span{5000, 6000, SpanKind::commit, 0}, "commit of step 3");
  part->flush();
  const auto trace = merged(1);
  EXPECT_EQ(summary_.recoveries, 1u);
  const auto recoveries = events(trace, "X", "recovery");
  const auto phases = events(trace, "X", "phase");
  ASSERT_EQ(recoveries.size(), 2u);  // of the rank and of the world
  ASSERT_EQ(phases.size(), 4u);
  EXPECT_EQ(events(trace, "X", "commit").size(), 2u);
  for (const auto& phase : phases) {
    const auto its = std::find_if(recoveries.begin(), recoveries.end(), [&](const Json& one) {
      return one.at("pid") == phase.at("pid") && one.at("tid") == phase.at("tid");
    });
    ASSERT_NE(its, recoveries.end());
    EXPECT_GE(phase.at("ts").get<double>(), its->at("ts").get<double>());
    EXPECT_LE(phase.at("ts").get<double>() + phase.at("dur").get<double>(),
              its->at("ts").get<double>() + its->at("dur").get<double>() + 1e-4);
  }
  expect_nested(trace);
}

TEST_F(Trace, HasWhatAGpuSaidOfItsHealthOnATrackOfItsRank) {
  const auto part = this->part(0, 1);
  part->add(command(*part, 1, 2000));
  part->add(Span{3000, 3000, SpanKind::health, 0}, "Xid 94: \"contained\" (failing)");
  part->flush();
  const auto trace = merged(1);
  const auto said = events(trace, "i", "health");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].at("name"), "Xid 94: \"contained\" (failing)");
  EXPECT_EQ(said[0].at("pid"), events(trace, "i", "submit").at(0).at("pid"));
  EXPECT_EQ(summary_.recoveries, 0u);
}

TEST_F(Trace, PutsGpuWorkOfOneStreamApart) {
  const auto part = this->part(0, 1);
  part->add(Activity{1, 5000, 7000, 7, 0}, "void \"gemm\"<float>");
  part->add(Activity{2, 6000, 8000, 7, 0}, "memcpy");  // of a graph's branches
  part->add(Activity{3, 7000, 7500, 7, 0}, "memset");
  part->flush();
  const auto trace = merged(1);
  const auto activities = events(trace, "X", "gpu");
  ASSERT_EQ(activities.size(), 3u);
  EXPECT_EQ(activities[0].at("name"), "void \"gemm\"<float>");
  EXPECT_NE(activities[0].at("tid"), activities[1].at("tid"));
  expect_nested(trace);
}

TEST_F(Trace, IsOnRank0sClock) {
  for (int rank = 0; rank < 2; ++rank) {
    // The clock of rank 1's node is 1 s behind at the time 1000, and 1 s and 200 ns at 201000.
    const auto part = this->part(rank, 2, "unit", rank == 0 ? 0 : 1'000'000'000);
    if (rank == 1) part->add(Clock{201000, 1'000'000'200});
    part->add(command(*part, 1, rank == 0 ? 1'000'101'100 : 101'000));
    part->flush();
  }
  std::vector<double> times;
  for (const auto& event : events(merged(2), "i", "submit")) times.push_back(event.at("ts"));
  ASSERT_EQ(times.size(), 2u);
  EXPECT_NEAR(times[0], times[1], 1e-3);
}

TEST_F(Trace, SaysWhatIsMissing) {
  const auto part = this->part(0, 1);
  part->add(Counts{10, 3, 0});
  part->add(Counts{20, 4, 2});
  part->flush();
  const auto trace = merged(1);
  EXPECT_EQ(summary_.lost, 6u);
  EXPECT_EQ(trace.at("otherData").at("lost"), 6);
  EXPECT_NE(trace.dump().find("4 commands and 2 GPU activities are missing"), std::string::npos);
}

TEST_F(Trace, TakesAPartThatWasCutOff) {
  const auto part = this->part(0, 1);
  for (std::uint64_t ticket = 1; ticket <= 3; ++ticket)
    part->add(command(*part, ticket, 5000 + 2000 * static_cast<std::int64_t>(ticket)));
  part->flush();
  fs::resize_file(path("part.0"), fs::file_size(path("part.0")) - 5);
  merged(1);
  EXPECT_EQ(summary_.commands, 2u);
}

TEST_F(Trace, RefusesWhatDoesNotBelongTogether) {
  (void)part(0), (void)part(1, 3), (void)part(2, 2, "other");
  std::ofstream(path("text")) << "no part\n";
  const auto merge = [&](const std::vector<std::string>& parts) {
    return merge_trace(parts, path("trace.json"));
  };
  EXPECT_EQ(merge({path("part.0"), path("none")}).code(), Errc::io);
  EXPECT_EQ(merge({path("text")}).code(), Errc::invalid);
  EXPECT_EQ(merge({path("part.0"), path("part.1")}).code(), Errc::invalid);
  EXPECT_EQ(merge({path("part.0"), path("part.0")}).code(), Errc::invalid);
  EXPECT_EQ(merge_trace({path("part.0")}, path("none/trace.json")).code(), Errc::io);
  EXPECT_FALSE(fs::exists(path("trace.json")));
}

TEST_F(Trace, RefusesFramesThatCannotBe) {
  (void)part(0, 1);
  {
    std::ofstream file(path("part.0"), std::ios::app | std::ios::binary);
    const FrameHead head{FrameKind::command, 4};
    file.write(reinterpret_cast<const char*>(&head), sizeof head);
    file << "abcd";
  }
  EXPECT_EQ(merge_trace({path("part.0")}, path("trace.json")).code(), Errc::invalid);
}

TEST_F(Trace, APartThatCannotBeWrittenIsOneError) {
  std::ofstream(path("file")) << "in the way";
  const auto made = PartWriter::create(path("file/part"), {"unit", "node", 0, 1, 0, 0});
  EXPECT_EQ(made.code(), Errc::io);
}

}  // namespace
}  // namespace troupe::trace
