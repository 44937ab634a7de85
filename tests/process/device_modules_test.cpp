#include <gtest/gtest.h>

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <filesystem>
#include <string>
#include <vector>

#include "device_rig.hpp"
#include "rank/device/host/host_link.hpp"

// What a device host loads, and what that leaves behind.

namespace troupe::test {
namespace {

TEST(NamesInSharedMemory, GoWithAHostThatIsKilled) {
  const UniqueFd flight(::memfd_create("flight", MFD_CLOEXEC));
  rank_process::HostLaunch launch;
  launch.program = TROUPE_TEST_DEVICE_HOST;
  launch.module = TROUPE_TEST_SHM_MODULE;
  launch.flight_fd = flight.get();
  const auto link = rank_process::HostLink::create(launch, 1);
  ASSERT_TRUE(link.ok());
  ASSERT_TRUE((*link)->spawn(false).ok());
  pollfd end{(*link)->pidfd(), POLLIN, 0};
  ASSERT_EQ(::poll(&end, 1, 30'000), 1);
  EXPECT_EQ((*link)->try_reap().value_or("not reaped"), "killed by signal 9");
  const auto names = (*link)->header().shm_names.paths();
  ASSERT_EQ(names.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(names.front())) << names.front();
}

/// A folder with the device host and all that it loads, but for one library.
class IncompleteInstallation {
 public:
  explicit IncompleteInstallation(const std::string& without) {
    char name[] = "/tmp/troupe-libexec-XXXXXX";
    folder_ = ::mkdtemp(name);
    const auto installed = std::filesystem::path(TROUPE_TEST_DEVICE_HOST).parent_path();
    for (const auto& file : std::filesystem::directory_iterator(installed)) {
      if (file.path().filename() != without)
        std::filesystem::copy(file, folder_ / file.path().filename());
    }
  }
  ~IncompleteInstallation() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string device_host() const { return folder_ / "troupe-device-host"; }

 private:
  std::filesystem::path folder_;
};

TEST(Libraries, OneThatIsNotInstalledIsMissedWhereItIsUsed) {
  const IncompleteInstallation installation("troupe-blas-" + engine() + ".so");
  DeviceRig rig({"--device-host", installation.device_host()});
  auto& device = rig.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4), z = device.alloc<double>(4);
  device.fill(x, 2.0), device.fill(y, 3.0), device.fill(z, 4.0);
  const auto missed = device.blas().axpy(1.0, x, z).wait();
  EXPECT_EQ(missed.code(), Errc::unsupported);
  EXPECT_NE(missed.error().message.find("blas: not installed"), std::string::npos)
      << missed.error().message;
  EXPECT_TRUE(device.vector().axpby(1.0, x, 1.0, y).wait().ok());
  EXPECT_EQ(device.download(y), std::vector<double>(4, 5.0));
  EXPECT_EQ(device.download(z), std::vector<double>(4, 4.0)) << "nothing was launched";
}

TEST(Libraries, WithoutTheCollectiveOneNoDeviceHostStarts) {
  const IncompleteInstallation installation("troupe-collective-" + engine() + ".so");
  try {
    const DeviceRig rig({"--device-host", installation.device_host()});
    ADD_FAILURE() << "what has the communicator is not there";
  } catch (const Exception& exception) {
    EXPECT_NE(exception.error().message.find("collective: not installed"), std::string::npos)
        << exception.error().message;
  }
}

}  // namespace
}  // namespace troupe::test
