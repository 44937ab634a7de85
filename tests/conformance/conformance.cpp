#include "conformance.hpp"

namespace troupe::test {
namespace {

std::unique_ptr<DeviceRig> rig;

/// Ends the device before the libraries under it go.
class EndOfDevice : public ::testing::Environment {
 public:
  void TearDown() override { rig.reset(); }
};
[[maybe_unused]] const auto* const kEnd = ::testing::AddGlobalTestEnvironment(new EndOfDevice);

}  // namespace

Device& device() {
  if (!rig) rig = std::make_unique<DeviceRig>(std::vector<std::string>{"--standby", "off"});
  return rig->device();
}

}  // namespace troupe::test
