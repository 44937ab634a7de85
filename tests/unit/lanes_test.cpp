// Which queue a command takes: none waits for other ranks that does not depend on a collective.
#include "device_host/lanes.hpp"

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

TEST_F(LanesTest, ALaneWithoutDetourIsOneQueue) {
  lanes_.give_up_detour(Lane::memory);
  all_reduce(1);
  fill(1);
  EXPECT_EQ(fill(2), kMemory);
}

}  // namespace
}  // namespace troupe::host
