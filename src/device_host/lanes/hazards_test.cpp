// Hazard tracking: lanes that respect only the waits it gives compute what a sequential run
// computes, and it gives no wait that a byte-by-byte model does not ask for.
#include "device_host/lanes/hazards.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <troupe/lib/outside.hpp>

#include "random_cases.hpp"

namespace troupe::host {
namespace {

constexpr std::uint32_t kRegions = 3;
constexpr std::uint64_t kRegionBytes = 48;
constexpr Lane kFirst = Lane::first_library, kSecond = static_cast<Lane>(5),
               kThird = static_cast<Lane>(6), kFourth = static_cast<Lane>(7);

struct Use {
  Operand operand;
  Access access;
};
struct Operation {
  std::uint64_t id;
  Lane lane;
  std::vector<Use> uses;
};

using Memory = std::vector<std::uint64_t>;  ///< one word stands for a byte of a region

std::size_t at(const Operand& operand) {
  return (operand.region - 1) * kRegionBytes + operand.offset;
}

/// What the operation computes from everything it reads.
std::uint64_t digest(const Operation& operation, const Memory& memory) {
  auto hash = operation.id * 0x9e3779b97f4a7c15u;
  for (const auto& use : operation.uses) {
    if (use.access == Access::write) continue;
    for (std::size_t i = 0; i < use.operand.bytes; ++i)
      hash = (hash ^ memory[at(use.operand) + i]) * 0x100000001b3u;
  }
  return hash;
}

void store(const Operation& operation, std::uint64_t value, Memory& memory) {
  for (const auto& use : operation.uses) {
    if (use.access == Access::read) continue;
    for (std::size_t i = 0; i < use.operand.bytes; ++i)
      memory[at(use.operand) + i] = value += i + 1;
  }
}

Operation random_operation(std::uint64_t id, std::mt19937& random) {
  Operation operation{id, static_cast<Lane>(random() % kLaneCount), {}};
  for (auto count = 1 + random() % 3; count > 0; --count) {
    Operand operand;
    operand.region = 1 + static_cast<std::uint32_t>(random() % kRegions);
    operand.offset = random() % kRegionBytes;
    operand.bytes = std::min<std::uint64_t>(random() % 17, kRegionBytes - operand.offset);
    if (random() % 2 == 0) {  // as most are: the range of some earlier access
      operand.offset = operand.offset / 16 * 16;
      operand.bytes = 16;
    }
    operation.uses.push_back({operand, static_cast<Access>(1 + random() % 3)});
  }
  return operation;
}

/// Who touched each byte, kept in the plainest way.
class ByteModel {
 public:
  Places waits(const Operation& operation) const {
    Places waits{};
    for (const auto& use : operation.uses) {
      for (std::size_t i = 0; i < use.operand.bytes; ++i) {
        const auto& byte = bytes_[at(use.operand) + i];
        auto& wait = waits[byte.writer_lane];
        wait = std::max(wait, byte.writer);
        if (use.access == Access::read) continue;
        for (std::size_t lane = 0; lane < kLaneCount; ++lane)
          waits[lane] = std::max(waits[lane], byte.readers[lane]);
      }
    }
    return waits;
  }
  void record(const Use& use, std::size_t lane, Sequence sequence) {
    for (std::size_t i = 0; i < use.operand.bytes; ++i) {
      auto& byte = bytes_[at(use.operand) + i];
      if (use.access == Access::read) {
        byte.readers[lane] = sequence;
      } else {
        byte = {lane, sequence, {}};
      }
    }
  }

 private:
  struct Byte {
    std::size_t writer_lane = 0;
    Sequence writer = 0;
    Places readers{};
  };
  std::vector<Byte> bytes_ = std::vector<Byte>(kRegions * kRegionBytes);
};

/// Lanes that each run in order, and interleave as chance has it. An operation reads when it starts
/// and writes when it ends.
class Machine {
 public:
  explicit Machine(bool heed_waits) : heed_waits_(heed_waits) {}

  void queue(Operation operation, const Waits& waits) {
    lanes_[static_cast<std::size_t>(operation.lane)].push_back(
        {std::move(operation), waits, false, 0});
  }
  /// One lane starts or ends its next operation; false if all are idle.
  bool step(std::mt19937& random) {
    std::vector<std::size_t> able;
    bool idle = true;
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
      if (lanes_[lane].empty()) continue;
      idle = false;
      if (lanes_[lane].front().started || may_start(lanes_[lane].front(), lane))
        able.push_back(lane);
    }
    if (idle) return false;
    if (able.empty()) {
      ADD_FAILURE() << "the lanes wait for one another";
      return false;
    }
    const auto lane = able[random() % able.size()];
    auto& next = lanes_[lane].front();
    if (!next.started) {
      next.started = true;
      next.value = digest(next.operation, memory);
    } else {
      store(next.operation, next.value, memory);
      ++completed[lane];
      lanes_[lane].pop_front();
    }
    return true;
  }

