// Futures: one outcome, delivered once, whatever waits for it and from how many threads.
#include <troupe/future.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/core/continuations.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

const Error kLost{Errc::device_lost, 700, "gone"};

TEST(Future, HasTheValueOnceResolved) {
  Promise<int> promise;
  const auto future = promise.future();
  EXPECT_TRUE(future.valid());
  EXPECT_FALSE(future.ready());
  EXPECT_FALSE(future.wait_for(1ms));
  EXPECT_TRUE(promise.resolve(7));
  EXPECT_TRUE(future.ready());
  EXPECT_TRUE(future.wait_for(0ns));
  EXPECT_EQ(future.get(), 7);
  EXPECT_EQ(future.get(), 7) << "getting takes nothing away";
  EXPECT_FALSE(Future<int>().valid());
}

TEST(Future, ThrowsTheErrorFromGetAlone) {
  const Future<int> future(Result<int>{kLost});
  EXPECT_EQ(future.wait().code(), Errc::device_lost);
  try {
    (void)future.get();
    FAIL() << "get() returned";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().native, 700);
  }
}

TEST(Future, TheFirstOutcomeWins) {
  Promise<int> promise;
  EXPECT_TRUE(promise.resolve(1));
  EXPECT_FALSE(promise.resolve(2));
  EXPECT_FALSE(promise.resolve(kLost));
  EXPECT_EQ(promise.future().get(), 1);
}

TEST(Future, ADroppedPromiseIsAnError) {
  Future<int> dropped, overwritten;
  {
    Promise<int> promise;
    dropped = promise.future();
  }
  EXPECT_EQ(dropped.wait().code(), Errc::stopped);
  Promise<int> promise;
  overwritten = promise.future();
  promise = Promise<int>();
  EXPECT_EQ(overwritten.wait().code(), Errc::stopped);
  Promise<int> source;
  const auto moved = source.future();
  {
    Promise<int> target(std::move(source));
    EXPECT_FALSE(moved.ready()) << "moving drops nothing";
    target.resolve(3);
  }
  EXPECT_EQ(moved.get(), 3);
}

TEST(Future, ThenMapsValuesAndPassesErrorsOn) {
  Promise<int> promise;
  const auto text = promise.future().then([](int value) { return std::to_string(value); });
  const auto length = text.then([](const std::string& value) { return value.size(); });
  std::string seen;
  const auto nothing = text.then([&](const std::string& value) { seen = value; });
  const auto after = nothing.then([&] { return 1; });
  promise.resolve(1234);
  EXPECT_EQ(text.get(), "1234");
  EXPECT_EQ(length.get(), 4u);
  EXPECT_EQ(seen, "1234");
  EXPECT_EQ(after.get(), 1);

  bool called = false;
  Promise<void> failing;
  const auto chain = failing.future().then([&] { called = true; }).then([&] { called = true; });
  failing.resolve(kLost);
  EXPECT_EQ(chain.wait().code(), Errc::device_lost);
  EXPECT_FALSE(called);
}

