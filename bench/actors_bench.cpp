// Message rates of the actor framework, and of CAF in the same run where that is installed.
//
// Both sides get two worker threads, and actors that live through all iterations. Ping-pong: one
// message goes back and forth between two actors. Four to one: four threads outside the system send
// to one actor. CAF's mailboxes have no bound; ours are full now and then, and the senders wait for
// their turn.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/production_scheduler.hpp>

#if defined(TROUPE_HAVE_CAF)
#include <caf/all.hpp>
#endif

namespace {

constexpr int kWorkers = 2;
constexpr int kRoundTrips = 200'000;
constexpr int kSenders = 4;
constexpr int kMessagesPerSender = 100'000;

using Done = std::binary_semaphore;

void report_ping_pong(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * 2 * kRoundTrips);
}

void report_four_to_one(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kSenders * kMessagesPerSender);
}

/// Runs `send_all` on kSenders threads at once and waits for them.
template <class F>
void from_four_threads(const F& send_all) {
  std::vector<std::jthread> senders;
  for (int i = 0; i < kSenders; ++i) senders.emplace_back(send_all);
}

// ---- troupe
// -----------------------------------------------------------------------------------------------

struct Ball {
  int bounces_left;
};
class Player;
struct Serve {
  int bounces;
};
struct MeetPartner {
  troupe::ActorRef<Player> partner;
};

class Player : public troupe::Actor<Player, MeetPartner, Serve, Ball> {
 public:
  explicit Player(Done* done) : done_(done) {}
  void on(MeetPartner&& message) { partner_ = std::move(message.partner); }
  troupe::Result<void> on(Serve serve) { return partner_.tell(Ball{serve.bounces}); }
  troupe::Result<void> on(Ball ball) {
    if (ball.bounces_left > 1) return partner_.tell(Ball{ball.bounces_left - 1});
    done_->release();
    return {};
  }

 private:
  Done* done_;
  troupe::ActorRef<Player> partner_;
};

struct Count {
  int amount;
};

class Counter : public troupe::Actor<Counter, Count> {
 public:
  Counter(int total, Done* done) : total_(total), done_(done) {}
  void on(Count count) {
    seen_ += count.amount;
    if (seen_ < total_) return;
    seen_ = 0;
    done_->release();
  }

 private:
  int total_;
  int seen_ = 0;
  Done* done_;
};

struct Question {
  using Reply = int;
  int value;
};

class Echo : public troupe::Actor<Echo, Question> {
 public:
  int on(Question question) { return question.value; }
};

void troupe_ping_pong(benchmark::State& state) {
  troupe::ActorSystem system(troupe::ProductionScheduler::start({.workers = kWorkers}).take());
  Done done(0);
  auto ping = system.spawn<Player>({.name = "ping"}, &done);
  auto pong = system.spawn<Player>({.name = "pong"}, &done);
  ping.tell(MeetPartner{pong}).take();
  pong.tell(MeetPartner{ping}).take();
  for (auto _ : state) {
    ping.tell(Serve{2 * kRoundTrips}).take();
    done.acquire();
  }
  report_ping_pong(state);
}
BENCHMARK(troupe_ping_pong)->UseRealTime()->Unit(benchmark::kMillisecond);

void troupe_four_to_one(benchmark::State& state) {
  troupe::ActorSystem system(troupe::ProductionScheduler::start({.workers = kWorkers}).take());
  Done done(0);
  auto counter = system.spawn<Counter>({.name = "counter", .mailbox_capacity = 4096},
                                       kSenders * kMessagesPerSender, &done);
  for (auto _ : state) {
    from_four_threads([&] {
      for (int i = 0; i < kMessagesPerSender; ++i) {
        while (!counter.tell(Count{1}).ok()) std::this_thread::yield();
      }
    });
    done.acquire();
  }
  report_four_to_one(state);
}
BENCHMARK(troupe_four_to_one)->UseRealTime()->Unit(benchmark::kMillisecond);

/// Question and answer with a deadline, from a thread outside: two thread switches each.
void troupe_ask(benchmark::State& state) {
  troupe::ActorSystem system(troupe::ProductionScheduler::start({.workers = kWorkers}).take());
  auto echo = system.spawn<Echo>({.name = "echo"});
  for (auto _ : state) {
    benchmark::DoNotOptimize(echo.ask(Question{1}, std::chrono::seconds(10)).get());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(troupe_ask)->UseRealTime()->Unit(benchmark::kMicrosecond);

// ---- CAF
// --------------------------------------------------------------------------------------------------

#if defined(TROUPE_HAVE_CAF)

struct CafSystem {
  CafSystem() {
    config.set("scheduler.max-threads", kWorkers);
    system.emplace(config);
  }
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
};

/// Messages: an actor to meet, a ball (int32), a serve (int64).
caf::behavior caf_player(caf::stateful_actor<caf::actor>* self, Done* done) {
  return {
      [self](const caf::actor& partner) { self->state = partner; },
      [self](std::int64_t bounces) { self->send(self->state, static_cast<std::int32_t>(bounces)); },
      [self, done](std::int32_t bounces_left) {
        if (bounces_left > 1) {
          self->send(self->state, bounces_left - 1);
        } else {
          done->release();
        }
      }};
}

void caf_ping_pong(benchmark::State& state) {
  CafSystem caf_system;
  Done done(0);
  auto ping = caf_system.system->spawn(caf_player, &done);
  auto pong = caf_system.system->spawn(caf_player, &done);
  caf::anon_send(ping, pong);
  caf::anon_send(pong, ping);
  for (auto _ : state) {
    caf::anon_send(ping, std::int64_t{2 * kRoundTrips});
    done.acquire();
  }
  report_ping_pong(state);
  caf::anon_send(ping, caf::actor());  // so that they do not keep each other alive
  caf::anon_send(pong, caf::actor());
}
BENCHMARK(caf_ping_pong)->UseRealTime()->Unit(benchmark::kMillisecond);

void caf_four_to_one(benchmark::State& state) {
  CafSystem caf_system;
  Done done(0);
  auto counter = caf_system.system->spawn([&done](caf::event_based_actor*) {
    return caf::behavior{[&done, seen = 0](std::int32_t amount) mutable {
      seen += amount;
      if (seen < kSenders * kMessagesPerSender) return;
      seen = 0;
      done.release();
    }};
  });
  for (auto _ : state) {
    from_four_threads([&] {
      for (int i = 0; i < kMessagesPerSender; ++i) caf::anon_send(counter, std::int32_t{1});
    });
    done.acquire();
  }
  report_four_to_one(state);
}
BENCHMARK(caf_four_to_one)->UseRealTime()->Unit(benchmark::kMillisecond);

#endif

}  // namespace
