// The time of collectives on a GPU. Their launches need not be collectives.
#include "lib/collective/nccl/launch_times_cuda.hpp"

#include <gtest/gtest.h>

namespace troupe::host::cuda {
namespace {

class LaunchTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA engine here";
    ASSERT_EQ(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(memory_.out(), kBytes), cudaSuccess);
  }
  Result<void> launch(std::uint32_t communicator, bool fails = false) {
    return launches_.around(stream_.get(), communicator, [&]() -> Result<void> {
      if (fails) return Error{Errc::library, 0, "it is not launched"};
      TROUPE_CUDA_TRY(cudaMemsetAsync(memory_.get(), 0, kBytes, stream_.get()));
      return {};
    });
  }

  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  Stream stream_;
  DeviceMemory memory_;
  wire::HostTimes times_{};
  LaunchTimes launches_;
};

TEST_F(LaunchTimesTest, EachEighthStandsForEight) {
  launches_.begin(times_);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 800; ++i) {
    ASSERT_TRUE(launch(static_cast<std::uint32_t>(i % 2)).ok());
    ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  EXPECT_NEAR(static_cast<double>(times_.collectives), 800, 32);
  EXPECT_GT(times_.in_collectives, 0u);
  EXPECT_LT(static_cast<double>(times_.in_collectives), 2e9 * wall.count());
}

TEST_F(LaunchTimesTest, NobodyWaitsForThem) {
  launches_.begin(times_);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(launch(0).ok()) << "beyond kMostPending";
  ASSERT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
  EXPECT_LE(times_.collectives, 2000u + 32);
}

TEST_F(LaunchTimesTest, WhatIsNotLaunchedIsNotTimed) {
  ASSERT_TRUE(launch(0).ok()) << "nobody wants to know";
  launches_.begin(times_);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(launch(0, true).code(), Errc::library);
  EXPECT_EQ(times_.collectives, 0u);
}

}  // namespace
}  // namespace troupe::host::cuda
