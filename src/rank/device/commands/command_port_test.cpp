// The command port of a rank, with the test as its device host: order, back-pressure, errors, stale
// references, gates.
#include "rank/device/commands/command_port.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include <troupe/lib/collective.hpp>
#include <troupe/lib/vector.hpp>

#include "command_port_rig.hpp"
#include "common/core/continuations.hpp"
#include "rank/device/host/watcher.hpp"

namespace troupe::rank_process {
namespace {

/// Tries a Nop without waiting.
Future<void> try_nop(CommandPort& port) {
  return try_submit(port, memory::Nop{DType::f64});
}

TEST(CommandPort, CommandsArriveInOrderAndResolve) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer();
  std::vector<Future<void>> futures;
  for (int i = 0; i < 10; ++i) futures.push_back(i % 2 == 0 ? rig.nop() : rig.fill(rig.operand(a)));
  host.take(10);
  EXPECT_FALSE(host.take());
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(host.taken[i], i + 1);
  EXPECT_EQ(host.command.name(), "memory.fill");
  ASSERT_TRUE(host.answer(1, 4));
  rig.port.replies().drain();
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(futures[i].ready(), i < 4) << i;
  EXPECT_EQ(rig.port.retired(), 4u);
  ASSERT_TRUE(host.answer(5, 6));
  for (const auto& future : futures)
    EXPECT_TRUE(future.wait().ok()) << "whoever waits drains the replies";
  EXPECT_EQ(rig.port.retired(), 10u);
}

TEST(CommandPort, AnErrorComesWithItsClassCodeAndText) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto failing = rig.nop(), fine = rig.nop();
  host.take(2);
  host.answer(1, 1, Error{Errc::library, 13, "cublasDgemm: execution failed"});
  host.answer(1, 2);  // the batch, in which it stands too: the first answer holds
  EXPECT_EQ(failing.wait().code(), Errc::library);
  EXPECT_EQ(failing.wait().error().native, 13);
  EXPECT_EQ(failing.wait().error().message, "cublasDgemm: execution failed");
  EXPECT_TRUE(fine.wait().ok());
}

TEST(CommandPort, AnswersThatMakeNoSenseHitNobody) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto future = rig.nop();
  host.answer(0, 1);
  host.answer(2, 100);
  host.answer(~std::uint64_t{0} - 3, 10);
  host.answer(1 + TicketTable::kSlots, 1);
  rig.port.replies().drain();
  EXPECT_FALSE(future.ready());
  EXPECT_FALSE(rig.port.corrupt());
  host.answer(1, static_cast<std::uint32_t>(TicketTable::kSlots) + 1);
  rig.port.replies().drain();
  EXPECT_TRUE(rig.port.corrupt()) << "more tickets than there can be";
}

TEST(CommandPort, WhatACommandHasSpoiltGoesStaleBeforeItsFutureTells) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto refused = rig.copy(a, b), spoilt = rig.copy(b, a);
  bool valid = true;
  const_cast<Future<void>&>(spoilt).on_ready(
      [&](const Result<void>&) { valid = rig.port.buffers().valid(a.buffer, a.generation); });
  host.take(2);
  host.answer(1, 1, Error{Errc::library, 1, "it has not begun"});
  host.answer(2, 1, Error{Errc::numeric, 3, "not definite"}, wire::kSpoilt);
  rig.port.replies().drain();
  EXPECT_EQ(refused.wait().code(), Errc::library);
  EXPECT_EQ(spoilt.wait().code(), Errc::numeric);
  EXPECT_EQ(spoilt.wait().error().native, 3);
  EXPECT_FALSE(valid);
  EXPECT_TRUE(rig.port.buffers().valid(b.buffer, b.generation)) << "nothing was done to it";
  EXPECT_EQ(rig.copy(a, b).wait().code(), Errc::stale);
}

TEST(CommandPort, AnUnknownErrorClassIsInternal) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto future = rig.nop();
  host.answer(1, 1, Error{static_cast<Errc>(99), 0, "?"});
  EXPECT_EQ(future.wait().code(), Errc::internal);
}