  Memory memory = Memory(kRegions * kRegionBytes, 1);
  Places completed{};

 private:
  struct Queued {
    Operation operation;
    Waits waits;
    bool started;
    std::uint64_t value;
  };
  bool may_start(const Queued& next, std::size_t own) const {
    if (!heed_waits_) return true;
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
      if (lane != own && completed[lane] < next.waits[lane]) return false;
    }
    return true;
  }
  bool heed_waits_;
  std::deque<Queued> lanes_[kLaneCount];
};

/// Runs a random program; true if the memory ends as a sequential run leaves it.
bool same_as_sequential(std::uint32_t seed, bool heed_waits) {
  std::mt19937 random(seed);
  HazardTracker tracker;
  ByteModel model;
  Machine machine(heed_waits);
  Memory sequential(kRegions * kRegionBytes, 1);
  Places issued{};
  const auto pace = 1 + random() % 5;
  for (std::uint64_t id = 1; id <= 150; ++id) {
    const auto operation = random_operation(id, random);
    store(operation, digest(operation, sequential), sequential);

    Waits waits;
    for (const auto& use : operation.uses) tracker.collect(use.operand, use.access, waits);
    const auto needed = model.waits(operation);
    for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
      if (needed[lane] > machine.completed[lane]) {
        EXPECT_EQ(waits[lane], needed[lane]) << "operation " << id << ", lane " << lane;
      } else {
        EXPECT_LE(waits[lane], needed[lane]) << "operation " << id << ", lane " << lane;
      }
    }
    const auto lane = static_cast<std::size_t>(operation.lane);
    const auto sequence = ++issued[lane];
    for (const auto& use : operation.uses) {
      tracker.record(use.operand, use.access, operation.lane, sequence);
      model.record(use, lane, sequence);
    }
    machine.queue(operation, waits);
    for (auto steps = random() % (2 * pace); steps > 0; --steps) machine.step(random);
    if (random() % 10 == 0) tracker.forget(machine.completed);
  }
  while (machine.step(random)) {
  }
  tracker.forget(machine.completed);
  EXPECT_EQ(tracker.size(), 0u) << "all is done, and should be forgotten";
  return machine.memory == sequential;
}

TEST(Hazards, LanesThatHeedTheWaitsComputeWhatASequentialRunComputes) {
  for (std::uint32_t seed = 1; seed <= test::fewer_if_brief(2000) && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_TRUE(same_as_sequential(seed, true));
  }
}

TEST(Hazards, ThePropertyAboveCanFail) {
  int wrong = 0;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) wrong += same_as_sequential(seed, false) ? 0 : 1;
  EXPECT_GT(wrong, 40) << "lanes that heed nothing should go wrong nearly always";
}

Operand range(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes) {
  Operand operand;
  operand.region = region;
  operand.offset = offset;
  operand.bytes = bytes;
  return operand;
}

Places waits_of(const HazardTracker& tracker, const Operand& operand, Access access) {
  Waits waits;
  tracker.collect(operand, access, waits);
  Places all{};
  waits.for_each([&](std::size_t queue, Sequence place) { all[queue] = place; });
  return all;
}
constexpr Places kNone{};
std::size_t index(Lane lane) {
  return static_cast<std::size_t>(lane);
}

TEST(Hazards, IndependentOperationsDoNotWait) {
  HazardTracker tracker;
  tracker.record(range(1, 100, 100), Access::write, kFirst, 1);
  EXPECT_EQ(waits_of(tracker, range(1, 0, 100), Access::update), kNone) << "just before";
  EXPECT_EQ(waits_of(tracker, range(1, 200, 8), Access::update), kNone) << "just behind";
  EXPECT_EQ(waits_of(tracker, range(2, 100, 100), Access::update), kNone) << "another region";
  EXPECT_EQ(waits_of(tracker, range(1, 150, 0), Access::write), kNone) << "nothing of it";
  tracker.record(range(1, 300, 50), Access::read, kSecond, 1);
  EXPECT_EQ(waits_of(tracker, range(1, 300, 50), Access::read), kNone)
      << "readers do not wait for readers";
}

TEST(Hazards, AccessesConflictAsTheyShould) {
  HazardTracker tracker;
  tracker.record(range(1, 0, 64), Access::write, kFirst, 4);
  tracker.record(range(1, 0, 32), Access::read, kSecond, 7);
  auto expected = kNone;
  expected[index(kFirst)] = 4;
  EXPECT_EQ(waits_of(tracker, range(1, 63, 9), Access::read), expected)
      << "read after write, by one byte";
  EXPECT_EQ(waits_of(tracker, range(1, 32, 8), Access::write), expected) << "write after write";
  expected[index(kSecond)] = 7;
  EXPECT_EQ(waits_of(tracker, range(1, 31, 8), Access::write), expected) << "write after read";
  EXPECT_EQ(waits_of(tracker, range(1, 31, 8), Access::update), expected);
}

