#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "device_rig.hpp"

// What the flight recorder of a device leaves behind when its device host dies, and when it is
// asked.

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class FlightDump : public ::testing::Test {
 protected:
  FlightDump() {
    char name[] = "/tmp/troupe-flight-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~FlightDump() override { fs::remove_all(folder_); }

  /// The dump whose reason begins like this, once it is there.
  json await(const std::string& reason) const {
    const auto path = folder_ / ("troupe-flight." + std::to_string(::getpid()) + ".0.json");
    json dump;
    EXPECT_TRUE(eventually([&] {
      std::ifstream file(path);
      dump = json::parse(file, nullptr, false);
      return dump.is_object() && dump.at("reason").get<std::string>().starts_with(reason);
    })) << reason;
    return dump;
  }
  /// The records of one operation, in order.
  static std::vector<json> of(const json& dump, const std::string& operation) {
    std::vector<json> found;
    for (const auto& record : dump.at("records")) {
      if (record.at("op") == operation) found.push_back(record);
    }
    return found;
  }

  fs::path folder_;
};

TEST_F(FlightDump, AfterADeathShowsWhatLedToIt) {
  folder_ /= "made-when-needed";
  DeviceRig rig({"--flight-dir", folder_.string()});
  EXPECT_FALSE(fs::exists(folder_)) << "nothing has happened yet";
  auto& device = rig.device();
  const auto x = device.alloc<double>(1000);
  device.fill(x, 1.0).get();
  const auto ordered = device.inject(memory::FaultKind::kill);
  const auto behind = device.fill(x, 2.0);
  ASSERT_TRUE(all_resolved({ordered, behind}));
  const auto dump = await("fault");
  const auto fills = of(dump, "memory.fill"), faults = of(dump, "memory.fault");
  ASSERT_GE(fills.size(), 1u);
  EXPECT_EQ(fills[0].at("bytes"), 8000);
  EXPECT_LE(fills[0].at("submitted_ns"), fills[0].at("issued_ns"));
  EXPECT_LE(fills[0].at("issued_ns"), fills[0].at("completed_ns"));
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_TRUE(faults[0].contains("issued_ns")) << "the dead host's own word is kept";
  EXPECT_FALSE(faults[0].contains("completed_ns"));
  EXPECT_EQ(not_working(device), "");
  folder_ = folder_.parent_path();
}

TEST_F(FlightDump, OnASignal) {
  DeviceRig rig({"--flight-dir", folder_.string(), "--flight-records", "64"});
  auto& device = rig.device();
  const auto x = device.alloc<double>(1000);
  for (int i = 0; i < 100; ++i) device.fill(x, 1.0);
  device.nop().get();  // which waits for nobody
  (void)device.download(x);
  const auto old = active_host();
  ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
  const auto dump = await("SIGUSR2");
  EXPECT_EQ(dump.at("records").size(), 64u);
  EXPECT_EQ(of(dump, "memory.nop").size(), 1u);
  for (const auto& record : of(dump, "memory.fill"))
    EXPECT_TRUE(record.contains("completed_ns")) << record;
  ::kill(old, SIGUSR2);  // a whole job gets it, device hosts too
  EXPECT_EQ(not_working(device), "");
  EXPECT_EQ(active_host(), old);
}

// A folder in which others can write too, such as /tmp: what they leave there is not followed.
TEST_F(FlightDump, FollowsNoLinks) {
  const auto name = "troupe-flight." + std::to_string(::getpid()) + ".0.json";
  const auto precious = folder_ / "precious";
  std::ofstream(precious) << "mine";
  for (const auto* ending : {"", ".part"}) fs::create_symlink(precious, folder_ / (name + ending));
  DeviceRig rig({"--flight-dir", folder_.string()});
  ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
  ASSERT_TRUE(eventually([&] { return !fs::is_symlink(folder_ / name); }));
  EXPECT_EQ(await("SIGUSR2").at("rank"), 0);
  std::string contents;
  std::ifstream(precious) >> contents;
  EXPECT_EQ(contents, "mine");
}

TEST_F(FlightDump, NoneMeansNone) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  {
    DeviceRig rig({"--flight-dir", "none"});
    const auto old = active_host();
    ASSERT_TRUE(kill_active());
    ASSERT_TRUE(replaced(old));
  }
  fs::current_path(before);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace troupe::test
