// Actors on real threads: nothing lost, nobody starved, nothing left running.
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/patient_tell.hpp>
#include <troupe/actor/production_scheduler.hpp>

#include "common/actor/cpu_binding.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

std::shared_ptr<Scheduler> threads(int workers, int messages_per_turn = 64) {
  return ProductionScheduler::start({.workers = workers, .messages_per_turn = messages_per_turn})
      .take();
}

struct Add {
  int amount;
};
struct Sum {
  using Reply = long;
};

class Adder : public Actor<Adder, Add, Sum> {
 public:
  explicit Adder(std::atomic<int>* alive) : alive_(alive) { alive_->fetch_add(1); }
  ~Adder() override { alive_->fetch_sub(1); }
  void on(Add add) { sum_ += add.amount; }
  long on(Sum) { return sum_; }

 private:
  std::atomic<int>* alive_;
  long sum_ = 0;
};

struct Letter {
  std::shared_ptr<std::string> text;
};
class Reader : public Actor<Reader, Letter> {
 public:
  Reader(std::latch* go_on, std::atomic<int>* whole) : go_on_(go_on), whole_(whole) {}
  void on(Letter letter) {
    go_on_->wait();
    if (letter.text && *letter.text == "a descriptor, say") whole_->fetch_add(1);
  }

 private:
  std::latch* go_on_;
  std::atomic<int>* whole_;
};

TEST(PatientTell, AMessageThatFindsTheMailboxFullArrivesWhole) {
  std::latch go_on(1);
  std::atomic<int> whole{0};
  ActorSystem system(threads(1));
  const auto reader =
      system.spawn<Reader>({.name = "reader", .mailbox_capacity = 2}, &go_on, &whole);
  constexpr int kLetters = 10;
  std::atomic<int> sent{0};
  std::jthread sender([&] {
    for (int i = 0; i < kLetters; ++i) {
      const Letter letter{std::make_shared<std::string>("a descriptor, say")};
      EXPECT_TRUE(tell_patiently(reader, letter).ok());
      sent.fetch_add(1);
    }
  });
  // Until it has been refused at least once: the mailbox is full.
  while (reader.tell(Letter{}).code() != Errc::would_block) std::this_thread::yield();
  go_on.count_down();
  sender.join();
  while (whole.load() < kLetters) std::this_thread::yield();
  reader.stop();
  reader.wait_ended();
  EXPECT_EQ(tell_patiently(reader, Letter{}).code(), Errc::stopped);
}

TEST(ProductionScheduler, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(ProductionScheduler::start({.workers = 0}).code(), Errc::invalid);
  EXPECT_EQ(ProductionScheduler::start({.messages_per_turn = 0}).code(), Errc::invalid);
}

struct WhichCore {
  using Reply = int;
};
class Locator : public Actor<Locator, WhichCore> {
 public:
  int on(WhichCore) { return sched_getcpu(); }
};

TEST(ProductionScheduler, BindsItsWorkers) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    const auto scheduler = ProductionScheduler::start().take();
    ActorSystem system(scheduler);
    auto locator = system.spawn<Locator>({});
    scheduler->bind(CpuBinding::parse(std::to_string(core)).take()).take();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(locator.ask(WhichCore{}, kPatience).get(), core);
  }
}

TEST(ProductionScheduler, ThousandsOfActorsFromFourThreads) {
  constexpr int kActors = 2000;
  constexpr int kThreads = 4;
  constexpr int kEach = 20;
  std::atomic<int> alive{0};
  ActorSystem system(threads(3));
  std::vector<ActorRef<Adder>> adders;
  for (int i = 0; i < kActors; ++i) {
    adders.push_back(system.spawn<Adder>({.mailbox_capacity = 8}, &alive));
  }
  {
    std::vector<std::jthread> senders;
    for (int sender = 0; sender < kThreads; ++sender) {
      senders.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          for (const auto& adder : adders) (void)tell_patiently(adder, Add{1});
        }
      });
    }
  }
  for (const auto& adder : adders) {
    auto sum = adder.ask(Sum{}, kPatience);
    EXPECT_EQ(sum.get(), kThreads * kEach);
  }
  EXPECT_EQ(alive.load(), kActors);
  system.shutdown();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(system.living(), 0u);
  EXPECT_EQ(adders[0].tell(Add{1}).code(), Errc::stopped);
  EXPECT_EQ(adders[0].ask(Sum{}, kPatience).wait().code(), Errc::stopped);
}