TEST(CommandPort, AFullRingIsAnAnswerOrAWait) {
  PortRig rig(4096);
  HostEnd host(rig.link);
  std::vector<Future<void>> futures;
  for (;;) {
    auto future = try_nop(rig.port);
    if (future.ready()) {
      EXPECT_EQ(future.wait().code(), Errc::would_block);
      break;
    }
    futures.push_back(std::move(future));
  }
  EXPECT_GT(futures.size(), 50u);
  EXPECT_EQ(rig.port.submitted(), futures.size()) << "a refused command takes no ticket";
  std::atomic<bool> submitted{false};
  std::thread blocked([&] {
    const auto future = rig.nop();
    submitted = true;
    EXPECT_TRUE(future.wait().ok());
  });
  while (host.take()) {
  }
  EXPECT_EQ(host.taken.size(), futures.size());
  EXPECT_EQ(try_nop(rig.port).wait().code(), Errc::would_block)
      << "what is not answered keeps its place, for the next host to run again";
  EXPECT_FALSE(submitted);
  host.answer(1, static_cast<std::uint32_t>(host.taken.size()));
  while (!submitted) std::this_thread::yield();
  ASSERT_TRUE(host.take());
  host.answer(host.taken.back(), 1);
  rig.port.replies().drain();  // there is no watcher to do it for the sleeping thread
  blocked.join();
  for (const auto& future : futures) EXPECT_TRUE(future.wait().ok());
}

TEST(CommandPort, AFullTicketTableIsTheSame) {
  PortRig rig(4u << 20);
  HostEnd host(rig.link);
  for (std::uint64_t i = 0; i < TicketTable::kMaxOpen; ++i) ASSERT_FALSE(try_nop(rig.port).ready());
  EXPECT_EQ(try_nop(rig.port).wait().code(), Errc::would_block);
  while (host.take()) {
  }
  host.answer(1, 5);
  const auto future = rig.nop();  // finds the answers itself
  EXPECT_EQ(rig.port.submitted(), TicketTable::kMaxOpen + 1);
  EXPECT_FALSE(future.ready());
}

TEST(CommandPort, AnAnswerThatDoesNotComeHoldsUpNobody) {
  PortRig rig(4096);
  HostEnd host(rig.link);
  const auto a = rig.add_buffer(), b = rig.add_buffer(), c = rig.add_buffer();
  const auto stuck = rig.copy(rig.operand(b), rig.operand(a));
  host.take(1);
  for (int i = 0; i < 1000; ++i) {  // many times around the ring
    const auto other = try_submit(rig.port, memory::Fill{DType::f64, 8, {}, rig.operand(c)});
    ASSERT_FALSE(other.ready()) << "command " << i << ": " << other.wait().error().to_string();
    host.take(1);
    host.answer(host.taken.back(), 1);
    rig.port.replies().drain();
    ASSERT_TRUE(other.ready());
  }
  for (const auto buffer : {a, b, c}) rig.port.buffers().drop(buffer);
  using Freed = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  EXPECT_EQ(rig.port.buffers().collect_freed(), (Freed{{1, 128}})) << "the others are still in use";
  EXPECT_FALSE(stuck.ready());
  host.answer(1, 1);
  rig.port.replies().drain();
  EXPECT_TRUE(stuck.wait().ok());
  EXPECT_EQ(rig.port.buffers().collect_freed(), (Freed{{1, 0}, {1, 64}}));
}

