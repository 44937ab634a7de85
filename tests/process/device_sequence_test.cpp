#include <gtest/gtest.h>

#include <random>
#include <thread>

#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>
#include <troupe/sequence.hpp>

#include "device_rig.hpp"

// Recorded sequences across the deaths of device hosts: a run is lost or repeated as one command,
// and the next device host runs the sequence that the rank keeps.

namespace troupe::test {
namespace {

constexpr std::int64_t kSequenceLength = 20'000;

/// x = random, y = x x, z = y, z = z + x: all of it can be done again.
struct PureWrites {
  GpuRef<double> x, y, z;
  Sequence sequence;

  PureWrites(Device& device, std::uint64_t subsequence)
      : x(device.alloc<double>(kSequenceLength)),
        y(device.alloc<double>(kSequenceLength)),
        z(device.alloc<double>(kSequenceLength)),
        sequence(device.record([&] {
          device.rng().uniform(x, {.seed = 5, .subsequence = subsequence});
          device.vector().multiply(x, x, y);
          device.copy(y, z);
          device.blas().axpy(1.0, x, z);
        })) {}
};

TEST(Sequences, ThatOnlyWriteAreNotLostWhereverTheHostDies) {
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 1);
  std::vector<PureWrites> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.emplace_back(device, i);
  std::vector<std::vector<double>> expected;
  for (const auto& one : all) {
    one.sequence.run().get();
    expected.push_back(device.download(one.z));
  }
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto old = active_host();
    ASSERT_NE(old, 0);
    std::vector<Future<void>> runs;
    for (const auto& one : all) device.fill(one.z, -1.0).get();
    const auto strike_at = random() % all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
      runs.push_back(all[i].sequence.run());
      if (i != strike_at) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      ASSERT_EQ(::kill(old, SIGKILL), 0);
    }
    ASSERT_TRUE(all_resolved(runs));
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(runs[i].wait().ok()) << runs[i].wait().error().message;
      EXPECT_EQ(device.download(all[i].z), expected[i]) << i;
    }
  }
  EXPECT_EQ(bystanders.damage(), "");
}

/// Adds one to each of two counters, with the libraries of two lanes.
struct Counting {
  GpuRef<double> one, a, b;
  Sequence sequence;

  explicit Counting(Device& device)
      : one(device.alloc<double>(1)), a(device.alloc<double>(1)), b(device.alloc<double>(1)) {
    device.fill(one, 1.0), device.fill(a, 0.0), device.fill(b, 0.0).get();
    sequence = device.record([&] {
      device.blas().axpy(1.0, one, a);
      device.vector().axpby(1.0, one, 1.0, b);
    });
  }
};

// cuRAND waits for the device when a generator draws for the first time, and CUDA lets nobody do
// that while a graph is captured: such a call failed, and so did the capture.
TEST(Sequences, BecomeGraphsBesideCallsThatWaitForTheDevice) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto numbers = device.alloc<double>(64);
  using enum rng::Generator;
  constexpr rng::Generator kGenerators[] = {xorwow, mrg32k3a, mtgp32, philox};
  for (std::uint64_t seed = 0; seed < (on_cuda() ? 20 : 2); ++seed) {
    for (const auto generator : kGenerators) {
      RandomSequence sequence({.generator = generator,
                               .distribution = rng::Distribution::normal,
                               .ordering = rng::Ordering::legacy,  // quick to begin on the host
                               .seed = seed});
      const Counting counting(device);
      const auto drawn = device.rng().next(sequence, numbers);
      for (int run = 0; run < 4; ++run) (void)counting.sequence.run();
      if (drawn.wait().code() == Errc::unsupported) GTEST_SKIP() << drawn.wait().error().message;
      ASSERT_TRUE(drawn.wait().ok()) << drawn.wait().error().message << ", seed " << seed;
      ASSERT_EQ(device.download(counting.a), std::vector(1, 4.0));
      ASSERT_EQ(device.download(counting.b), std::vector(1, 4.0));
    }
  }
}

TEST(Sequences, ThatUpdateAreLostWholeOrNotAtAll) {
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 2);
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Counting> counters;
    for (int i = 0; i < 10; ++i) counters.emplace_back(device);
    std::vector<std::vector<Future<void>>> runs(counters.size());
    const auto old = active_host();
    const auto strike_at = random() % 100;
    for (std::size_t i = 0; i < 100; ++i) {
      runs[i % 10].push_back(counters[i % 10].sequence.run());
      if (i != strike_at) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
      ASSERT_EQ(::kill(old, SIGKILL), 0);
    }
    for (std::size_t i = 0; i < counters.size(); ++i) {
      ASSERT_TRUE(all_resolved(runs[i]));
      const auto& [one, a, b, sequence] = counters[i];
      EXPECT_TRUE(one.valid());
      const bool good = std::all_of(runs[i].begin(), runs[i].end(),
                                    [](const auto& run) { return run.wait().ok(); });
      EXPECT_EQ(a.valid(), good);
      EXPECT_EQ(b.valid(), good);
      if (good) {
        EXPECT_EQ(device.download(a)[0], 10.0);
        EXPECT_EQ(device.download(b)[0], 10.0);
      } else {
        EXPECT_EQ(sequence.run().wait().code(), Errc::stale);
      }
    }
    (void)device.take_error();
  }
  EXPECT_EQ(bystanders.damage(), "");
}

