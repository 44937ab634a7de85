// Which queue a command takes: none waits for other ranks that does not depend on a collective.
#include "device_host/lanes/lanes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::host {
namespace {

struct Use {
  Operand operand;
  Access access;
};

Operand buffer(std::uint64_t number) {
  return {1, 0, 0, 0, number * 64, 64};
}
const Queue kMemory(Lane::memory), kBlas(Lane::first_library), kCollective(Lane::collective);
const Queue kMemoryDetour(Lane::memory, true), kBlasDetour(Lane::first_library, true);

class LanesTest : public testing::Test {
 protected:
  /// Queues a command of the lane; the queue that it took.
  Queue submit(Lane lane, const std::vector<Use>& uses) {
    std::vector<OperandUse> operands;
    for (const auto& use : uses) operands.push_back({&use.operand, use.access, ""});
    const auto waits = lanes_.waits_of(operands);
    const auto queue = lanes_.queue_of(lane, waits);
    lanes_.queued(operands, queue, waits);
    return queue;
  }
  Queue all_reduce(std::uint64_t number) {
    return submit(Lane::collective, {{buffer(number), Access::update}});
  }
  Queue fill(std::uint64_t number) {
    return submit(Lane::memory, {{buffer(number), Access::write}});
  }
  Queue axpy(std::uint64_t x, std::uint64_t y) {
    return submit(Lane::first_library, {{buffer(x), Access::read}, {buffer(y), Access::update}});
  }
  void complete(Queue queue) { lanes_.complete(queue, lanes_.issued(queue)); }

  Lanes lanes_;
};

TEST_F(LanesTest, WithoutCollectivesALaneIsOneQueue) {
  EXPECT_EQ(fill(1), kMemory);
  EXPECT_EQ(fill(2), kMemory);
  EXPECT_EQ(axpy(1, 2), kBlas);
}

TEST_F(LanesTest, WhatDependsOnNoCollectiveIsNotBehindWhatDoes) {
  EXPECT_EQ(all_reduce(1), kCollective);
  EXPECT_EQ(fill(2), kMemory) << "nothing on the lane waits yet";
  EXPECT_EQ(fill(1), kMemory) << "it waits for the collective";
  EXPECT_EQ(fill(2), kMemoryDetour);
  EXPECT_EQ(axpy(1, 3), kBlas) << "it waits for the fill of 1";
  EXPECT_EQ(axpy(2, 4), kBlasDetour);
  EXPECT_EQ(axpy(4, 3), kBlas) << "3 waits for the collective";
  EXPECT_EQ(fill(1), kMemory);
}

TEST_F(LanesTest, ADetourIsNeverTakenByWhatWaitsForPeers) {
  all_reduce(1);
  fill(1);
  EXPECT_EQ(fill(2), kMemoryDetour);
  EXPECT_EQ(submit(Lane::memory, {{buffer(2), Access::read}, {buffer(1), Access::write}}), kMemory);
  EXPECT_EQ(fill(2), kMemory) << "2 is read by a copy that waits";
  EXPECT_EQ(fill(3), kMemoryDetour);
}

TEST_F(LanesTest, OnceTheCollectiveIsDoneTheLaneIsOneQueueAgain) {
  all_reduce(1);
  fill(1);
  EXPECT_EQ(fill(2), kMemoryDetour);
  complete(kCollective);
  EXPECT_EQ(fill(3), kMemoryDetour) << "the fill of 1 is not known to be done";
  complete(kMemory);
  EXPECT_EQ(fill(4), kMemory);
  EXPECT_EQ(axpy(1, 2), kBlas);
}

TEST_F(LanesTest, CollectivesKeepTheirOrder) {
  EXPECT_EQ(all_reduce(1), kCollective);
  EXPECT_EQ(all_reduce(2), kCollective);
}

/// Of the lane with side queues, by their numbers; 0: its own.
class LanesWithSides : public LanesTest {
 protected:
  LanesWithSides() { lanes_.set_sides(Lane::first_library); }
  static Queue side(std::uint8_t number) { return Queue::aside(Lane::first_library, number); }
};

TEST_F(LanesWithSides, IndependentCommandsTakeDifferentQueues) {
  EXPECT_EQ(axpy(1, 2), side(0));
  EXPECT_EQ(axpy(1, 3), side(1));
  EXPECT_EQ(axpy(1, 4), side(2));
  EXPECT_EQ(axpy(1, 5), side(3));
  EXPECT_EQ(axpy(1, 6), side(0)) << "all have one";
  complete(side(2));
  EXPECT_EQ(axpy(1, 7), side(2)) << "it is idle";
  EXPECT_EQ(fill(8), kMemory);
  EXPECT_EQ(fill(9), kMemory) << "other lanes have none";
}

TEST_F(LanesWithSides, WhatDependsOnAnotherStandsBehindIt) {
  EXPECT_EQ(axpy(1, 2), side(0));
  EXPECT_EQ(axpy(1, 3), side(1));
  EXPECT_EQ(axpy(3, 4), side(1));
  EXPECT_EQ(axpy(2, 5), side(0));
  EXPECT_EQ(axpy(3, 6), side(2)) << "3 is not the last there: no need to wait for the last";
  complete(side(0)), complete(side(1)), complete(side(2));
  EXPECT_EQ(axpy(4, 7), side(0)) << "what it depends on is done";
}

TEST_F(LanesWithSides, WhatWaitsForPeersTakesNoneOfThem) {
  all_reduce(1);
  EXPECT_EQ(axpy(1, 2), side(0));
  EXPECT_EQ(axpy(2, 3), side(0));
  EXPECT_EQ(axpy(4, 5), side(1));
  EXPECT_EQ(axpy(6, 7), side(2));
  EXPECT_EQ(axpy(4, 3), side(0)) << "3 waits for the collective";
  EXPECT_EQ(axpy(8, 9), side(3));
  complete(kCollective), complete(side(0));
  EXPECT_EQ(axpy(8, 10), side(0));
}

TEST_F(LanesTest, ALaneWithoutDetourIsOneQueue) {
  lanes_.give_up_detour(Lane::memory);
  all_reduce(1);
  fill(1);
  EXPECT_EQ(fill(2), kMemory);
}

}  // namespace
}  // namespace troupe::host