TEST(CommandPort, PinnedMemoryIsInUseUntilItsLastCommandIsAnswered) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer());
  const Operand pinned{.region = kPinnedRegion | 1, .offset = 64, .bytes = 64};
  auto below = pinned, half = pinned;
  below.offset = 0;
  half.bytes = 32;
  std::vector<Future<void>> copies{rig.copy(a, pinned), rig.copy(a, below), rig.copy(a, pinned)};
  host.take(3);
  EXPECT_EQ(rig.port.users_of(half), (std::vector<std::uint64_t>{1, 3}));
  host.answer(3, 1);
  rig.port.replies().drain();
  EXPECT_EQ(rig.port.users_of(half), std::vector<std::uint64_t>{1});
  EXPECT_TRUE(rig.port.pending(1));
  host.answer(1, 2);
  rig.port.replies().drain();
  EXPECT_TRUE(rig.port.users_of(half).empty());
}

TEST(CommandPort, StaleReferencesAreRefusedBeforeAnythingIsSent) {
  PortRig rig;
  const auto a = rig.add_buffer(), b = rig.add_buffer();
  const auto good = rig.operand(a);
  const auto wrong = [&](auto change) {
    auto operand = rig.operand(b);
    change(operand);
    EXPECT_EQ(rig.copy(operand, good).wait().code(), Errc::stale);
    EXPECT_EQ(rig.copy(good, operand).wait().code(), Errc::stale);
    TailOperand transfer = collective::received(operand, 0);
    const auto sent =
        detail::submit(rig.port, collective::Exchange{DType::f64}, Parts(std::span(&transfer, 1)));
    EXPECT_EQ(sent.wait().code(), Errc::stale);
  };
  wrong([](Operand& operand) { ++operand.generation; });
  wrong([](Operand& operand) { --operand.generation; });
  wrong([](Operand& operand) { operand.region = 2; });
  wrong([](Operand& operand) { operand.buffer = 55; });
  wrong([](Operand& operand) { operand.offset += 8; });
  EXPECT_EQ(rig.port.submitted(), 0u);
  const auto gone = rig.operand(b);
  rig.port.buffers().drop(b);
  EXPECT_EQ(rig.port.buffers().collect_freed().size(), 1u);
  EXPECT_EQ(rig.fill(gone).wait().code(), Errc::stale);
}

TEST(CommandPort, ABufferIsFreedOnceNothingSubmittedNamesIt) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer(), b = rig.add_buffer();
  (void)rig.copy(rig.operand(a), rig.operand(b));
  (void)rig.fill(rig.operand(b));
  rig.port.buffers().drop(a);
  rig.port.buffers().drop(b);
  EXPECT_TRUE(rig.port.buffers().collect_freed().empty());
  host.take(2);
  host.answer(2, 1);
  rig.port.replies().drain();
  EXPECT_TRUE(rig.port.buffers().collect_freed().empty()) << "the first is unanswered";
  host.answer(1, 1);
  rig.port.replies().drain();
  EXPECT_EQ(rig.port.buffers().collect_freed().size(), 2u);
  EXPECT_TRUE(rig.port.buffers().collect_freed().empty());
}

TEST(CommandPort, TooLargeACommandIsInvalid) {
  PortRig rig(4096);
  std::vector<TailOperand> tail(60);
  EXPECT_EQ(detail::submit(rig.port, collective::Exchange{DType::f64}, tail, 0).wait().code(),
            Errc::stale);
  const auto a = rig.add_buffer();
  for (auto& part : tail) part.range = rig.operand(a);
  EXPECT_EQ(detail::submit(rig.port, collective::Exchange{DType::f64}, tail, 0).wait().code(),
            Errc::invalid);
}

TEST(CommandPort, AClosedGateLetsPassOnlyWhoHasPassage) {
  PortRig rig;
  rig.port.gate().close({Errc::world_reformed, 0, "the world is re-formed"});
  EXPECT_EQ(rig.nop().wait().code(), Errc::world_reformed);
  {
    const Gate::Passage passage;
    EXPECT_FALSE(rig.nop().ready());
    std::thread([&] {
      EXPECT_EQ(rig.nop().wait().code(), Errc::world_reformed) << "it is this thread's alone";
    }).join();
  }
  EXPECT_EQ(rig.nop().wait().code(), Errc::world_reformed);
  rig.port.gate().open();
  EXPECT_FALSE(rig.nop().ready());
  EXPECT_EQ(rig.port.submitted(), 2u);
}

