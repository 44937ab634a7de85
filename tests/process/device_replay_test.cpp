#include <gtest/gtest.h>

#include <random>

#include <troupe/lib/direct.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>

#include "device_rig.hpp"

// What is in flight when a device host dies runs again on the next one: real deaths at many points,
// and results as if there had been none.

namespace troupe::test {
namespace {

constexpr std::int64_t kReplayLength = 20'000;

/// A program whose operations write what nobody has read before: x = random, y = x .* x', z = y,
/// z = z + x.
struct Program {
  std::vector<GpuRef<double>> x, y, z;
  std::vector<Future<void>> pure, updates;

  Program(Device& device, int count) {
    for (int i = 0; i < count; ++i) {
      for (auto* list : {&x, &y, &z}) list->push_back(device.alloc<double>(kReplayLength));
    }
  }
  void run(Device& device, std::size_t i) {
    pure.push_back(device.rng().uniform(x[i], {.seed = 5, .subsequence = i}));
    pure.push_back(device.vector().multiply(x[i], x[i / 2], y[i]));
    pure.push_back(device.copy(y[i], z[i]));
    updates.push_back(device.blas().axpy(1.0, x[i], z[i]));
  }
};

bool same_bytes(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// A sequence is known to the rank: the next device host makes its generator again, and goes on at
/// its place. Bits are reached in one step, normal numbers by making all before them again.
TEST(Replay, SequencesOfRandomNumbersGoOnAtTheirPlace) {
  constexpr std::size_t kCalls = 30;
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  const auto draw = [&](RandomSequence sequence, auto zero, std::size_t strike_at) {
    using T = decltype(zero);
    std::vector<GpuRef<T>> parts;
    std::vector<Future<void>> drawn;
    for (std::size_t i = 0; i < kCalls; ++i) {
      parts.push_back(device.alloc<T>(kReplayLength));
      drawn.push_back(device.rng().next(sequence, parts.back()));
      if (i == strike_at) {
        EXPECT_EQ(::kill(active_host(), SIGKILL), 0);
      }
    }
    std::vector<T> all;
    for (std::size_t i = 0; i < kCalls; ++i) {
      EXPECT_EQ(drawn[i].wait().code(), Errc::ok) << i;
      const auto part = device.download(parts[i]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  const RandomSequence bits({.distribution = rng::Distribution::bits, .seed = 3});
  const RandomSequence normal({.distribution = rng::Distribution::normal, .seed = 4});
  RandomSequence probe = bits;
  if (device.rng().next(probe, device.alloc<std::uint32_t>(2)).wait().code() == Errc::unsupported)
    GTEST_SKIP() << "no cuRAND on this machine";
  EXPECT_EQ(draw(bits, std::uint32_t{}, 7), draw(bits, std::uint32_t{}, kCalls));
  EXPECT_EQ(draw(normal, double{}, 19), draw(normal, double{}, kCalls));
}

/// Factors die with the device host. The next one makes them of the matrix, which it still has.
TEST(Replay, FactorsAreMadeAgain) {
  constexpr std::int32_t kRows = 3000;
  constexpr std::size_t kCalls = 12;
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  std::vector<std::int32_t> begin{0}, columns;
  std::vector<double> values, right(kRows);
  for (std::int32_t row = 0; row < kRows; ++row) {
    for (const std::int32_t column : {row - 50, row - 1, row, row + 1, row + 50}) {
      if (column < 0 || column >= kRows) continue;
      columns.push_back(column);
      values.push_back(column == row ? 4.5 : -1.0 / (1 + row % 3));
    }
    begin.push_back(static_cast<std::int32_t>(columns.size()));
    right[static_cast<std::size_t>(row)] = row % 7;
  }
  const auto put = [&](const auto& list) {
    const auto ref = device.alloc<std::decay_t<decltype(list[0])>>(std::ssize(list));
    device.upload(list, ref).get();
    return ref;
  };
  auto solver = direct::on(device).solver(
      CsrMatrix<double, std::int32_t>{kRows, kRows, put(begin), put(columns), put(values)});
  const auto b = put(right);
  const auto solve = [&](std::size_t strike_at) {
    std::vector<GpuRef<double>> parts;
    std::vector<Future<std::int64_t>> solved;
    for (std::size_t i = 0; i < kCalls; ++i) {
      parts.push_back(device.alloc<double>(kRows));
      solved.push_back(solver.solve(b, parts.back(), {.refinement = 1}));
      if (i == strike_at) {
        EXPECT_EQ(::kill(active_host(), SIGKILL), 0);
      }
    }
    std::vector<double> all;
    for (std::size_t i = 0; i < kCalls; ++i) {
      EXPECT_EQ(solved[i].wait().code(), Errc::ok) << i;
      const auto part = device.download(parts[i]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  if (solver.release().wait().code() == Errc::unsupported)
    GTEST_SKIP() << "no direct solvers on this machine";
  const auto undisturbed = solve(kCalls);
  EXPECT_TRUE(same_bytes(solve(0), undisturbed));
  EXPECT_TRUE(same_bytes(solve(7), undisturbed));
  EXPECT_EQ(::kill(active_host(), SIGKILL), 0);  // with nothing in flight
  EXPECT_EQ(solver.factor().get().outcome, direct::ready);
  EXPECT_TRUE(same_bytes(solve(kCalls), undisturbed));
}

TEST(Replay, NoPureWriteIsLostWhereverTheHostDies) {
  constexpr std::size_t kCount = 60;
  DeviceRig rig({"--restart-budget", "1000"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 1);
  Program undisturbed(device, kCount);
  for (std::size_t i = 0; i < kCount; ++i) undisturbed.run(device, i);
  std::vector<std::vector<double>> expected;
  for (const auto& z : undisturbed.z) expected.push_back(device.download(z));

  std::size_t updates_lost = 0;
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto strike_at = random() % kCount;
    const auto old = active_host();
    ASSERT_NE(old, 0);
    Program program(device, kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      program.run(device, i);
      if (i != strike_at) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
      ASSERT_EQ(::kill(old, SIGKILL), 0);
    }
    ASSERT_TRUE(all_resolved(program.pure));
    ASSERT_TRUE(all_resolved(program.updates));
    for (const auto& future : program.pure) EXPECT_EQ(future.wait().code(), Errc::ok);
    for (std::size_t i = 0; i < kCount; ++i) {
      if (program.updates[i].wait().ok()) {
        ASSERT_TRUE(program.z[i].valid()) << i;
        EXPECT_TRUE(same_bytes(device.download(program.z[i]), expected[i])) << i;
      } else {
        ++updates_lost;
        EXPECT_EQ(program.updates[i].wait().code(), Errc::device_lost) << i;
        EXPECT_FALSE(program.z[i].valid()) << i;
      }
    }
    (void)device.take_error();
  }
  // One at most for each death: the one whose copy was answered while it was in flight itself. A
  // batch that is answered late makes it a few.
  EXPECT_LT(updates_lost, 12 * kCount / 4);
  EXPECT_EQ(bystanders.damage(), "");
}

/// An operation that kills whatever device host runs it: it reads far outside of all memory.
struct Culprit {
  GpuRef<double> source, result;
  GpuRef<std::int64_t> index;

  explicit Culprit(Device& device)
      : source(device.alloc<double>(8)),
        result(device.alloc<double>(8)),
        index(device.alloc<std::int64_t>(8)) {
    device.fill(source, 1.0);
    device.fill(index, std::int64_t{1} << 44).get();
  }
  [[nodiscard]] Future<void> run(Device& device) const {
    return device.sparse().gather(source, index, result);
  }
};

TEST(Replay, TheCulpritFailsAloneAndCostsTwoHosts) {
  DeviceRig rig({"--restart-budget", "2"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 2);
  const Culprit culprit(device);
  std::vector<GpuRef<double>> cells;
  std::vector<Future<void>> neighbours;
  for (int i = 0; i < 400; ++i) cells.push_back(device.alloc<double>(1000));
  Future<void> killed;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == cells.size() / 2) killed = culprit.run(device);
    neighbours.push_back(device.fill(cells[i], static_cast<double>(i)));
  }
  ASSERT_TRUE(all_resolved({killed}));
  EXPECT_EQ(killed.wait().code(), Errc::device_lost);
  EXPECT_FALSE(culprit.result.valid());
  EXPECT_TRUE(culprit.source.valid() && culprit.index.valid());
  ASSERT_TRUE(all_resolved(neighbours));
  for (const auto& future : neighbours) EXPECT_TRUE(future.wait().ok());
  for (std::size_t i = 0; i < cells.size(); i += 37)
    EXPECT_EQ(device.download(cells[i]), std::vector<double>(1000, static_cast<double>(i)));
  EXPECT_EQ(bystanders.damage(), "");
  EXPECT_EQ(not_working(device), "");
}

TEST(Replay, OffFailsAtTheFirstDeath) {
  DeviceRig rig({"--restart-budget", "1", "--replay", "off"});
  auto& device = rig.device();
  const Culprit culprit(device);
  const auto killed = culprit.run(device);
  ASSERT_TRUE(all_resolved({killed}));
  EXPECT_EQ(killed.wait().code(), Errc::device_lost);
  EXPECT_EQ(not_working(device), "");
}

}  // namespace
}  // namespace troupe::test
