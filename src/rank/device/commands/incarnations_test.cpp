// What becomes of commands when their device host stops: completed ones stay so, those in flight
// fail and take what they were writing along, the others go on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/collective.hpp>

#include "command_port_rig.hpp"
#include "random_cases.hpp"
#include "rank/device/host/watcher.hpp"

namespace troupe::rank_process {
namespace {

const Error kDead{Errc::device_lost, 9, "killed by signal 9"};
const Error kReformed{Errc::world_reformed, 0, "the world is re-formed"};

TEST(MoveTo, ErrorsNameTheOperationTheBufferAndTheRemedy) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto first = rig.add_buffer(), second = rig.add_buffer();
  rig.port.buffers().set_name(second, "residual");
  const auto from = rig.operand(first), to = rig.operand(second);
  const auto in_flight = rig.copy(from, to);
  const auto behind = rig.fill(from);
  const auto needs_it = rig.copy(to, from);
  host.take(2);
  (void)rig.port.hosts().move_to(make_link(2), kDead);
  const auto says = [](const Future<void>& future, const std::vector<std::string>& words) {
    const auto& text = future.wait().error().message;
    for (const auto& word : words)
      EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
  };
  says(in_flight, {"killed by signal 9", "in flight: memory.copy (ticket 1) and 1 behind it"});
  says(behind, {"in flight: memory.copy (ticket 1)"});
  says(needs_it, {"memory.copy", "source", "were lost"});
  says(rig.fill(to), {"memory.fill: destination: the contents of buffer 1 (residual, 64 of u8)",
                      "lost with a device host", "left out of the checkpoint", "renew()"});
}

TEST(MoveTo, EveryCommandEndsAsItShould) {
  PortRig rig;
  HostEnd host(rig.link);
  std::vector<std::uint32_t> buffer;
  std::vector<Operand> operand;
  for (int i = 0; i < 6; ++i)
    buffer.push_back(rig.add_buffer()), operand.push_back(rig.operand(buffer.back()));

  const auto completed = rig.fill(operand[0]);
  const auto in_flight = rig.copy(operand[0], operand[1]);
  const auto untaken = rig.copy(operand[0], operand[2]);
  const auto reads_lost = rig.copy(operand[1], operand[3]);
  const auto reads_lost_in_turn = rig.copy(operand[3], operand[4]);
  const auto last = rig.fill(operand[5]);
  host.take(2);
  host.answer(1, 1);  // not drained yet

  const auto next = make_link(2);
  const auto settled = rig.port.hosts().move_to(next, kDead);
  EXPECT_TRUE(completed.wait().ok());
  EXPECT_EQ(in_flight.wait().code(), Errc::device_lost);
  EXPECT_EQ(in_flight.wait().error().native, 9);
  EXPECT_FALSE(untaken.ready());
  EXPECT_EQ(reads_lost.wait().code(), Errc::stale);
  EXPECT_EQ(reads_lost_in_turn.wait().code(), Errc::stale);
  EXPECT_FALSE(last.ready());
  EXPECT_EQ(settled.completed, 1u);
  EXPECT_EQ(settled.failed, 3u);
  EXPECT_EQ(settled.resubmitted, 2u);
  EXPECT_EQ(settled.lost_buffers, (std::vector<std::uint32_t>{buffer[1], buffer[3], buffer[4]}));
  for (std::size_t i = 0; i < 6; ++i) {
    const bool lost = i == 1 || i == 3 || i == 4;
    EXPECT_EQ(rig.port.buffers().generation(buffer[i]) != operand[i].generation, lost)
        << "buffer " << i;
  }

  HostEnd second(next);
  const auto more = rig.nop();
  second.take(3);
  EXPECT_EQ(second.taken, (std::vector<std::uint64_t>{3, 6, 7}));
  for (const auto ticket : second.taken) second.answer(ticket, 1);
  EXPECT_TRUE(untaken.wait().ok());
  EXPECT_TRUE(last.wait().ok());
  EXPECT_TRUE(more.wait().ok());
  EXPECT_EQ(rig.port.retired(), 7u);
}

TEST(MoveTo, ACommandWhoseRecordHasLeftTheRingGoesOn) {
  PortRig rig(4096, {}, true);
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto stuck = rig.fill(a);
  host.take(1);
  for (int i = 0; i < 1000; ++i) {
    (void)rig.nop();
    host.take(1);
    host.answer(host.taken.back(), 1);
    rig.port.replies().drain();
  }
  const auto untaken = rig.copy(a, b);
  auto next = make_link(2, 4096);
  EXPECT_EQ(rig.port.hosts().move_to(next, kDead).resubmitted, 2u);
  HostEnd second(next);
  ASSERT_TRUE(second.take());
  EXPECT_EQ(second.command.name(), "memory.fill");
  EXPECT_EQ(second.taken, std::vector<std::uint64_t>{1});
  ASSERT_TRUE(second.take());
  EXPECT_EQ(second.command.name(), "memory.copy");
  for (const auto ticket : second.taken) second.answer(ticket, 1);
  EXPECT_TRUE(stuck.wait().ok());
  EXPECT_TRUE(untaken.wait().ok());
}

TEST(MoveTo, AnswersOutOfOrderStand) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto first = rig.fill(a), second = rig.fill(b);
  host.take(2);
  host.answer(2, 1);
  const auto settled = rig.port.hosts().move_to(make_link(2), kDead);
  EXPECT_EQ(first.wait().code(), Errc::device_lost);
  EXPECT_TRUE(second.wait().ok());
  EXPECT_EQ(settled.lost_buffers, std::vector<std::uint32_t>{a.buffer});
}

