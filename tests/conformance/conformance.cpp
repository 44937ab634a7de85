#include "conformance.hpp"

namespace troupe::test {
namespace {

std::unique_ptr<DeviceRig> rig;

/// A test that provokes errors need not read all of them: they are no business of the next one.
class ErrorsOfOneTest : public ::testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const ::testing::TestInfo&) override {
    if (rig) (void)rig->device().take_error();
  }
};

/// Ends the device before the libraries under it go.
class Surroundings : public ::testing::Environment {
 public:
  void SetUp() override {
    ::testing::UnitTest::GetInstance()->listeners().Append(new ErrorsOfOneTest);
  }
  void TearDown() override { rig.reset(); }
};
[[maybe_unused]] const auto* const kAll = ::testing::AddGlobalTestEnvironment(new Surroundings);

}  // namespace

Device& device() {
  if (!rig) rig = std::make_unique<DeviceRig>(std::vector<std::string>{"--standby", "off"});
  return rig->device();
}

}  // namespace troupe::test
