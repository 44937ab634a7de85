// The table of unanswered commands: any order of answers, its bound, and its two sides on two
// threads.
#include "rank/device/commands/ticket_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rank/device/commands/spare_futures.hpp"

namespace troupe::rank_process {
namespace {

using State = detail::StatePtr<detail::State<void>>;

State make_state() {
  return State(new detail::State<void>(nullptr));
}

/// Opens the next ticket, with a future for its outcome.
std::uint64_t open(TicketTable& table, std::vector<std::uint32_t> written = {},
                   Future<void>* future = nullptr) {
  const auto ticket = table.next();
  if (ticket == 0) return 0;
  auto& slot = table.slot(ticket);
  for (const auto buffer : written) table.add_named(slot, buffer, true);
  auto state = make_state();
  if (future != nullptr) *future = Future<void>(state);
  table.open(slot, std::move(state));
  return ticket;
}

std::vector<std::uint32_t> written_by(TicketTable& table, std::uint64_t ticket) {
  std::vector<std::uint32_t> buffers;
  table.for_each_named(ticket, [&](std::uint32_t buffer, bool written) {
    if (written) buffers.push_back(buffer);
  });
  return buffers;
}

TEST(TicketTable, TicketsAreConsecutiveFromOne) {
  TicketTable table;
  EXPECT_EQ(table.submitted(), 0u);
  for (std::uint64_t i = 1; i <= 5; ++i) EXPECT_EQ(open(table), i);
  EXPECT_EQ(table.next(), 6u);
  EXPECT_EQ(table.next(), 6u) << "asking does not take";
  EXPECT_EQ(table.submitted(), 5u);
  EXPECT_EQ(table.retired(), 0u);
}

TEST(TicketTable, RetiresWhatIsClosedWithoutGaps) {
  TicketTable table;
  for (int i = 0; i < 5; ++i) open(table);
  for (const auto ticket : {3u, 2u, 5u}) (void)table.close(ticket);
  table.advance();
  EXPECT_EQ(table.retired(), 0u) << "1 is still open";
  (void)table.close(1);
  table.advance();
  EXPECT_EQ(table.retired(), 3u);
  (void)table.close(4);
  EXPECT_EQ(table.retired(), 3u) << "only advance() moves it";
  table.advance();
  EXPECT_EQ(table.retired(), 5u);
}

TEST(TicketTable, PendingIsSubmittedAndUnanswered) {
  TicketTable table;
  open(table);
  open(table);
  (void)table.close(1);
  for (const auto& [ticket, pending] : {std::pair<std::uint64_t, bool>{0, false},
                                        {1, false},
                                        {2, true},
                                        {3, false},
                                        {1 + TicketTable::kSlots, false},
                                        {2 + TicketTable::kSlots, false},
                                        {~std::uint64_t{0}, false}}) {
    EXPECT_EQ(table.pending(ticket), pending) << ticket;
  }
}

TEST(TicketTable, CloseHandsTheFutureOver) {
  TicketTable table;
  Future<void> future;
  const auto ticket = open(table, {}, &future);
  auto state = table.close(ticket);
  ASSERT_TRUE(state);
  EXPECT_FALSE(future.ready());
  state->resolve(Error{Errc::stale, 0, "x"});
  EXPECT_EQ(future.wait().code(), Errc::stale);
}

TEST(TicketTable, RemembersWhatIsWritten) {
  TicketTable table;
  for (std::size_t count : {0u, 1u, 3u, 4u, 40u}) {
    std::vector<std::uint32_t> buffers(count);
    for (std::uint32_t i = 0; i < count; ++i) buffers[i] = 100 + i;
    const auto ticket = open(table, buffers);
    EXPECT_EQ(written_by(table, ticket), buffers);
    (void)table.close(ticket);
    EXPECT_TRUE(written_by(table, ticket).empty());
  }
}

TEST(TicketTable, NamesWhatIsReadAndWhatIsWritten) {
  TicketTable table;
  const auto ticket = table.next();
  auto& slot = table.slot(ticket);
  std::vector<std::pair<std::uint32_t, bool>> named, expected;
  for (std::uint32_t i = 0; i < 7; ++i) {
    table.add_named(slot, i, i % 3 == 0);
    expected.emplace_back(i, i % 3 == 0);
  }
  table.open(slot, make_state());
  table.for_each_named(
      ticket, [&](std::uint32_t buffer, bool written) { named.emplace_back(buffer, written); });
  EXPECT_EQ(named, expected);
}

TEST(TicketTable, FullIsAnAnswerAndAnySlotComesBack) {
  TicketTable table;
  for (std::uint64_t i = 1; i <= TicketTable::kMaxOpen; ++i)
    ASSERT_EQ(open(table, {static_cast<std::uint32_t>(i)}), i);
  EXPECT_EQ(table.next(), 0u);
  (void)table.close(2);
  EXPECT_EQ(open(table, {7}), TicketTable::kMaxOpen + 1) << "although the oldest is still open";
  EXPECT_EQ(table.next(), 0u);
  EXPECT_FALSE(table.pending(2));
  EXPECT_EQ(written_by(table, TicketTable::kMaxOpen + 1), std::vector<std::uint32_t>{7});
}

TEST(TicketTable, ALateAnswerHoldsUpNobody) {
  TicketTable table;
  ASSERT_EQ(open(table, {1}), 1u);
  std::uint64_t before = 1;
  for (std::uint64_t i = 0; i < 3 * TicketTable::kSlots; ++i) {
    const auto ticket = open(table, {2});
    ASSERT_GT(ticket, before);
    ASSERT_NE(ticket % TicketTable::kSlots, 1u) << "that is the slot of the late one";
    ASSERT_TRUE(table.pending(ticket));
    (void)table.close(ticket);
    table.advance();
    before = ticket;
  }
  EXPECT_EQ(table.retired(), 0u);
  EXPECT_FALSE(table.pending(1 + TicketTable::kSlots)) << "a ticket that was left out";
  EXPECT_EQ(table.all_pending(), std::vector<std::uint64_t>{1});
  EXPECT_EQ(written_by(table, 1), std::vector<std::uint32_t>{1});
  const auto last = open(table);
  EXPECT_EQ(table.all_pending(), (std::vector<std::uint64_t>{1, last}));
  (void)table.close(1);
  table.advance();
  EXPECT_EQ(table.retired(), last - 1);
}

TEST(TicketTable, AnyOrderOfAnswersRetiresAll) {
  for (std::uint32_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    TicketTable table;
    std::vector<std::uint64_t> unanswered;
    std::uint64_t submitted = 0;
    for (int i = 0; i < 500; ++i) {
      if (random() % 2 == 0) {
        unanswered.push_back(open(table));
        ASSERT_EQ(unanswered.back(), ++submitted);
      } else if (!unanswered.empty()) {
        const auto which = static_cast<std::ptrdiff_t>(random() % unanswered.size());
        ASSERT_TRUE(table.pending(unanswered[static_cast<std::size_t>(which)]));
        ASSERT_TRUE(table.close(unanswered[static_cast<std::size_t>(which)]));
        unanswered.erase(unanswered.begin() + which);
        table.advance();
      }
      const auto oldest = std::min_element(unanswered.begin(), unanswered.end());
      ASSERT_EQ(table.retired(), oldest == unanswered.end() ? submitted : *oldest - 1);
    }
    std::shuffle(unanswered.begin(), unanswered.end(), random);
    for (const auto ticket : unanswered) (void)table.close(ticket);
    table.advance();
    EXPECT_EQ(table.retired(), submitted);
  }
}

TEST(TicketTable, OneThreadOpensWhileAnotherAnswers) {
  constexpr std::uint64_t kTickets = 200'000;  // several times around the table
  TicketTable table;
  std::vector<Future<void>> futures(kTickets);
  std::thread opener([&] {
    for (std::uint64_t i = 0; i < kTickets;) {
      const auto buffer = static_cast<std::uint32_t>(i);
      if (open(table, {buffer, buffer, buffer, buffer}, &futures[i]) != 0) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::mt19937 random(1);
  while (table.retired() < kTickets) {
    // Answers a stretch of what is there, back to front.
    const auto first = table.retired() + 1, end = table.submitted() + 1;
    if (first == end) {
      std::this_thread::yield();
      continue;
    }
    const auto last = std::min(end, first + 1 + random() % 64);
    for (auto ticket = last; ticket-- > first;) {
      ASSERT_TRUE(table.pending(ticket));
      ASSERT_EQ(written_by(table, ticket),
                std::vector<std::uint32_t>(4, static_cast<std::uint32_t>(ticket - 1)));
      auto state = table.close(ticket);
      ASSERT_TRUE(state);
      state->resolve({});
    }
    table.advance();
  }
  opener.join();
  for (const auto& future : futures) ASSERT_TRUE(future.ready());
}

TEST(SpareFutures, KeepWhatNobodyElseHas) {
  SpareFutures spares;
  EXPECT_FALSE(spares.take());
  auto seen = make_state();
  const Future<void> future(seen);
  EXPECT_FALSE(spares.give(seen));
  EXPECT_TRUE(seen) << "it is to be resolved";
  for (int i = 0; i < 1000; ++i) {
    auto state = make_state();
    EXPECT_TRUE(spares.give(state));
    EXPECT_FALSE(state);
  }
  const auto one = spares.take();
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->ready());
  EXPECT_TRUE(one->unshared());
}

TEST(SpareFutures, OneThreadGivesWhatAnotherTakes) {
  SpareFutures spares;
  constexpr int kGiven = 20'000;
  std::atomic<bool> done{false};
  std::thread giver([&] {
    for (int i = 0; i < kGiven; ++i) {
      auto state = make_state();
      (void)spares.give(state);
    }
    done.store(true, std::memory_order_release);
  });
  int taken = 0;
  for (bool last = false; !last;) {
    last = done.load(std::memory_order_acquire);
    while (const auto one = spares.take()) {
      const Future<void> future(one);
      one->resolve({});
      EXPECT_TRUE(future.ready());
      ++taken;
    }
    if (!last) std::this_thread::yield();
  }
  giver.join();
  EXPECT_GT(taken, 0);
  EXPECT_LE(taken, kGiven);
}

}  // namespace
}  // namespace troupe::rank_process
