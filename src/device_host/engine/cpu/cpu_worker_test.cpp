// The CPU engine's threads: a queue that waits for a mark holds up no other queue.
#include "device_host/engine/cpu/worker.hpp"

#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <new>
#include <stdexcept>
#include <vector>

#include "device_host/engine/library.hpp"

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

/// A library of a program's, which throws as it is told.
struct Throw {
  static constexpr std::string_view kName = "worker_test.throw";
  static constexpr DTypes kDTypes = DTypes::all();
  OpDType dtype;
  std::uint64_t what = 0;
  static constexpr std::array<DeclaredOperand<Throw>, 0> kOperands{};
  Result<void> check() const { return {}; }
};

void throw_as_told(std::uint64_t what) {
  switch (what) {
    case 0: throw std::runtime_error("words");
    case 1: throw std::bad_alloc();
    case 2: throw Exception({Errc::numeric, 4, "words"});
    default: throw 5;
  }
}

class Throwing final : public LibraryHalfOf<Throwing, List<Throw>> {
 public:
  Result<void> run(const Throw& op, const Call&) { return throw_as_told(op.what), Result<void>(); }
};

constexpr Errc kThrown[] = {Errc::library, Errc::out_of_memory, Errc::numeric, Errc::library};

TEST(LibraryHalf, ThrowsTheErrorOfItsCall) {
  Throwing half;
  OperationInfo info;
  info.name = Throw::kName, info.opcode = opcode_of<Throw>;
  const AddressMap addresses;
  for (std::uint64_t what = 0; what < std::size(kThrown); ++what) {
    const Throw op{{}, what};
    const auto outcome = static_cast<LibraryHalf&>(half).run(
        info, reinterpret_cast<const std::byte*>(&op), Call(kBlas, addresses, Parts()));
    ASSERT_EQ(outcome.code(), kThrown[what]);
    EXPECT_EQ(outcome.error().message.find("worker_test.throw: "), 0u) << outcome.error().message;
  }
}

TEST_F(WorkerTest, WhatWorkThrowsIsTheErrorOfItsMark) {
  for (std::uint64_t what = 0; what < std::size(kThrown); ++what) {
    const auto mark = std::make_shared<MarkState>();
    ASSERT_TRUE(compute_.push({.queue = kBlas, .work = [what] { throw_as_told(what); }}).ok());
    ASSERT_TRUE(compute_.push({.queue = kBlas, .mark = mark}).ok());
    mark->reached.wait(0);
    ASSERT_NE(mark->failure, nullptr);
    EXPECT_EQ(mark->failure->error.code, kThrown[what]);
    mark->failure->reported();
  }
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