TEST(Sequences, RunOnTheNextHostWithTheirParameters) {
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  const auto x = device.alloc<double>(100);
  device.fill(x, 1.0);
  const Parameter<double> factor(2.0);
  const auto sequence = device.record([&] { device.blas().scal(factor, x); });
  double expected = 1;
  for (int death = 0; death < 3; ++death) {
    for (int i = 0; i < 5; ++i) sequence.run().get(), expected *= 2;
    sequence.run({factor(0.25)}).get(), expected *= 0.25;
    const auto old = active_host();
    ASSERT_EQ(::kill(old, SIGKILL), 0);
    ASSERT_TRUE(replaced(old));
    sequence.run({factor(0.5)}).get();
    expected *= 0.5;
    ASSERT_EQ(device.download(x), std::vector<double>(100, expected));
  }
}

TEST(Sequences, ThatKillTheirHostsFailAlone) {
  DeviceRig rig({"--restart-budget", "2"});
  auto& device = rig.device();
  const auto source = device.alloc<double>(8), result = device.alloc<double>(8),
             other = device.alloc<double>(8);
  const auto index = device.alloc<std::int64_t>(8);
  device.fill(source, 1.0);
  device.fill(index, std::int64_t{1} << 44).get();
  const auto culprit = device.record([&] {
    device.fill(other, 3.0);
    device.sparse().gather(source, index, result);  // far outside of all memory
  });
  const auto neighbour = device.record([&] { device.fill(source, 2.0); });
  const auto killed = culprit.run(), good = neighbour.run();
  ASSERT_TRUE(all_resolved({killed, good}));
  EXPECT_EQ(killed.wait().code(), Errc::device_lost);
  EXPECT_FALSE(result.valid());
  EXPECT_FALSE(other.valid()) << "it is lost with all that the run was to write";
  EXPECT_TRUE(good.wait().ok());
  EXPECT_EQ(device.download(source), std::vector<double>(8, 2.0));
  EXPECT_EQ(not_working(device), "");
}

TEST(Sequences, ThatNeverEndAreLostWithTheirHostAndHoldUpNobody) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(100), y = device.alloc<double>(100);
  const auto flag = device.alloc<std::int32_t>(1);
  device.fill(x, 1.0), device.fill(y, 1.0), device.fill(flag, 1).get();
  const auto endless =
      device.record([&] { while_(device, flag, [&] { device.blas().scal(-1.0, x); }); });
  const auto run = endless.run();
  for (int i = 0; i < 100; ++i) device.blas().scal(2.0, y.slice(0, 1)).get();
  EXPECT_FALSE(run.ready());
  const auto old = active_host();
  ASSERT_EQ(::kill(old, SIGKILL), 0);
  ASSERT_TRUE(all_resolved({run}));
  EXPECT_EQ(run.wait().code(), Errc::device_lost);
  EXPECT_FALSE(x.valid());
  EXPECT_TRUE(y.valid() && flag.valid());
  EXPECT_EQ(not_working(device), "");
}

/// The first run is a list of commands, whose loop the device host itself goes through.
TEST(Sequences, WhatFollowsALoopWaitsForAllThatTheLoopHasBegun) {
  DeviceRig rig;
  auto& device = rig.device();
  constexpr std::int64_t kLength = 4 << 20;
  const auto x = device.alloc<double>(kLength), y = device.alloc<double>(kLength);
  const auto flag = device.alloc<std::int32_t>(1);
  device.fill(y, 0.0);
  device.blas().scal(1.0, y).get();  // the library is open, and does not hold up the run
  device.fill(x, 1.0), device.fill(flag, 1).get();
  constexpr int kTimes = 20;
  const auto sequence = device.record([&] {
    while_(device, flag, [&] {
      for (int i = 0; i < kTimes; ++i) device.blas().scal(2.0, x);
      device.fill(flag, 0);
    });
    device.copy(x, y);
  });
  sequence.run().get();
  EXPECT_EQ(device.download(y), std::vector<double>(kLength, 1 << kTimes));
}

TEST(Sequences, OfALibraryThatFailsSpoilWhatTheyWriteAndRunAgain) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(8), y = device.alloc<double>(8);
  device.fill(x, 1.0), device.fill(y, 1.0).get();
  const auto make = [&] {
    return device.record([&] {
      device.fill(y, 2.0);
      device.blas().scal(2.0, x);
    });
  };
  device.inject_library_fault("blas").get();
  const auto failed = make().run();
  EXPECT_EQ(failed.wait().code(), Errc::library);
  EXPECT_NE(failed.wait().error().message.find("command 2"), std::string::npos);
  EXPECT_FALSE(x.valid() || y.valid());
  (void)device.take_error();
  auto again = x, other = y;
  again.renew(), other.renew();
  device.fill(again, 1.0);
  device
      .record([&] {
        device.fill(other, 2.0);
        device.blas().scal(2.0, again);
      })
      .run()
      .get();
  EXPECT_EQ(device.download(again), std::vector<double>(8, 2.0));
}

}  // namespace
}  // namespace troupe::test