struct Ball {
  int hops_left;
};
class Node;
struct Join {
  ActorRef<Node> next;
};

class Node : public Actor<Node, Join, Ball> {
 public:
  explicit Node(std::latch* done) : done_(done) {}
  void on(Join&& join) { next_ = std::move(join.next); }
  Result<void> on(Ball ball) {
    if (ball.hops_left == 0) {
      done_->count_down();
      return {};
    }
    return next_.tell(Ball{ball.hops_left - 1});
  }

 private:
  std::latch* done_;
  ActorRef<Node> next_;
};

TEST(ProductionScheduler, ManyBallsRoundARing) {
  constexpr int kNodes = 1000;
  constexpr int kBalls = 50;
  std::latch done(kBalls);
  ActorSystem system(threads(4, 3));
  std::vector<ActorRef<Node>> ring;
  for (int i = 0; i < kNodes; ++i) ring.push_back(system.spawn<Node>({}, &done));
  for (std::size_t i = 0; i < kNodes; ++i) ring[i].tell(Join{ring[(i + 1) % kNodes]}).take();
  for (std::size_t i = 0; i < kBalls; ++i) ring[i * 20].tell(Ball{3000}).take();
  done.wait();
}

struct Poke {
  ActorRef<Adder> other;
  std::binary_semaphore* poked;
};

/// Makes another actor runnable and then does not return until that one has run.
class Blocker : public Actor<Blocker, Poke> {
 public:
  void on(Poke&& poke) {
    poke.other.tell(Add{1}).take();
    auto sum = poke.other.ask(Sum{}, kPatience);
    while (!sum.ready()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(sum.get(), 1);
    poke.poked->release();
  }
};

TEST(ProductionScheduler, NobodyIsStuckBehindALongHandler) {
  std::atomic<int> alive{0};
  ActorSystem system(threads(2));
  for (int round = 0; round < 20; ++round) {
    auto adder = system.spawn<Adder>({}, &alive);
    auto blocker = system.spawn<Blocker>({});
    std::binary_semaphore poked(0);
    blocker.tell(Poke{adder, &poked}).take();
    ASSERT_TRUE(poked.try_acquire_for(kPatience));
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 4));  // with and without a patrol
  }
}

struct Spin {};
class Spinner : public Actor<Spinner, Spin> {
 public:
  void on(Spin) { (void)context().self().tell(Spin{}); }
};

TEST(ProductionScheduler, AnActorThatNeverRestsDoesNotStarveTheOthers) {
  std::atomic<int> alive{0};
  ActorSystem system(threads(1), {.drain_time = 10ms});
  auto spinner = system.spawn<Spinner>({});
  spinner.tell(Spin{}).take();
  auto adder = system.spawn<Adder>({}, &alive);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(adder.ask(Sum{}, kPatience).get(), 0);
  system.shutdown();  // the drain is bounded
  EXPECT_TRUE(spinner.ended());
}

/// Says when its object is gone.
class Mortal : public Actor<Mortal, Spin> {
 public:
  explicit Mortal(std::atomic<int>* gone) : gone_(gone) {}
  ~Mortal() {
    std::this_thread::sleep_for(5ms);
    ++*gone_;
  }
  void on(Spin) {}

 private:
  std::atomic<int>* gone_;
};

TEST(ProductionScheduler, WhoWaitsForAnActorsEndFindsItsObjectGone) {
  std::atomic<int> gone{0};
  ActorSystem system(threads(2));
  for (int round = 1; round <= 20; ++round) {
    const auto mortal = system.spawn<Mortal>({}, &gone);
    mortal.tell(Spin{}).take();
    mortal.stop();
    mortal.wait_ended();
    EXPECT_EQ(gone, round);
    mortal.wait_ended();  // again: at once
  }
}