TEST(Future, ContinuationsRunOnceInTheirOrder) {
  Promise<void> promise;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i)
    promise.future().on_ready([&order, i](const Result<void>&) { order.push_back(i); });
  promise.resolve({});
  promise.future().on_ready([&order](const Result<void>&) { order.push_back(5); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(Future, AContinuationMayDropTheLastReference) {
  auto promise = std::make_unique<Promise<int>>();
  auto future = std::make_unique<Future<int>>(promise->future());
  int seen = 0;
  future->on_ready([&](const Result<int>& outcome) {
    future.reset();
    seen = *outcome;
  });
  promise->resolve(5);
  promise.reset();
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(future, nullptr);
}

TEST(Future, WhatAContinuationHoldsIsFreedWithOrWithoutAnOutcome) {
  const auto token = std::make_shared<int>(1);
  {
    Promise<void> resolved, dropped;
    resolved.future().on_ready([token](const Result<void>&) {});
    dropped.future().on_ready([token](const Result<void>&) {});
    EXPECT_EQ(token.use_count(), 3);
    resolved.resolve({});
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(WhenAll, WaitsForAllAndTellsTheFirstErrorInOrder) {
  EXPECT_TRUE(when_all({}).wait().ok());
  std::array<Promise<void>, 3> promises;
  const auto all = when_all({promises[0].future(), promises[1].future(), promises[2].future()});
  promises[2].resolve(Error{Errc::timeout, 0, "later in order"});
  promises[0].resolve({});
  EXPECT_FALSE(all.ready());
  promises[1].resolve(kLost);
  EXPECT_EQ(all.wait().code(), Errc::device_lost);
  const auto now = when_all({Future<void>(Result<void>()), Future<void>(Result<void>())});
  EXPECT_TRUE(now.wait().ok());
}

Future<int> sum_of(Future<int> a, Future<int> b) {
  co_return co_await a + co_await b;
}
Future<void> twice(Future<int> a, int* out) {
  *out = 2 * co_await a;
  co_await Future<void>(Result<void>());
}
Future<int> throws_another() {
  throw std::runtime_error("of its own");
  co_return 1;
}

TEST(Coroutine, AwaitsValuesAndErrors) {
  Promise<int> a, b;
  const auto sum = sum_of(a.future(), b.future());
  int doubled = 0;
  const auto done = twice(a.future(), &doubled);
  b.resolve(30);
  EXPECT_FALSE(sum.ready());
  a.resolve(4);
  EXPECT_EQ(sum.get(), 34);
  done.get();
  EXPECT_EQ(doubled, 8);

  const auto failed = sum_of(Future<int>(Result<int>(1)), Future<int>(Result<int>(kLost)));
  EXPECT_EQ(failed.wait().code(), Errc::device_lost)
      << "an awaited error ends the coroutine with it";
  EXPECT_EQ(failed.wait().error().native, 700);
  EXPECT_EQ(throws_another().wait().code(), Errc::internal);
}

Future<int> throws_no_exception() {
  throw 42;
  co_return 1;
}

/// The account of errors, kept by the test.
class ErrorAccount {
 public:
  ErrorAccount() {
    detail::set_error_account([this](Error error, detail::Heard heard) {
      error.read = std::make_shared<std::atomic<bool>>(false);
      entered.emplace_back(error, heard);
      return error;
    });
  }
  ~ErrorAccount() { detail::set_error_account(nullptr); }
  std::vector<std::pair<Error, detail::Heard>> entered;
};

TEST(Future, WhatAFunctionThrowsIsTheErrorOfItsFuture) {
  ErrorAccount account;
  Promise<int> promise;
  const auto next = promise.future().then([](int) -> int { throw std::runtime_error("no luck"); });
  const auto after = next.then([](int value) { return value; });
  promise.resolve(1);
  ASSERT_EQ(account.entered.size(), 1u) << "once, however often it is passed on";
  EXPECT_FALSE(account.entered[0].first.read->load());
  EXPECT_EQ(after.wait().code(), Errc::internal);
  EXPECT_EQ(after.wait().error().message, "no luck");
  EXPECT_TRUE(account.entered[0].first.read->load());

  EXPECT_EQ(throws_no_exception().wait().code(), Errc::internal);
  const auto of_troupe = Future<void>(Result<void>()).then([] {
    throw Exception({Errc::out_of_memory, 7, "no room"});
  });
  EXPECT_EQ(of_troupe.wait().code(), Errc::out_of_memory);
  EXPECT_EQ(account.entered.size(), 3u);
  // The error that get() throws was entered when its function failed, and is not entered again.
  const auto passed = Future<void>(Result<void>()).then([&] { (void)after.get(); });
  EXPECT_FALSE(account.entered[0].first.read->load()) << "it is only passed on";
  EXPECT_EQ(passed.wait().code(), Errc::internal);
  EXPECT_EQ(account.entered.size(), 3u);
}

TEST(Future, WhatAFunctionWithoutAFutureThrowsIsEntered) {
  ErrorAccount account;
  Promise<void> promise;
  promise.future().on_ready([](const Result<void>&) { throw std::runtime_error("unheard"); });
  promise.resolve({});
  ASSERT_EQ(account.entered.size(), 1u);
  EXPECT_EQ(account.entered[0].first.message, "unheard");
  EXPECT_EQ(account.entered[0].second, detail::Heard::by_all);
}

/// A timeline that the test holds.
struct OwnTimeline {
  ~OwnTimeline() { state->release(); }
  detail::TimelineState* state = new detail::TimelineState;
};

TEST(Timeline, AFunctionWorksForThatOfTheThreadThatGivesIt) {
  const OwnTimeline one, other;
  Promise<void> promise;
  std::vector<detail::TimelineState*> seen;
  const auto look = [&] { seen.push_back(detail::bound_timeline()); };
  (void)promise.future().then(look);
  {
    const detail::Binding binding(one.state);
    (void)promise.future().then(look);
    (void)promise.future().then([&] { (void)Future<void>(Result<void>()).then(look); });
    EXPECT_EQ(one.state->work().waiting, 2u);
  }
  std::thread([&] {
    const detail::Binding binding(other.state);
    promise.resolve({});
    EXPECT_EQ(detail::bound_timeline(), other.state);
  }).join();
  EXPECT_EQ(seen, (std::vector<detail::TimelineState*>{nullptr, one.state, one.state}));
  EXPECT_EQ(one.state->work().waiting + one.state->work().active, 0u);
  EXPECT_EQ(one.state->starts(), 2u);
  EXPECT_EQ(other.state->starts(), 0u);
}

TEST(Timeline, CountsWhatIsUnderWayForIt) {
  const OwnTimeline one;
  const detail::Binding binding(one.state);
  {
    Promise<void> dropped;
    (void)dropped.future().then([] {});
    (void)when_all({dropped.future()});
    EXPECT_EQ(one.state->work().waiting, 1u) << "when_all() waits for nothing of the program's";
  }
  EXPECT_EQ(one.state->work().waiting, 0u);
  const auto timeline = Timeline::of_this_thread();
  std::thread([&] {
    EXPECT_FALSE(Timeline::of_this_thread());
    const Timeline::Scope scope(timeline);
    EXPECT_TRUE(Timeline::of_this_thread().current());
    EXPECT_EQ(one.state->work().active, 1u);
    const Timeline::Scope none{Timeline()};
    EXPECT_FALSE(Timeline::of_this_thread());
  }).join();
  EXPECT_EQ(one.state->work().active, 0u);
  one.state->set_standing(detail::TimelineState::Standing::over);
  EXPECT_FALSE(timeline.current());
}

TEST(Timeline, WhatIsUndoneHasNoErrors) {
  ErrorAccount account;
  const OwnTimeline one;
  const detail::Binding binding(one.state);
  one.state->set_standing(detail::TimelineState::Standing::undone);
  const auto failed = Future<void>(Result<void>()).then([] { throw std::runtime_error("late"); });
  EXPECT_EQ(failed.wait().code(), Errc::internal);
  EXPECT_TRUE(account.entered.empty());
}

/// Work that only gets done by whoever waits for it.
class Pump final : public detail::Progress {
 public:
  void poll() noexcept override {
    if (polls.fetch_add(1) + 1 == resolve_at) promise->resolve(11);
  }
  void before_sleep() noexcept override { ++sleeps; }
  [[nodiscard]] std::chrono::nanoseconds spin_time() const noexcept override { return spin; }

  std::atomic<int> polls{0}, sleeps{0};
  int resolve_at = 0;
  std::chrono::nanoseconds spin{0};
  Promise<int>* promise = nullptr;
};

TEST(Progress, AWaiterDoesTheWorkItself) {
  Pump pump;
  Promise<int> promise(&pump);
  pump.promise = &promise;
  pump.spin = 20s;
  pump.resolve_at = 1000;
  EXPECT_EQ(promise.future().get(), 11);
  EXPECT_EQ(pump.sleeps, 0) << "it came while spinning";
}

TEST(Progress, ASleeperAnnouncesItselfAndLooksOnceMore) {
  Pump pump;  // no spinning: one look, the announcement, another look
  Promise<int> promise(&pump);
  pump.promise = &promise;
  pump.resolve_at = 2;
  EXPECT_EQ(promise.future().get(), 11);
  EXPECT_EQ(pump.sleeps, 1);
  EXPECT_EQ(pump.polls, 2);
}

TEST(Threads, EveryKindOfWaiterSeesEveryOutcomeOnce) {
  constexpr int kRounds = 2000;
  constexpr unsigned kThreads = 4;
  std::vector<Promise<int>> promises(kRounds);
  std::vector<Future<int>> futures;
  for (const auto& promise : promises) futures.push_back(promise.future());
  std::atomic<int> wins{0}, continued{0}, waited{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto round = static_cast<std::size_t>(i);
        if (t < 2) {  // two that race to resolve
          wins += promises[round].resolve(i) ? 1 : 0;
        } else {
          futures[round].on_ready(
              [&](const Result<int>& outcome) { continued += outcome.ok() ? 1 : 0; });
          waited += futures[round].get() == i ? 1 : 0;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wins, kRounds);
  EXPECT_EQ(continued, 2 * kRounds);
  EXPECT_EQ(waited, 2 * kRounds);
}

TEST(Threads, SleepersAreWoken) {
  for (int round = 0; round < 200; ++round) {
    Promise<std::string> promise;
    std::vector<std::thread> sleepers;
    std::atomic<int> right{0};
    for (int t = 0; t < 3; ++t) {
      sleepers.emplace_back(
          [future = promise.future(), &right] { right += future.get() == "morning" ? 1 : 0; });
    }
    if (round % 2 == 0) std::this_thread::yield();
    promise.resolve(std::string("morning"));
    for (auto& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(right, 3);
  }
}

TEST(Threads, WhenAllOverPartsResolvedEverywhere) {
  for (int round = 0; round < 300; ++round) {
    std::vector<Promise<void>> promises(40);
    std::vector<Future<void>> parts;
    for (const auto& promise : promises) parts.push_back(promise.future());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&promises, t] {
        for (std::size_t i = t; i < promises.size(); i += 2) promises[i].resolve({});
      });
    }
    EXPECT_TRUE(when_all(std::move(parts)).wait().ok());
    for (auto& thread : threads) thread.join();
  }
}

TEST(Threads, CoroutinesResumeOnTheResolvingThread) {
  for (int round = 0; round < 500; ++round) {
    Promise<int> a, b;
    std::thread first([&] { a.resolve(1); });
    const auto sum = sum_of(a.future(), b.future());
    std::thread second([&] { b.resolve(2); });
    EXPECT_EQ(sum.get(), 3);
    first.join();
    second.join();
  }
}

/// A thread that the runtime cannot spare resolves both; the first one's function waits for the
/// second one.
TEST(Future, AFunctionThatWaitsDoesNotHoldUpAThreadThatMustNotWait) {
  Promise<void> first, second;
  const auto after = first.future().then([other = second.future()] { other.get(); });
  std::thread::id quick, resolver;
  detail::at_once_when_ready(first.future(),
                             [&](const Result<void>&) { quick = std::this_thread::get_id(); });
  std::jthread([&] {
    detail::this_thread_must_not_wait();
    resolver = std::this_thread::get_id();
    first.resolve({});
    second.resolve({});
  });
  after.get();
  EXPECT_EQ(quick, resolver);
  EXPECT_TRUE(detail::wait_for_continuations(60s));
}

TEST(Future, FunctionsOfOneFutureRunInTheirOrderAlsoOnOtherThreads) {
  Promise<void> promise;
  std::vector<int> order;
  for (int i = 0; i < 8; ++i)
    promise.future().on_ready([&, i](const auto&) { order.push_back(i); });
  std::jthread([&] {
    detail::this_thread_must_not_wait();
    promise.resolve({});
  });
  ASSERT_TRUE(detail::wait_for_continuations(60s));
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

/// More of them wait at one time than there are threads to begin with.
TEST(Future, FunctionsThatWaitForOneAnotherAllRun) {
  constexpr int kFunctions = 16;
  std::vector<Promise<void>> promises(kFunctions);
  std::latch all(kFunctions);
  for (auto& promise : promises)
    promise.future().on_ready([&](const auto&) { all.arrive_and_wait(); });
  std::jthread([&] {
    detail::this_thread_must_not_wait();
    for (auto& promise : promises) promise.resolve({});
  });
  all.wait();
  EXPECT_TRUE(detail::wait_for_continuations(60s));
}

}  // namespace
}  // namespace troupe