TEST(Hazards, AWriteIntoTheMiddleSplitsARange) {
  HazardTracker tracker;
  tracker.record(range(1, 0, 90), Access::write, kFirst, 1);
  tracker.record(range(1, 30, 30), Access::write, kThird, 1);
  EXPECT_EQ(tracker.size(), 3u);
  auto left = kNone, middle = kNone;
  left[index(kFirst)] = 1;
  middle[index(kThird)] = 1;
  EXPECT_EQ(waits_of(tracker, range(1, 0, 30), Access::read), left);
  EXPECT_EQ(waits_of(tracker, range(1, 30, 30), Access::read), middle);
  EXPECT_EQ(waits_of(tracker, range(1, 60, 30), Access::read), left);
  tracker.record(range(1, 10, 70), Access::write, kFourth, 1);
  EXPECT_EQ(tracker.size(), 3u) << "what lies within is replaced";
}

TEST(Hazards, SmallReadsLeaveNothingBehindOneOfAllOfThem) {
  HazardTracker tracker;
  for (std::uint64_t i = 0; i < 1000; ++i)
    tracker.record(range(1, 8 * i, 8), Access::read, kFirst, i + 1);
  EXPECT_EQ(tracker.size(), 1000u);
  tracker.record(range(1, 0, 8000), Access::read, kFirst, 1001);
  EXPECT_EQ(tracker.size(), 1u);
  Waits waits;
  tracker.collect(range(1, 4000, 8), Access::write, waits);
  EXPECT_EQ(waits[Queue(kFirst).index()], 1001u);
}

TEST(Hazards, WhatIsDoneKeepsNoRangesApart) {
  HazardTracker tracker;
  for (std::uint64_t i = 0; i < 1000; ++i)
    tracker.record(range(1, 8 * i, 8), Access::write, kFirst, i + 1);
  Places completed{};
  completed[Queue(kFirst).index()] = 999;
  tracker.record(range(1, 0, 8000), Access::read, kSecond, 1, completed);
  EXPECT_EQ(tracker.size(), 2u) << "the last write is under way";
  Waits waits;
  tracker.collect(range(1, 7990, 10), Access::read, waits);
  EXPECT_EQ(waits[Queue(kFirst).index()], 1000u);
}

TEST(Hazards, ForgetKeepsWhatIsNotDone) {
  HazardTracker tracker;
  tracker.record(range(1, 0, 10), Access::write, kFirst, 1);
  tracker.record(range(1, 0, 10), Access::read, kSecond, 2);
  tracker.record(range(1, 10, 10), Access::write, kFirst, 2);
  Places completed{};
  completed[index(kFirst)] = 2;
  completed[index(kSecond)] = 1;
  tracker.forget(completed);
  EXPECT_EQ(tracker.size(), 1u) << "a reader is still at it";
  EXPECT_EQ(waits_of(tracker, range(1, 0, 10), Access::write)[index(kSecond)], 2u);
  completed[index(kSecond)] = 2;
  tracker.forget(completed);
  EXPECT_EQ(tracker.size(), 0u);
}

TEST(Hazards, WhatLiesOutsideOfMemoryIsOrderedAsMemoryIs) {
  HazardTracker tracker;
  tracker.record(outside::thing(~std::uint64_t{0}), Access::write, kFirst, 1);
  tracker.record(outside::thing(5), Access::read, kSecond, 2);
  EXPECT_EQ(waits_of(tracker, outside::thing(~std::uint64_t{0}), Access::read)[index(kFirst)], 1u);
  EXPECT_EQ(waits_of(tracker, outside::thing(5), Access::read), kNone);
  EXPECT_EQ(waits_of(tracker, outside::thing(5), Access::write)[index(kSecond)], 2u);
  const auto all = waits_of(tracker, outside::everything(), Access::update);
  EXPECT_EQ(all[index(kFirst)], 1u);
  EXPECT_EQ(all[index(kSecond)], 2u);
  tracker.record(outside::everything(), Access::update, kThird, 3);
  EXPECT_EQ(waits_of(tracker, outside::thing(9), Access::read)[index(kThird)], 3u);
  EXPECT_EQ(waits_of(tracker, range(1, 0, 8), Access::write), kNone);
}

TEST(Hazards, ARegionCanBeForgottenAlone) {
  HazardTracker tracker;
  tracker.record(range(1, 0, 10), Access::write, kFirst, 1);
  tracker.record(range(2, 0, 10), Access::write, kFirst, 2);
  tracker.forget_region(1);
  EXPECT_EQ(waits_of(tracker, range(1, 0, 10), Access::read), kNone);
  EXPECT_EQ(waits_of(tracker, range(2, 0, 10), Access::read)[index(kFirst)], 2u);
  tracker.clear();
  EXPECT_EQ(tracker.size(), 0u);
}

}  // namespace
}  // namespace troupe::host
