// The stepped scheduler: one message a step, the order from the seed.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/stepped_scheduler.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct Token {
  int hops_left;
};
class Relay;
struct Link {
  ActorRef<Relay> next;
};

/// Passes tokens on round a ring, some at once and some after a while, and writes down who did.
class Relay : public Actor<Relay, Token, Link> {
 public:
  Relay(int number, std::vector<int>* trace) : number_(number), trace_(trace) {}
  void on(Link&& link) { next_ = std::move(link.next); }
  Result<void> on(Token token) {
    trace_->push_back(number_);
    if (token.hops_left == 0) return {};
    if (token.hops_left % 5 == 0) {
      context().schedule(1ms, Token{token.hops_left - 1});
      return {};
    }
    return next_.tell(Token{token.hops_left - 1});
  }

 private:
  int number_;
  std::vector<int>* trace_;
  ActorRef<Relay> next_;
};

std::vector<int> trace_of(std::uint64_t seed) {
  std::vector<int> trace;
  auto scheduler = std::make_shared<SteppedScheduler>(SteppedOptions{.seed = seed});
  ActorSystem system(scheduler);
  std::vector<ActorRef<Relay>> ring;
  for (int i = 0; i < 8; ++i) ring.push_back(system.spawn<Relay>({}, i, &trace));
  for (std::size_t i = 0; i < ring.size(); ++i) {
    ring[i].tell(Link{ring[(i + 1) % ring.size()]}).take();
  }
  scheduler->run_until_idle();
  for (const auto& relay : ring) relay.tell(Token{20}).take();
  scheduler->advance(1s);
  return trace;
}

TEST(SteppedScheduler, TheSameSeedGivesTheSameTrace) {
  for (const std::uint64_t seed : {0u, 1u, 42u}) {
    const auto trace = trace_of(seed);
    EXPECT_EQ(trace.size(), 8u * 21u);
    EXPECT_EQ(trace, trace_of(seed));
  }
}

TEST(SteppedScheduler, DifferentSeedsGiveDifferentOrders) {
  std::set<std::vector<int>> traces;
  for (std::uint64_t seed = 0; seed < 10; ++seed) traces.insert(trace_of(seed));
  EXPECT_EQ(traces.size(), 10u);
}

TEST(SteppedScheduler, AStepHandlesOneMessage) {
  std::vector<int> trace;
  auto scheduler = std::make_shared<SteppedScheduler>();
  ActorSystem system(scheduler);
  auto one = system.spawn<Relay>({}, 1, &trace);
  auto two = system.spawn<Relay>({}, 2, &trace);
  for (int i = 0; i < 3; ++i) {
    one.tell(Token{0}).take();
    two.tell(Token{0}).take();
  }
  for (std::size_t steps = 1; steps <= 6; ++steps) {
    EXPECT_TRUE(scheduler->step());
    EXPECT_EQ(trace.size(), steps);
  }
  EXPECT_EQ(trace, (std::vector<int>{1, 2, 1, 2, 1, 2})) << "seed 0 takes turns";
  scheduler->run_until_idle();
  EXPECT_FALSE(scheduler->step());
}

TEST(SteppedScheduler, RunUntilIdleIsBounded) {
  std::vector<int> trace;
  auto scheduler = std::make_shared<SteppedScheduler>();
  ActorSystem system(scheduler);
  auto self_talker = system.spawn<Relay>({}, 1, &trace);
  self_talker.tell(Link{self_talker}).take();
  self_talker.tell(Token{4}).take();
  EXPECT_EQ(scheduler->run_until_idle(3), 3u);
  EXPECT_EQ(trace.size(), 2u);
  scheduler->run_until_idle();
  EXPECT_EQ(trace.size(), 5u);
}

}  // namespace
}  // namespace troupe