TEST(MoveTo, ACommandIssuedButStillInTheRingWasInFlight) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer();
  const auto before = rig.operand(a);
  const auto issued = rig.fill(before), waiting = rig.nop();
  host.issue_without_taking();
  const auto next = make_link(2);
  const auto settled = rig.port.hosts().move_to(next, kDead);
  EXPECT_EQ(issued.wait().code(), Errc::device_lost);
  EXPECT_NE(rig.port.buffers().generation(a), before.generation);
  EXPECT_EQ(settled.resubmitted, 1u);
  HostEnd second(next);
  second.take(1);
  EXPECT_EQ(second.taken, std::vector<std::uint64_t>{2});
}

TEST(MoveTo, ACommandTakenButNeverIssuedDoesNotHang) {
  // A command that a host answered with an error and took off the ring, and whose answer died with
  // it.
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer();
  const auto swallowed = rig.fill(rig.operand(a)), waiting = rig.nop();
  host.take(1);
  host.header().issued_ticket = 0;
  (void)rig.port.hosts().move_to(make_link(2), kDead);
  ASSERT_TRUE(swallowed.wait_for(std::chrono::seconds(0))) << "it is in no host's hands";
  EXPECT_EQ(swallowed.wait().code(), Errc::device_lost);
  EXPECT_FALSE(waiting.ready());
}

TEST(MoveTo, CollectivesDoNotGoOn) {
  PortRig rig;
  const auto a = rig.add_buffer(), b = rig.add_buffer();
  rig.port.gate().set_epoch(Epoch(3));
  const collective::AllReduce op{DType::f64, ReduceOp::sum, 0, 8, rig.operand(a), rig.operand(b)};
  const auto reduced = detail::submit(rig.port, op, {}, 3);
  const auto reads_result = rig.copy(rig.operand(b), rig.operand(a));
  const auto settled = rig.port.hosts().move_to(make_link(2), kDead);
  EXPECT_EQ(reduced.wait().code(), Errc::world_reformed);
  EXPECT_EQ(reads_result.wait().code(), Errc::stale) << "it would have read what was never written";
  EXPECT_EQ(settled.lost_buffers, (std::vector<std::uint32_t>{b, a}));
}

TEST(MoveTo, AReceivingExchangeLosesWhatItReceives) {
  PortRig rig;
  HostEnd host(rig.link);
  std::vector<TailOperand> tail(10);
  std::set<std::uint32_t> received;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto buffer = rig.add_buffer();
    tail[i] = {rig.operand(buffer), 0, i % 2 != 0 ? Access::write : Access::read};
    if (i % 2 != 0) received.insert(buffer);
  }
  const auto exchanged = detail::submit(rig.port, collective::Exchange{DType::f64}, tail, 0);
  host.take(1);
  const auto settled = rig.port.hosts().move_to(make_link(2), kDead);
  EXPECT_EQ(exchanged.wait().code(), Errc::device_lost);
  EXPECT_EQ(std::set<std::uint32_t>(settled.lost_buffers.begin(), settled.lost_buffers.end()),
            received);
}