TEST(CommandPort, CollectivesOfAnotherEpochAreRefused) {
  PortRig rig;
  const auto a = rig.add_buffer();
  const auto reduce = [&](std::uint32_t epoch) {
    const collective::AllReduce op{DType::f64, ReduceOp::sum, 0, 8, rig.operand(a), rig.operand(a)};
    return detail::submit(rig.port, op, {}, epoch);
  };
  rig.port.gate().set_epoch(Epoch(4));
  EXPECT_EQ(reduce(3).wait().code(), Errc::world_reformed);
  EXPECT_EQ(reduce(5).wait().code(), Errc::world_reformed);
  EXPECT_FALSE(reduce(4).ready());
  rig.port.gate().set_epoch(Epoch(0));
  EXPECT_EQ(reduce(4).wait().code(), Errc::world_reformed) << "0: all do";
  EXPECT_FALSE(rig.nop().ready()) << "other operations have no epoch";
}

TEST(CommandPort, ACorruptReplyRingIsNoticed) {
  PortRig rig;
  (void)rig.nop();
  HostEnd host(rig.link);
  const std::uint64_t word = 1u << 31;
  std::memcpy(host.data() + rig.link->header().command_capacity, &word, sizeof word);
  rig.port.replies().drain();
  EXPECT_TRUE(rig.port.corrupt());
}

TEST(CommandPort, FuturesThatWereDroppedServeLaterCommands) {
  PortRig rig;
  HostEnd host(rig.link);
  constexpr std::uint32_t kMany = 200;
  std::vector<Future<void>> kept;
  std::uint64_t first = 1;
  for (int round = 0; round < 4; ++round, first += kMany) {
    for (std::uint32_t i = 0; i < kMany; ++i) {
      auto future = rig.nop();
      EXPECT_FALSE(future.ready());
      if (i % 10 == 0) kept.push_back(std::move(future));
    }
    host.take(kMany);
    ASSERT_TRUE(host.answer(
        first, kMany, round == 2 ? Result<void>(Error{Errc::library, 0, "x"}) : Result<void>()));
    rig.port.replies().drain();
    EXPECT_EQ(rig.port.retired(), first + kMany - 1);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_TRUE(kept[i].ready());
    EXPECT_EQ(kept[i].wait().code(), i / 20 == 2 ? Errc::library : Errc::ok) << i;
  }
  EXPECT_TRUE(rig.port.outcomes().take_error()) << "that nobody had those futures hides no error";
}

TEST(CommandPort, AContinuationMaySubmitAgain) {
  PortRig rig;
  HostEnd host(rig.link);
  Future<void> second;
  rig.nop().on_ready([&](const Result<void>&) { second = rig.nop(); });
  host.take(1);
  host.answer(1, 1);
  rig.port.replies().drain();
  ASSERT_TRUE(second.valid());
  host.take(1);
  host.answer(2, 1);
  EXPECT_TRUE(second.wait().ok());
}

