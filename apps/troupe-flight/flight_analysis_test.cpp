// troupe-flight's reading of dumps: who waited for whom, and what is no dump.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis.hpp"
#include "report.hpp"

namespace troupe::flight {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What one rank has done: operations one after the other, a millisecond apart.
class Rank {
 public:
  Rank(int rank, int size, std::int64_t offset_ns = 0)
      : json_{{"troupe_flight", 1},
              {"job", "1"},
              {"rank", rank},
              {"size", size},
              {"host", "node"},
              {"pid", 7},
              {"reason", "x"},
              {"time_ns", 1'000'000'000},
              {"clock_offset_ns", offset_ns},
              {"epoch", 0},
              {"collectives", 0},
              {"records", json::array()}} {}

  enum class How { submitted, issued, completed };
  Rank& local(How how = How::completed) { return add("blas.axpy", how, {}); }
  Rank& collective(How how = How::completed, const std::string& name = "collective.all_reduce",
                   std::uint64_t count = 8, std::uint32_t epoch = 2) {
    const std::uint32_t number =
        json_["epoch"] == epoch ? json_["collectives"].get<std::uint32_t>() + 1 : 1;
    json_["epoch"] = epoch;
    json_["collectives"] = number;
    return add(name, how, {{"epoch", epoch}, {"collective", number}, {"count", count}});
  }
  Rank& of_group(std::uint32_t group, std::uint32_t number, How how) {
    return add("collective.all_reduce", how,
               {{"epoch", 2}, {"group", group}, {"collective", number}, {"count", 8}});
  }
  Rank& said(const json& of_health) {
    json_["health"].push_back(of_health);
    return *this;
  }
  /// The ring of records has gone over all that was so far.
  Rank& forget() {
    json_["records"] = json::array();
    return *this;
  }
  [[nodiscard]] const json& dump() const { return json_; }

 private:
  Rank& add(const std::string& name, How how, json extra) {
    const auto time = 1'000'000 * ++ticket_;
    extra.update({{"ticket", ticket_}, {"op", name}, {"bytes", 64}, {"submitted_ns", time}});
    if (how != How::submitted) extra["issued_ns"] = time + 1000;
    if (how == How::completed) extra["completed_ns"] = time + 2000;
    json_["records"].push_back(extra);
    return *this;
  }

  json json_;
  std::int64_t ticket_ = 0;
};
using How = Rank::How;

class Flight : public ::testing::Test {
 protected:
  Flight() {
    char name[] = "/tmp/troupe-flight-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~Flight() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  /// Reads what these ranks have dumped.
  const Analysis& analyse(const std::vector<Rank>& ranks) {
    std::vector<std::string> files;
    for (const auto& rank : ranks)
      files.push_back(write(std::to_string(files.size()), rank.dump().dump()));
    dumps_ = read_dumps(files).take();
    analysis_ = flight::analyse(dumps_);
    return analysis_;
  }

  fs::path folder_;
  std::vector<Dump> dumps_;
  Analysis analysis_;
};

TEST_F(Flight, TheRankThatHasNotSubmitted) {
  const auto& found = analyse({Rank(0, 3).collective().collective(How::issued),
                               Rank(1, 3).collective().local().local(How::issued),
                               Rank(2, 3).collective().collective(How::issued)});
  EXPECT_EQ(found.epoch, 2u);
  EXPECT_EQ(found.collective, 2u);
  EXPECT_EQ(found.operation, "collective.all_reduce");
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 1);
  EXPECT_EQ(found.culprits[0].stand, Stand::not_submitted);
  ASSERT_NE(found.culprits[0].at, nullptr);
  EXPECT_EQ(found.culprits[0].at->ticket, 3u) << "the operation that it is at";
  EXPECT_EQ(found.waiting, (std::vector<int>{0, 2}));
}

TEST_F(Flight, TheRankWhoseHostHasNotIssued) {
  const auto& found = analyse({Rank(0, 2).collective(How::issued),
                               Rank(1, 2).local(How::issued).collective(How::submitted)});
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 1);
  EXPECT_EQ(found.culprits[0].stand, Stand::not_issued);
  EXPECT_EQ(found.culprits[0].at->name, "blas.axpy");
}

TEST_F(Flight, TheRankThatHasNotCompleted) {
  const auto& found = analyse(
      {Rank(0, 3).collective(), Rank(1, 3).collective(), Rank(2, 3).collective(How::issued)});
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 2);
  EXPECT_EQ(found.culprits[0].stand, Stand::not_completed);
}

TEST_F(Flight, TheRankThatCallsSomethingElse) {
  const auto& found =
      analyse({Rank(0, 3).collective(How::issued), Rank(1, 3).collective(How::issued),
               Rank(2, 3).collective(How::issued, "collective.broadcast")});
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 2);
  EXPECT_EQ(found.culprits[0].stand, Stand::other_call);
  const auto& length =
      analyse({Rank(0, 3).collective(How::issued, "collective.all_reduce", 9),
               Rank(1, 3).collective(How::issued), Rank(2, 3).collective(How::issued)});
  ASSERT_EQ(length.culprits.size(), 1u);
  EXPECT_EQ(length.culprits[0].rank, 0);
}

TEST_F(Flight, NobodyIsNamedWhereAllAreInTheSame) {
  const auto& found =
      analyse({Rank(0, 2).collective(How::issued), Rank(1, 2).collective(How::issued)});
  EXPECT_EQ(found.collective, 1u);
  EXPECT_TRUE(found.culprits.empty());
  EXPECT_EQ(found.waiting, (std::vector<int>{0, 1}));
}