TEST(MoveTo, NoSpoiltRingKeepsAFutureFromResolving) {
  for (std::uint32_t seed = 1; seed <= test::fewer_if_brief(300) && !testing::Test::HasFailure();
       ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    PortRig rig(4096);
    HostEnd host(rig.link);
    const auto a = rig.add_buffer(), b = rig.add_buffer();
    std::vector<Future<void>> futures;
    for (int i = 0; i < 20; ++i) {
      futures.push_back(
          i % 3 == 0 ? rig.nop()
                     : rig.copy(rig.operand(i % 2 != 0 ? a : b), rig.operand(i % 2 != 0 ? b : a)));
    }
    host.take(static_cast<int>(random() % 10));
    for (auto left = 1 + random() % 20; left > 0; --left)
      host.data()[random() % 4096] = static_cast<std::byte>(random());
    if (random() % 4 == 0) host.header().issued_ticket = random();
    if (random() % 4 == 0) host.header().command.head = random() % 512 * 8;
    if (random() % 4 == 0) {
      const auto word = random();
      std::memcpy(host.data() + 4096, &word, sizeof word);  // the first reply's
    }
    rig.port.replies().drain();
    const auto next = make_link(2, 4096);
    (void)rig.port.hosts().move_to(next, kDead);
    EXPECT_FALSE(rig.port.corrupt()) << "the new host starts clean";
    HostEnd second(next);
    while (second.take()) {
    }
    EXPECT_TRUE(std::is_sorted(second.taken.begin(), second.taken.end()));
    for (const auto ticket : second.taken) second.answer(ticket, 1);
    rig.port.replies().drain();
    for (std::size_t i = 0; i < futures.size(); ++i)
      EXPECT_TRUE(futures[i].ready()) << "command " << i;
    EXPECT_EQ(rig.port.retired(), futures.size());
  }
}

TEST(SettleInPlace, InFlightFailsAndTheRestIsKept) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer(), b = rig.add_buffer(), c = rig.add_buffer();
  rig.port.gate().set_epoch(Epoch(1));
  const auto completed = rig.nop();
  const auto in_flight = rig.fill(rig.operand(a));
  const auto reads_lost = rig.copy(rig.operand(a), rig.operand(b));
  const collective::Broadcast broadcast{DType::f64, 0, 0, 8, rig.operand(b)};
  const auto collective = detail::submit(rig.port, broadcast, {}, 1);
  const auto kept = rig.fill(rig.operand(c));
  host.take(2);
  host.answer(1, 1);
  const auto settled = rig.port.hosts().settle_in_place(kReformed);
  EXPECT_TRUE(completed.wait().ok());
  EXPECT_EQ(in_flight.wait().code(), Errc::world_reformed);
  EXPECT_EQ(reads_lost.wait().code(), Errc::stale);
  EXPECT_EQ(collective.wait().code(), Errc::world_reformed);
  EXPECT_FALSE(kept.ready());
  EXPECT_EQ(settled.completed, 1u);
  EXPECT_EQ(settled.failed, 3u);
  EXPECT_EQ(settled.resubmitted, 1u);
  EXPECT_EQ(settled.lost_buffers, (std::vector<std::uint32_t>{a, b}));
  host.take(1);
  EXPECT_EQ(host.taken, (std::vector<std::uint64_t>{1, 2, 5}))
      << "the same host passes over what was answered";
  EXPECT_FALSE(host.take());
  host.answer(3, 3);
  EXPECT_TRUE(kept.wait().ok());
  EXPECT_EQ(reads_lost.wait().code(), Errc::stale);
  EXPECT_EQ(rig.port.retired(), 5u);
}