struct Wake {
  std::chrono::nanoseconds after;
};
struct Rung {
  int number;
};
class Alarm : public Actor<Alarm, Wake, Rung> {
 public:
  Alarm(std::binary_semaphore* rung, std::atomic<TimePoint::rep>* at) : rung_(rung), at_(at) {}
  void on(Wake wake) { context().schedule(wake.after, Rung{1}); }
  void on(Rung) {
    at_->store(context().now().count());
    rung_->release();
  }

 private:
  std::binary_semaphore* rung_;
  std::atomic<TimePoint::rep>* at_;
};

TEST(ProductionScheduler, TimersFireNotBeforeTheirTime) {
  std::binary_semaphore rung(0);
  std::atomic<TimePoint::rep> at{0};
  ActorSystem system(threads(2));
  auto alarm = system.spawn<Alarm>({}, &rung, &at);
  alarm.tell(Wake{1h}).take();  // a later timer must not delay an earlier one
  const auto before = system.clock().now();
  alarm.tell(Wake{20ms}).take();
  ASSERT_TRUE(rung.try_acquire_for(kPatience));
  EXPECT_GE(TimePoint(at.load()) - before, 20ms);
}

struct Hang {
  using Reply = int;
};
class Silent : public Actor<Silent, Hang> {
 public:
  Future<int> on(Hang) {
    promises_.emplace_back();
    return promises_.back().future();
  }

 private:
  std::vector<Promise<int>> promises_;
};

TEST(ProductionScheduler, DeadlinesPassInRealTime) {
  ActorSystem system(threads(2));
  auto silent = system.spawn<Silent>({});
  EXPECT_EQ(silent.ask(Hang{}, 5ms).wait().code(), Errc::timeout);
}

TEST(ProductionScheduler, ShutdownUnderFireResolvesEveryQuestion) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> alive{0};
    auto system = std::make_unique<ActorSystem>(threads(2), SystemOptions{.drain_time = 1ms});
    auto adder = system->spawn<Adder>({.mailbox_capacity = 16}, &alive);
    auto silent = system->spawn<Silent>({.mailbox_capacity = 16});
    std::latch started(3);
    std::atomic<int> answered{0};
    std::vector<std::jthread> askers;
    for (int i = 0; i < 3; ++i) {
      askers.emplace_back([&] {
        started.count_down();
        for (;;) {
          auto unanswered = silent.ask(Hang{}, 1h);
          const auto code = adder.ask(Sum{}, 1h).wait().code();
          if (code == Errc::ok) answered.fetch_add(1);
          if (code == Errc::stopped) {
            EXPECT_FALSE(unanswered.wait().ok());
            return;
          }
        }
      });
    }
    started.wait();
    while (answered.load() < 50) std::this_thread::yield();
    system.reset();
    askers.clear();  // returns: every future has resolved
    EXPECT_EQ(alive.load(), 0);
  }
}

struct Crash {};
class Crashing : public Actor<Crashing, Crash, Add, Sum> {
 public:
  void on(Crash) { throw Exception(Error{Errc::device_lost, 700, "crash"}); }
  void on(Add add) { sum_ += add.amount; }
  long on(Sum) { return sum_; }

 private:
  long sum_ = 0;
};

TEST(ProductionScheduler, RestartsUnderLoadLoseNoQuestion) {
  ActorSystem system(threads(2));
  auto crashing = system.spawn<Crashing>({.supervision = {.max_restarts = 1'000'000}});
  std::vector<std::jthread> senders;
  std::atomic<int> answered{0};
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back([&] {
      for (int n = 0; n < 300; ++n) {
        (void)tell_patiently(crashing, Crash{});
        (void)tell_patiently(crashing, Add{1});
        if (crashing.ask(Sum{}, kPatience).wait().ok()) answered.fetch_add(1);
      }
    });
  }
  senders.clear();
  EXPECT_EQ(answered.load(), 900);
}

}  // namespace
}  // namespace troupe
