// Directives, restarts and their budget, on a clock that stands still.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/restart_budget.hpp>
#include <troupe/actor/stepped_scheduler.hpp>
#include <troupe/actor/supervision.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(RestartBudget, SlidesWithTheWindow) {
  RestartBudget budget(3, 60s);
  EXPECT_EQ(budget.left(0s), 3);
  EXPECT_TRUE(budget.spend(0s));
  EXPECT_TRUE(budget.spend(10s));
  EXPECT_TRUE(budget.spend(20s));
  EXPECT_EQ(budget.left(20s), 0);
  EXPECT_FALSE(budget.spend(59s));
  EXPECT_EQ(budget.left(60s), 1) << "the restart at 0 s no longer counts";
  EXPECT_TRUE(budget.spend(60s));
  EXPECT_FALSE(budget.spend(69s));
  EXPECT_TRUE(budget.spend(70s));
  EXPECT_EQ(budget.left(1000s), 3);
}

TEST(RestartBudget, OfNoneAllowsNone) {
  RestartBudget budget(0, 60s);
  EXPECT_EQ(budget.left(0s), 0);
  EXPECT_FALSE(budget.spend(0s));
}

TEST(Supervision, DefaultDeciderFollowsTheErrorClass) {
  for (auto code : {Errc::invalid, Errc::unsupported, Errc::out_of_memory, Errc::library,
                    Errc::stale, Errc::timeout, Errc::would_block, Errc::stopped}) {
    EXPECT_EQ(default_decider({code, 0, ""}), Directive::resume) << to_string(code);
  }
  EXPECT_EQ(default_decider({Errc::device_lost, 0, ""}), Directive::restart);
  EXPECT_EQ(default_decider({Errc::device_failed, 0, ""}), Directive::stop);
  EXPECT_EQ(default_decider({Errc::internal, 0, ""}), Directive::escalate);
}

struct Fail {
  Errc code;
};
struct FailByReturn {
  Errc code;
};
struct FailByReport {
  Errc code;
};
struct Surprise {};
struct Bump {
  using Reply = int;
};
struct Later {};
struct SetTimer {};

/// Counts its messages, so that a fresh object can be told from a kept one.
class Worker
    : public Actor<Worker, Fail, FailByReturn, FailByReport, Surprise, Bump, Later, SetTimer> {
 public:
  explicit Worker(int* objects) { ++*objects; }
  void on(Fail fail) { throw Exception(Error{fail.code, 7, "failed"}); }
  Result<void> on(FailByReturn fail) { return Error{fail.code, 0, "returned"}; }
  void on(FailByReport fail) { context().fail({fail.code, 0, "reported"}); }
  void on(Surprise) { throw std::runtime_error("surprise"); }
  int on(Bump) { return ++count_; }
  void on(Later) { count_ += 100; }
  void on(SetTimer) { context().schedule(10ms, Later{}); }

 private:
  int count_ = 0;
};

struct HireWorker {
  using Reply = ActorRef<Worker>;
};

class Boss : public Actor<Boss, HireWorker, Down> {
 public:
  Boss(std::vector<Down>* downs, int* objects, int* workers) : downs_(downs), objects_(workers) {
    ++*objects;
  }
  ActorRef<Worker> on(HireWorker) { return context().spawn<Worker>({.name = "worker"}, objects_); }
  void on(Down down) { downs_->push_back(std::move(down)); }

 private:
  std::vector<Down>* downs_;
  int* objects_;
};

class ActorSupervision : public ::testing::Test {
 protected:
  int bump() {
    auto answer = worker_.ask(Bump{}, 1s);
    scheduler_->run_until_idle();
    return answer.get();
  }
  template <class M>
  void send(M message) {
    worker_.tell(std::move(message)).take();
    scheduler_->run_until_idle();
  }

  int objects_ = 0;
  std::vector<std::string> failures_;
  std::shared_ptr<SteppedScheduler> scheduler_ = std::make_shared<SteppedScheduler>();
  ActorSystem system_{scheduler_, {.on_failure = [this](const Failure& failure) {
                        failures_.push_back(std::string(failure.name) + " " +
                                            std::string(to_string(failure.error.code)) + " " +
                                            std::string(to_string(failure.directive)));
                      }}};
  ActorRef<Worker> worker_ = system_.spawn<Worker>({.name = "worker"}, &objects_);
};

TEST_F(ActorSupervision, ResumeKeepsTheObject) {
  EXPECT_EQ(bump(), 1);
  send(Fail{Errc::library});
  send(FailByReturn{Errc::invalid});
  send(FailByReport{Errc::timeout});
  EXPECT_EQ(bump(), 2);
  EXPECT_EQ(objects_, 1);
  EXPECT_EQ(failures_, (std::vector<std::string>{"worker library resume", "worker invalid resume",
                                                 "worker timeout resume"}));
}

TEST_F(ActorSupervision, RestartMakesANewObjectAtTheSameAddressAndKeepsTheMailbox) {
  EXPECT_EQ(bump(), 1);
  const auto id = worker_.id();
  worker_.tell(Fail{Errc::device_lost}).take();
  auto queued = worker_.ask(Bump{}, 1s);
  scheduler_->run_until_idle();
  EXPECT_EQ(queued.get(), 1) << "handled by the new object";
  EXPECT_EQ(objects_, 2);
  EXPECT_EQ(worker_.id(), id);
}

TEST_F(ActorSupervision, TimersEndWithTheObject) {
  send(SetTimer{});
  send(Fail{Errc::device_lost});
  scheduler_->advance(1s);
  EXPECT_EQ(bump(), 1) << "the old object's timer must not reach the new one";
}