TEST(SettleInPlace, PinnedMemoryThatWasNotWrittenIsNotRead) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer()),
             c = rig.operand(rig.add_buffer());
  const Operand pinned{.region = kPinnedRegion | 1, .offset = 0, .bytes = 64};
  auto other = pinned;
  other.offset = 64;
  const auto down = rig.copy(a, pinned);
  const auto up = rig.copy(pinned, b), again = rig.copy(b, other), from_it = rig.copy(other, c);
  host.take(1);
  const auto settled = rig.port.hosts().settle_in_place(kReformed);
  EXPECT_EQ(down.wait().code(), Errc::world_reformed);
  EXPECT_EQ(up.wait().code(), Errc::stale) << "it would have read what was never copied";
  EXPECT_EQ(again.wait().code(), Errc::stale);
  EXPECT_EQ(from_it.wait().code(), Errc::stale);
  EXPECT_EQ(settled.lost_buffers, (std::vector<std::uint32_t>{b.buffer, c.buffer}));
}

TEST(SettleInPlace, WhatWasCancelledIsNotRevivedByALaterMove) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer(), b = rig.add_buffer();
  const auto in_flight = rig.fill(rig.operand(a));
  const auto reads_lost = rig.copy(rig.operand(a), rig.operand(b));
  const auto kept = rig.nop();
  host.take(1);
  (void)rig.port.hosts().settle_in_place(kReformed);
  const auto next = make_link(2);
  EXPECT_EQ(rig.port.hosts().move_to(next, kDead).resubmitted, 1u);
  HostEnd second(next);
  second.take(1);
  EXPECT_EQ(second.taken, std::vector<std::uint64_t>{3});
  EXPECT_FALSE(second.take());
}

TEST(End, WhateverIsUnansweredAndWhateverComesFails) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto a = rig.add_buffer();
  const auto completed = rig.nop(), in_flight = rig.fill(rig.operand(a)), untaken = rig.nop();
  host.take(2);
  host.answer(1, 1);
  rig.port.hosts().end({Errc::budget_exhausted, 0, "4 restarts in 60 s"});
  EXPECT_TRUE(completed.wait().ok());
  EXPECT_EQ(in_flight.wait().code(), Errc::budget_exhausted);
  EXPECT_EQ(untaken.wait().code(), Errc::budget_exhausted);
  const Gate::Passage passage;
  EXPECT_EQ(rig.nop().wait().code(), Errc::budget_exhausted) << "a passage leads nowhere now";
  EXPECT_EQ(rig.port.retired(), 3u);
}

TEST(BeginAgain, KeepsWhatIsUnanswered) {
  PortRig rig(4096);
  rig.port.hosts().end({Errc::stopped, 0, "no device"});
  const auto link = make_link(2, 4096);
  rig.port.hosts().begin_again(link);
  HostEnd host(link);
  std::vector<Future<void>> taken;
  for (int i = 0; i < 60; ++i) {
    taken.push_back(rig.nop());
    host.take(1);
  }
  const auto untaken = rig.fill(rig.operand(rig.add_buffer()));
  const auto next = make_link(3, 4096);
  const auto settled = rig.port.hosts().move_to(next, kDead);
  EXPECT_EQ(settled.failed, 60u);
  EXPECT_EQ(settled.resubmitted, 1u);
  HostEnd second(next);
  ASSERT_TRUE(second.take());
  second.answer(second.taken.back(), 1);
  EXPECT_TRUE(untaken.wait().ok());
}

