// Actors on a loop's thread: what is sent to them ends its sleep, and no wake-up is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <troupe/actor/actor_system.hpp>

#include "common/actor/loop_scheduler.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A thread that sleeps until it is woken: a wake-up that is lost is never made good.
class Loop {
 public:
  Loop() : thread_([this] { run(); }) {}
  ~Loop() {
    scheduler->stop();
    thread_.join();
  }
  const std::shared_ptr<LoopScheduler> scheduler = std::make_shared<LoopScheduler>();
  std::atomic<std::thread::id> id{};

 private:
  void run() {
    id = std::this_thread::get_id();
    while (!scheduler->stopped()) {
      if (!scheduler->run_ready()) scheduler->sleep(1h);
    }
  }
  std::thread thread_;
};

struct Count {};
struct Where {
  using Reply = std::thread::id;
};
struct HowMany {
  using Reply = int;
};
struct Never {
  using Reply = int;
};

class Counter : public Actor<Counter, Count, Where, HowMany, Never> {
 public:
  void on(Count) { ++count_; }
  std::thread::id on(Where) { return std::this_thread::get_id(); }
  int on(HowMany) { return count_; }
  Future<int> on(Never) { return promise_.future(); }

 private:
  int count_ = 0;
  Promise<int> promise_;
};

TEST(LoopScheduler, ActorsHaveTheirTurnsOnTheLoopsThread) {
  Loop loop;
  ActorSystem system(loop.scheduler);
  const auto counter = system.spawn<Counter>({});
  const auto where = counter.ask(Where{}, 60s).get();
  EXPECT_EQ(where, loop.id.load());
}

TEST(LoopScheduler, NoWakeUpIsLost) {
  constexpr int kThreads = 4, kQuestions = 2000;
  Loop loop;
  ActorSystem system(loop.scheduler);
  const auto counter = system.spawn<Counter>({});
  std::vector<std::thread> askers;
  for (int i = 0; i < kThreads; ++i) {
    askers.emplace_back([&counter] {
      for (int k = 0; k < kQuestions; ++k) {
        ASSERT_TRUE(counter.tell(Count{}).ok());
        // The loop falls asleep behind each answer, as often as not while the next message comes.
        ASSERT_TRUE(counter.ask(HowMany{}, 60s).wait().ok());
      }
    });
  }
  for (auto& asker : askers) asker.join();
  EXPECT_EQ(counter.ask(HowMany{}, 60s).get(), kThreads * kQuestions);
}

TEST(LoopScheduler, ATimerOfAnotherThreadEndsTheSleep) {
  Loop loop;
  ActorSystem system(loop.scheduler);
  const auto counter = system.spawn<Counter>({});
  ASSERT_TRUE(counter.ask(HowMany{}, 60s).wait().ok());
  std::this_thread::sleep_for(10ms);  // until it sleeps for an hour
  const auto never = counter.ask(Never{}, 20ms);
  ASSERT_TRUE(never.wait_for(60s));
  EXPECT_EQ(never.wait().code(), Errc::timeout);
}

TEST(LoopScheduler, WakeEndsASleepThatHasYetToBegin) {
  LoopScheduler scheduler;
  scheduler.wake();
  const auto start = std::chrono::steady_clock::now();
  scheduler.sleep(60s);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);
  scheduler.sleep(1ms);  // nobody has woken it since
}

TEST(LoopScheduler, AShutDownSystemLeavesTheLoopStopped) {
  Loop loop;
  ActorRef<Counter> counter;
  {
    ActorSystem system(loop.scheduler);
    counter = system.spawn<Counter>({});
    ASSERT_TRUE(counter.tell(Count{}).ok());
  }
  EXPECT_TRUE(counter.ended());
  EXPECT_TRUE(loop.scheduler->stopped());
  EXPECT_EQ(counter.tell(Count{}).code(), Errc::stopped);
}

}  // namespace
}  // namespace troupe
