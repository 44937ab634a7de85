#include <gtest/gtest.h>

#include <sstream>

#include <nlohmann/json.hpp>

#include "job.hpp"

// What troupe-info tells.

namespace troupe::test {
namespace {

TEST(Info, TellsWhichFilesAndVersionsOfLibrariesEachRankLoads) {
  const Scratch scratch;
  const auto file = scratch.file("info.json");
  const int ranks = ranks_here(2);
  Job job(ranks, {"--standby", "off", "--json", file.string()});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto all = nlohmann::json::parse(read_file(file));
  ASSERT_EQ(all["ranks"].size(), static_cast<std::size_t>(ranks));
  for (const auto& rank : all["ranks"]) {
    std::vector<std::string> names;
    for (const auto& library : rank["libraries"]) {
      const auto name = library["library"].get<std::string>();
      names.push_back(name);
      if (library.contains("error")) {
        EXPECT_NE(library["error"].get<std::string>().find("not installed"), std::string::npos);
        continue;
      }
      for (const auto& loaded : library["stands_on"]) {
        const auto version = loaded["version"].get<std::string>();
        EXPECT_FALSE(version.empty()) << name;
        const auto from = loaded["file"].get<std::string>();
        const bool nowhere = version == "not installed" || version.starts_with("own ");
        EXPECT_EQ(from.empty(), nowhere) << loaded.dump();
        EXPECT_TRUE(nowhere || fs::exists(from)) << loaded.dump();
        EXPECT_NE(job.out().find(version + "  " + from), std::string::npos) << job.out();
      }
    }
    for (const auto* name :
         {"engine", "blas", "dnn", "fft", "primitives", "rng", "solver", "sparse", "vector"})
      EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  EXPECT_EQ(job.err().find("is not the same version"), std::string::npos) << job.err();
  EXPECT_TRUE(job.nothing_left());
}

TEST(Info, TellsWhatGpusSayOfTheirHealth) {
  const Scratch scratch;
  const auto file = scratch.file("info.json");
  Job job(1, {"--standby", "off", "--json", file.string()});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto health = nlohmann::json::parse(read_file(file))["ranks"][0]["device"]["health"];
  if (!on_cuda()) {
    EXPECT_TRUE(health.empty()) << health.dump();
    EXPECT_EQ(job.out().find("health:"), std::string::npos) << job.out();
    return;
  }
  EXPECT_GT(health.value("temperature_celsius", 0), 0) << health.dump();
  EXPECT_TRUE(health.contains("uncorrected_errors")) << health.dump();
  EXPECT_NE(job.out().find("health: "), std::string::npos) << job.out();
}

TEST(Info, TellsWhatEachEngineComputesOperationsIn) {
  const Scratch scratch;
  const auto file = scratch.file("operations.json");
  Job job(1, {"--standby", "off", "--operations", "--json", file.string()});
  ASSERT_EQ(job.wait(), 0) << job.out() << job.err();
  const auto all = nlohmann::json::parse(read_file(file));
  const auto numbers = nlohmann::json::array({"f32", "f64", "c64", "c128"});
  EXPECT_EQ(all["sparse.spmv"], nlohmann::json({{"cpu", numbers}, {"cuda", numbers}}));
  EXPECT_TRUE(all["solver.sytri"]["cuda"].empty());
  EXPECT_EQ(all["solver.sytri"]["cpu"], all["solver.sytrs"]["cuda"]);
  std::istringstream lines(job.out());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto name = line.substr(0, line.find(' '));
    EXPECT_TRUE(count == 0 || all.contains(name)) << line;
    if (name != "solver.sytri") continue;
    EXPECT_TRUE(line.ends_with("  unsupported")) << line;
  }
  EXPECT_EQ(count, all.size() + 1);
}

}  // namespace
}  // namespace troupe::test