TEST(CommandPort, FourThreadsKeepTheirOrdersAndAllResolve) {
  constexpr std::uint64_t kThreads = 4, kEach = 5000;
  PortRig rig(8192, std::chrono::microseconds(20));  // small: often full
  const auto a = rig.add_buffer();
  const auto operand = rig.operand(a);
  auto watcher = Watcher::start(rig.port, {[](auto, auto&&) {}, [](auto) {}, [](auto) {}});
  ASSERT_TRUE(watcher.ok());
  (*watcher)->add(rig.link);

  std::thread serving([&] {
    HostEnd host(rig.link);
    std::uint64_t next[kThreads] = {};
    std::uint64_t first = 1, total = 0;
    while (total < kThreads * kEach) {
      std::uint32_t batch = 0;
      while (batch < 16 && host.take()) {
        ++batch;
        const auto* const fill = host.command.as<memory::Fill>();
        ASSERT_NE(fill, nullptr);
        std::uint64_t mark[2];
        std::memcpy(mark, fill->pattern, sizeof mark);
        ASSERT_LT(mark[0], kThreads);
        EXPECT_EQ(mark[1], next[mark[0]]++) << "thread " << mark[0];
      }
      if (batch == 0) host.wait(1000);
      total += batch;
      while (batch != 0 && !host.answer(first, batch)) std::this_thread::yield();
      first += batch;
    }
  });
  std::vector<std::thread> threads;
  std::atomic<std::uint64_t> resolved{0};
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Future<void> last;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        memory::Fill op{DType::c128, 4, {}, operand};
        const std::uint64_t mark[2] = {t, i};
        std::memcpy(op.pattern, mark, sizeof mark);
        last = detail::submit(rig.port, op);
        last.on_ready([&](const Result<void>& outcome) { resolved += outcome.ok() ? 1 : 0; });
        if (i % 100 == t) (void)last.wait();
      }
      EXPECT_TRUE(last.wait_for(std::chrono::seconds(30)));
    });
  }
  for (auto& thread : threads) thread.join();
  serving.join();
  rig.port.replies().drain();
  watcher->reset();
  // What the watcher has resolved is told on threads of their own.
  EXPECT_TRUE(detail::wait_for_continuations(std::chrono::seconds(60)));
  EXPECT_EQ(resolved, kThreads * kEach);
  EXPECT_EQ(rig.port.retired(), kThreads * kEach);
}

TEST(CommandPort, TheWatcherDrainsForWhoOnlyAttachedAContinuation) {
  PortRig rig;
  HostEnd host(rig.link);
  auto watcher = Watcher::start(rig.port, {[](auto, auto&&) {}, [](auto) {}, [](auto) {}});
  ASSERT_TRUE(watcher.ok());
  (*watcher)->add(rig.link);
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const auto then = rig.nop().then([] {});  // a future that polls nothing itself
    host.take(1);
    host.answer(i, 1);
    ASSERT_TRUE(then.wait_for(std::chrono::seconds(20))) << i;
  }
}

/// What is stuck fills its own mailbox: others of the rank's program pass it.
TEST(CommandPort, ALibraryThatIsHeldUpTakesNoMoreThanItsCredits) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const vectors::Multiply multiply{DType::f64, 8, a, a, b};
  host.header().held_up.store(1u << static_cast<unsigned>(library_lane("vector")));
  std::vector<Future<void>> all;
  for (std::uint32_t i = 0; i < wire::kCredits; ++i) {
    all.push_back(try_submit(rig.port, multiply));
    ASSERT_FALSE(all.back().ready()) << i;
  }
  EXPECT_EQ(try_submit(rig.port, multiply).wait().code(), Errc::would_block);
  EXPECT_FALSE(try_submit(rig.port, memory::Nop{DType::f64}).ready()) << "another one waits too";
  host.take(1);
  host.answer(host.taken.front(), 1);
  rig.port.replies().drain();
  all.push_back(try_submit(rig.port, multiply));
  EXPECT_FALSE(all.back().ready()) << "an answer gives a credit back";
  EXPECT_EQ(try_submit(rig.port, multiply).wait().code(), Errc::would_block);
  host.header().held_up.store(0);
  EXPECT_FALSE(try_submit(rig.port, multiply).ready());
  rig.port.hosts().end({Errc::stopped, 0, "the test is over"});
}

/// A run of the test's: the calling thread works for its steps.
class OwnRun {
 public:
  using Standing = detail::TimelineState::Standing;
  OwnRun(CommandPort& port, std::vector<std::uint32_t> buffers)
      : port_(&port), buffers_(std::move(buffers)) {
    turn(Standing::over);
  }
  ~OwnRun() {
    port_->run_guard().turn(nullptr, Standing::over, {});
    (void)detail::bind_timeline(nullptr);
    for (auto* const one : all_) one->release();
  }
  void turn(Standing before) {
    all_.push_back(new detail::TimelineState);
    port_->run_guard().turn(all_.back(), before, buffers_);
    (void)detail::bind_timeline(all_.back());
  }
  [[nodiscard]] detail::TimelineState* timeline(std::size_t number) const { return all_[number]; }