TEST_F(ActorSupervision, StopEndsTheActor) {
  send(Fail{Errc::device_failed});
  EXPECT_TRUE(worker_.ended());
  EXPECT_EQ(worker_.tell(Later{}).code(), Errc::stopped);
}

TEST_F(ActorSupervision, PastTheBudgetTheActorIsStopped) {
  for (int i = 0; i < 3; ++i) {
    send(Fail{Errc::device_lost});
    scheduler_->advance(1s);
  }
  EXPECT_EQ(objects_, 4);
  EXPECT_FALSE(worker_.ended());
  send(Fail{Errc::device_lost});
  EXPECT_TRUE(worker_.ended());
  EXPECT_EQ(objects_, 4);
}

TEST_F(ActorSupervision, TheBudgetRecoversWithTime) {
  for (int i = 0; i < 10; ++i) {
    send(Fail{Errc::device_lost});
    scheduler_->advance(20s);
  }
  EXPECT_FALSE(worker_.ended());
  EXPECT_EQ(objects_, 11);
}

TEST_F(ActorSupervision, AnOwnDeciderDecides) {
  auto stubborn = system_.spawn<Worker>(
      {.supervision = {.decider = [](const Error&) { return Directive::restart; },
                       .max_restarts = 1}},
      &objects_);
  stubborn.tell(Fail{Errc::invalid}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(objects_, 3);
  EXPECT_FALSE(stubborn.ended());
  stubborn.tell(Fail{Errc::invalid}).take();
  scheduler_->run_until_idle();
  EXPECT_TRUE(stubborn.ended());
}

TEST_F(ActorSupervision, ParentsHearOfAnExhaustedBudget) {
  std::vector<Down> downs;
  int bosses = 0;
  auto boss = system_.spawn<Boss>({.name = "boss"}, &downs, &bosses, &objects_);
  auto hired = boss.ask(HireWorker{}, 1s);
  scheduler_->run_until_idle();
  worker_ = hired.get();
  for (int i = 0; i < 4; ++i) send(Fail{Errc::device_lost});
  ASSERT_EQ(downs.size(), 1u);
  EXPECT_EQ(downs[0].id, worker_.id());
  EXPECT_EQ(downs[0].reason.code, Errc::budget_exhausted);
  EXPECT_EQ(downs[0].reason.native, 7) << "the native code is kept";
  EXPECT_EQ(bosses, 1);
}

TEST_F(ActorSupervision, EscalationFailsTheParent) {
  std::vector<Down> downs;
  int bosses = 0;
  auto boss = system_.spawn<Boss>(
      {.name = "boss", .supervision = {.decider = [](const Error&) { return Directive::restart; }}},
      &downs, &bosses, &objects_);
  auto first = boss.ask(HireWorker{}, 1s);
  auto second = boss.ask(HireWorker{}, 1s);
  scheduler_->run_until_idle();
  worker_ = first.get();
  failures_.clear();
  send(Surprise{});
  EXPECT_EQ(failures_,
            (std::vector<std::string>{"worker internal escalate", "boss internal restart"}));
  EXPECT_EQ(bosses, 2);
  EXPECT_TRUE(worker_.ended());
  EXPECT_TRUE(second.get().ended()) << "a restart ends the children of the old object";
  EXPECT_FALSE(boss.ended());
}

/// Fails to be made a given number of times.
class Fragile : public Actor<Fragile, Bump> {
 public:
  explicit Fragile(int* failures_left) {
    if ((*failures_left)-- > 0) throw Exception(Error{Errc::library, 0, "no luck"});
  }
  int on(Bump) { return 1; }
};

TEST_F(ActorSupervision, AConstructorThatFailsIsTriedAgainWithinTheBudget) {
  int twice = 2;
  auto lucky = system_.spawn<Fragile>({}, &twice);
  auto answer = lucky.ask(Bump{}, 1s);
  scheduler_->run_until_idle();
  EXPECT_EQ(answer.get(), 1);

  int always = 100;
  auto hopeless = system_.spawn<Fragile>({}, &always);
  auto unanswered = hopeless.ask(Bump{}, 1s);
  scheduler_->run_until_idle();
  EXPECT_TRUE(hopeless.ended());
  EXPECT_EQ(unanswered.wait().code(), Errc::stopped);
  EXPECT_EQ(always, 96) << "one attempt and three restarts";
}

/// Has a child, for which its restart waits.
class Parent : public Actor<Parent, Fail, Bump, Later> {
 public:
  explicit Parent(std::vector<int>* later) : later_(later) {}
  void on_start() override { context().spawn<Fragile>({}, &luck_); }
  void on(Fail fail) {
    failed_ = true;
    throw Exception(Error{fail.code, 0, "failed"});
  }
  int on(Bump) { return 1; }
  void on(Later) { later_->push_back(failed_ ? 1 : 2); }

 private:
  std::vector<int>* later_;
  bool failed_ = false;
  int luck_ = 0;
};

TEST_F(ActorSupervision, WhatIsPipedToAnActorThatRestartsWaitsForTheNextObject) {
  std::vector<int> later;
  auto parent = system_.spawn<Parent>({}, &later);
  scheduler_->run_until_idle();
  failures_.clear();
  parent.tell(Fail{Errc::device_lost}).take();
  while (failures_.empty()) ASSERT_TRUE(scheduler_->step());
  pipe_to(Future<int>(Result<int>(7)), parent, [](const Result<int>&) { return Later{}; });
  auto answer = parent.ask(Bump{}, 1s);
  while (later.empty()) ASSERT_TRUE(scheduler_->step());
  EXPECT_FALSE(answer.ready()) << "it passes the mailbox";
  scheduler_->run_until_idle();
  EXPECT_EQ(later, std::vector<int>{2});
  EXPECT_EQ(answer.get(), 1);
}

}  // namespace
}  // namespace troupe