/// One random program on a chain of hosts, against the rules written down plainly.
TEST(MoveTo, RandomProgramsFollowTheRules) {
  for (std::uint32_t seed = 1; seed <= test::fewer_if_brief(500) && !testing::Test::HasFailure();
       ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    PortRig rig;
    std::vector<std::uint32_t> buffer;
    for (int i = 0; i < 5; ++i) buffer.push_back(rig.add_buffer());
    struct Expected {
      std::size_t source, destination;
      Operand from, to;  // as they were when it was submitted
      Future<void> future;
      std::optional<Errc> ended;
    };
    std::vector<Expected> program;
    auto link = rig.link;
    for (std::uint64_t host_id = 2; host_id < 5; ++host_id) {
      HostEnd host(link);
      const auto fresh = 1 + random() % 12;
      for (std::size_t i = 0; i < fresh; ++i) {
        const std::size_t source = random() % 5, destination = (source + 1 + random() % 4) % 5;
        const auto from = rig.operand(buffer[source]), to = rig.operand(buffer[destination]);
        program.push_back({source, destination, from, to, rig.copy(from, to), std::nullopt});
      }
      const auto unended = [&] {
        return std::count_if(program.begin(), program.end(), [](auto& c) { return !c.ended; });
      };
      const auto taking = static_cast<int>(random() % (static_cast<std::size_t>(unended()) + 1));
      host.take(taking);
      for (const auto ticket : host.taken) {
        if (random() % 2 != 0) break;  // answers come in order, on one lane
        host.answer(ticket, 1);
        program[ticket - 1].ended = Errc::ok;
      }
      std::set<std::uint32_t> lost;
      const auto stale = [&](const Operand& operand) { return lost.contains(operand.buffer); };
      for (std::size_t i = 0; i < program.size(); ++i) {
        auto& command = program[i];
        if (command.ended) continue;
        const bool in_flight =
            std::find(host.taken.begin(), host.taken.end(), i + 1) != host.taken.end();
        if (!in_flight && !stale(command.from) && !stale(command.to)) continue;
        command.ended = in_flight ? Errc::device_lost : Errc::stale;
        lost.insert(command.to.buffer);
      }
      std::vector<std::uint32_t> generations;
      for (const auto each : buffer) generations.push_back(rig.port.buffers().generation(each));
      link = make_link(host_id);
      const auto settled = rig.port.hosts().move_to(link, kDead);
      EXPECT_EQ(std::set<std::uint32_t>(settled.lost_buffers.begin(), settled.lost_buffers.end()),
                lost);
      EXPECT_EQ(settled.resubmitted, unended());
      for (std::size_t i = 0; i < buffer.size(); ++i) {
        EXPECT_EQ(rig.port.buffers().generation(buffer[i]) != generations[i],
                  lost.contains(buffer[i]));
      }
      for (std::size_t i = 0; i < program.size(); ++i) {
        ASSERT_EQ(program[i].future.ready(), program[i].ended.has_value()) << "command " << i;
        if (!program[i].ended) continue;
        EXPECT_EQ(program[i].future.wait().code(), *program[i].ended) << "command " << i;
      }
    }
  }
}

TEST(MoveTo, WhileFourThreadsSubmit) {
  constexpr int kEach = 3000;
  constexpr std::uint64_t kRing = 1u << 20;  // what is in flight for ever keeps its place in it
  PortRig rig(kRing, std::chrono::microseconds(10));
  std::atomic<bool> done{false};
  std::atomic<int> ok{0}, lost{0}, stale{0}, other{0};
  auto watcher = Watcher::start(rig.port, {[](auto, auto&&) {}, [](auto) {}, [](auto) {}});
  ASSERT_TRUE(watcher.ok());
  (*watcher)->add(rig.link);
  std::thread hosts([&] {
    auto link = rig.link;
    std::mt19937 random(5);
    for (std::uint64_t id = 2; !done; ++id) {
      HostEnd host(link);
      for (auto left = 200 + random() % 2000; left > 0 && !done; --left) {
        if (!host.take()) {
          host.wait(1);
        } else if (random() % 100 != 0) {  // the others are in flight for ever
          while (!host.answer(host.taken.back(), 1)) rig.port.replies().drain();
        }
      }
      const auto old = std::exchange(link, make_link(id, kRing));
      (*watcher)->add(link);
      (void)rig.port.hosts().move_to(link, kDead);
      (*watcher)->remove(old->id());
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    const auto buffer = rig.add_buffer();
    threads.emplace_back([&, buffer] {
      std::vector<Future<void>> futures;
      for (int i = 0; i < kEach; ++i) {
        futures.push_back(rig.fill(rig.operand(buffer)));
        if (i % 64 == 0) (void)futures.back().wait();
      }
      for (const auto& future : futures) {
        const auto code = future.wait().code();
        ++(code == Errc::ok            ? ok
           : code == Errc::device_lost ? lost
           : code == Errc::stale       ? stale
                                       : other);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done = true;
  hosts.join();
  watcher->reset();
  EXPECT_EQ(ok + lost + stale, 4 * kEach);
  EXPECT_EQ(other, 0);
  EXPECT_GT(ok, kEach);
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace troupe::rank_process