TEST_F(Flight, NoBreakWhereAllIsCompleted) {
  const auto& found =
      analyse({Rank(0, 2).collective().local(How::issued), Rank(1, 2).collective()});
  EXPECT_EQ(found.collective, 0u);
  ASSERT_EQ(found.unfinished.size(), 2u);
  ASSERT_NE(found.unfinished[0], nullptr);
  EXPECT_EQ(found.unfinished[0]->name, "blas.axpy");
  EXPECT_EQ(found.unfinished[1], nullptr);
}

TEST_F(Flight, TheNewestEpochCounts) {
  // Epoch 2 ended with a collective that nobody completed; epoch 5 began, and rank 0 is not there.
  const auto reduce = "collective.all_reduce";
  const auto& found =
      analyse({Rank(0, 2).collective(How::issued),
               Rank(1, 2).collective(How::issued).collective(How::issued, reduce, 8, 5)});
  EXPECT_EQ(found.epoch, 5u);
  EXPECT_EQ(found.collective, 1u);
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 0);
}

TEST_F(Flight, WhatHasLeftTheRecordsIsNotMissing) {
  Rank busy(1, 2);
  busy.collective().collective().forget().local().local();
  const auto& even = analyse({Rank(0, 2).collective().collective(), busy});
  EXPECT_EQ(even.collective, 0u);
  const auto& behind =
      analyse({Rank(0, 2).collective().collective().collective(How::issued), busy});
  EXPECT_EQ(behind.collective, 3u);
  ASSERT_EQ(behind.culprits.size(), 1u);
  EXPECT_EQ(behind.culprits[0].rank, 1);
}

TEST_F(Flight, CollectivesOfGroupsAreNotTheWorlds) {
  const auto& found = analyse({Rank(0, 2).of_group(3, 1, How::issued).collective(How::issued),
                               Rank(1, 2).of_group(4, 1, How::completed).local(How::issued)});
  EXPECT_EQ(found.collective, 1u);
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].rank, 1);
  EXPECT_EQ(found.culprits[0].stand, Stand::not_submitted);
  ASSERT_NE(found.unfinished[0], nullptr);
  EXPECT_EQ(found.unfinished[0]->group, 3u);
  const auto text = to_text(dumps_, found, 10);
  EXPECT_NE(text.find(" 2.g3.1 "), std::string::npos) << text;
  EXPECT_NE(text.find(" 2.g4.1 "), std::string::npos) << text;
}

TEST_F(Flight, RanksWithoutADumpAreNamed) {
  const auto& found = analyse({Rank(0, 4).collective(), Rank(2, 4).collective()});
  EXPECT_EQ(found.no_dump, (std::vector<int>{1, 3}));
}

TEST_F(Flight, TimesAreOnOneClock) {
  analyse({Rank(0, 2).local(), Rank(1, 2, 250).local()});
  EXPECT_EQ(dumps_[1].operations[0].submitted_ns, dumps_[0].operations[0].submitted_ns + 250);
  EXPECT_EQ(dumps_[1].time_ns, dumps_[0].time_ns + 250);
}

TEST_F(Flight, WhatAGpuSaidOfItsHealthIsShown) {
  Rank rank(1, 2, 250);
  const json said{{"time_ns", 988'000'000},
                  {"kind", "remapping"},
                  {"text", "Xid 64: a row of memory cannot be replaced"},
                  {"failing", true}};
  const auto& found = analyse({Rank(0, 2).local(), rank.local().said(said)});
  ASSERT_EQ(dumps_[1].health.size(), 1u);
  EXPECT_TRUE(dumps_[0].health.empty());
  EXPECT_EQ(dumps_[1].health[0].time_ns, 988'000'250);
  const auto text = to_text(dumps_, found, 10);
  EXPECT_NE(text.find("    its GPU said, 12.000 ms before the dump: Xid 64: a row of memory cannot "
                      "be replaced (failing)\n"),
            std::string::npos)
      << text;
  const auto told = json::parse(to_json(dumps_, found, 10)).at("ranks").at(1).at("health").at(0);
  EXPECT_EQ(told.at("text"), said.at("text"));
  EXPECT_EQ(told.at("failing"), true);
}

TEST_F(Flight, WhatIsNoDumpIsAnError) {
  const auto good = Rank(0, 2).local().dump();
  EXPECT_EQ(read_dump((folder_ / "none").string()).code(), Errc::io);
  const auto refused = [&](const std::string& text) {
    return read_dump(write("bad", text)).code() == Errc::invalid;
  };
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("[1, 2]"));
  EXPECT_TRUE(refused("{}"));
  EXPECT_TRUE(refused(good.dump().substr(0, good.dump().size() / 2)));
  for (const auto* key : {"rank", "size", "records", "clock_offset_ns", "job"}) {
    auto bad = good;
    bad.erase(key);
    EXPECT_TRUE(refused(bad.dump())) << "without " << key;
    bad[key] = json::object({{"no", "number"}});
    EXPECT_TRUE(refused(bad.dump())) << key << " of the wrong type";
  }
  auto outside = good;
  outside["rank"] = 2;
  EXPECT_TRUE(refused(outside.dump()));
  auto other = Rank(1, 2).local().dump();
  other["job"] = "2";
  EXPECT_EQ(read_dumps({write("a", good.dump()), write("b", other.dump())}).code(), Errc::invalid);
  EXPECT_EQ(read_dumps({write("a", good.dump()), write("b", good.dump())}).code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::flight
