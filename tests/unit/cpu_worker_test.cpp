// The CPU engine's threads: a queue that waits for a mark holds up no other queue.
#include "device_host/engine/cpu/worker.hpp"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <vector>

namespace troupe::host::cpu {
namespace {

const Queue kMemory(Lane::memory), kBlas(Lane::first_library), kCollective(Lane::collective);

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    compute_.set_listener([this] { peers_.look_again(); });
    peers_.set_listener([this] { compute_.look_again(); });
  }
  ~WorkerTest() override {
    compute_.finish();
    peers_.finish();
  }
  std::function<void()> note(int what) {
    return [this, what] {
      const std::lock_guard lock(mutex_);
      order_.push_back(what);
    };
  }
  /// Waits until everything before it on the queue has been executed.
  static void pass(Worker& worker, Queue queue) {
    std::promise<void> passed;
    ASSERT_TRUE(worker.push({.queue = queue, .then = [&] { passed.set_value(); }}).ok());
    passed.get_future().wait();
  }
  std::vector<int> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

  std::mutex mutex_;
  std::vector<int> order_;
  CompletionSignal signal_;
  Worker compute_{"compute", signal_}, peers_{"peers", signal_};
};

TEST_F(WorkerTest, QueuesThatDoNotWaitExecuteInTheOrderInWhichTheyWereGiven) {
  std::promise<void> go;
  ASSERT_TRUE(compute_.push({.queue = kBlas, .work = [&] { go.get_future().wait(); }}).ok());
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(compute_.push({.queue = i % 2 == 0 ? kMemory : kBlas, .work = note(i)}).ok());
  go.set_value();
  pass(compute_, kBlas);
  EXPECT_EQ(order(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(WorkerTest, AQueueThatWaitsForAMarkHoldsUpNoOtherOne) {
  std::promise<void> arrived;  // of the peers of a collective
  const auto mark = std::make_shared<MarkState>();
  ASSERT_TRUE(
      peers_.push({.queue = kCollective, .work = [&] { arrived.get_future().wait(); }}).ok());
  ASSERT_TRUE(peers_.push({.queue = kCollective, .mark = mark}).ok());
  ASSERT_TRUE(compute_.push({.queue = kMemory, .wait_for = mark}).ok());
  ASSERT_TRUE(compute_.push({.queue = kMemory, .work = note(1)}).ok());
  ASSERT_TRUE(compute_.push({.queue = kBlas, .work = note(2)}).ok());
  pass(compute_, kBlas);
  EXPECT_EQ(order(), std::vector<int>{2});
  arrived.set_value();
  pass(compute_, kMemory);
  EXPECT_EQ(order(), (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace troupe::host::cpu