 private:
  CommandPort* port_;
  std::vector<std::uint32_t> buffers_;
  std::vector<detail::TimelineState*> all_;
};

TEST(CommandPortTimelines, WhatIsUndoneIsRefusedAndNobodysError) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto of_run = rig.add_buffer(), other = rig.add_buffer();
  OwnRun run(rig.port, {of_run});
  const auto before = rig.fill(rig.operand(of_run));
  run.turn(OwnRun::Standing::undone);
  EXPECT_FALSE(before.ready()) << "what has been submitted goes on";
  {
    const detail::Binding old(run.timeline(0));
    EXPECT_EQ(rig.fill(rig.operand(of_run)).wait().code(), Errc::world_reformed);
    EXPECT_EQ(rig.fill(rig.operand(other)).wait().code(), Errc::world_reformed);
    EXPECT_EQ(rig.nop().wait().code(), Errc::world_reformed);
    EXPECT_EQ(rig.port.refuse({Errc::invalid, 0, "wrong"}).wait().code(), Errc::invalid);
    EXPECT_EQ(rig.port.run_guard().check("fetch", "destination", rig.operand(other)).code(),
              Errc::world_reformed);
  }
  EXPECT_FALSE(rig.fill(rig.operand(of_run)).ready());
  host.take(2);
  host.answer(1, 2);
  EXPECT_TRUE(rig.port.outcomes().fence().reached.wait().ok()) << "no fence breaks by it";
  EXPECT_FALSE(rig.port.outcomes().take_error());
  EXPECT_EQ(rig.port.outcomes().ledger().unread().count, 0u);
}

TEST(CommandPortTimelines, WhoWorksForNoStepLeavesItsMemoryAlone) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto of_run = rig.add_buffer(), other = rig.add_buffer();
  {
    OwnRun run(rig.port, {of_run});
    run.turn(OwnRun::Standing::over);
    for (auto* const bound : {static_cast<detail::TimelineState*>(nullptr), run.timeline(0)}) {
      const detail::Binding binding(bound);
      EXPECT_EQ(rig.fill(rig.operand(of_run)).wait().code(), Errc::invalid);
      EXPECT_EQ(rig.copy(rig.operand(of_run), rig.operand(other)).wait().code(), Errc::invalid);
      EXPECT_EQ(rig.port.run_guard().check("put", "source", rig.operand(of_run)).code(),
                Errc::invalid);
      EXPECT_FALSE(rig.fill(rig.operand(other)).ready());
      EXPECT_EQ(rig.port.outcomes().take_error()->code, Errc::invalid) << "it is heard";
      const Gate::Passage passage;
      EXPECT_FALSE(rig.fill(rig.operand(of_run)).ready()) << "what troupe does of its own";
    }
    EXPECT_FALSE(rig.fill(rig.operand(of_run)).ready());
  }
  EXPECT_FALSE(rig.fill(rig.operand(of_run)).ready()) << "the run is over";
}

TEST(CommandPortTimelines, KnowsWhatIsAboutToResolve) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto future = rig.nop();
  bool seen = false;
  future.on_ready([&](const Result<void>&) { seen = rig.port.outcomes().resolving(); });
  EXPECT_FALSE(rig.port.outcomes().resolving());
  host.take(1);
  host.answer(1, 1);
  rig.port.replies().drain();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(rig.port.outcomes().resolving());
  {
    Outcomes::Request request(rig.port.outcomes());
    EXPECT_FALSE(rig.port.outcomes().resolving());
    (void)request.end({});
    EXPECT_TRUE(rig.port.outcomes().resolving()) << "its future has yet to hear of it";
  }
  EXPECT_FALSE(rig.port.outcomes().resolving());
}

}  // namespace
}  // namespace troupe::rank_process
