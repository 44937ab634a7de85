// Where ranks of a host meet before a collective: nobody passes alone, and what differs is told.
#include "device_host/formation/rendezvous.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <thread>

#include <troupe/lib/collective.hpp>

#include "common/ipc/shared_memory.hpp"

namespace troupe::host {
namespace {

constexpr std::uint32_t kRoot = 1;

collective::AllReduce all_reduce(std::uint64_t count, ReduceOp op = ReduceOp::sum) {
  collective::AllReduce call;
  call.dtype = OpDType(DType::f32);
  call.op = op;
  call.count = count;
  return call;
}

TailOperand message(std::uint32_t peer, bool receive, std::uint64_t bytes) {
  Operand range;
  range.bytes = bytes;
  return receive ? collective::received(range, peer) : collective::sent(range, peer);
}

class RendezvousTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    std::vector<Rendezvous::Card> cards;
    for (auto& rank : ranks_) {
      rank = Rendezvous::open().take();
      cards.push_back(rank->card());
    }
    change(cards);
    for (int rank = 0; rank < kRanks; ++rank)
      ranks_[static_cast<std::size_t>(rank)]->meet(rank, cards);
  }
  virtual void change(std::vector<Rendezvous::Card>&) {}

  /// What rank says of its command with this ticket.
  template <class Op>
  Result<bool> arrive(std::size_t rank, std::uint64_t ticket, const Op& op,
                      const std::vector<TailOperand>& tail = {}) {
    return ranks_[rank]->arrive(ticket, info_of<Op>, reinterpret_cast<const std::byte*>(&op), tail);
  }
  template <class Op>
  bool refuse(std::size_t rank, const Op& op) {
    return ranks_[rank]->refuse(info_of<Op>, reinterpret_cast<const std::byte*>(&op));
  }
  template <class Op>
  bool passes(std::size_t rank, std::uint64_t ticket, const Op& op,
              const std::vector<TailOperand>& tail = {}) {
    const auto met = arrive(rank, ticket, op, tail);
    EXPECT_TRUE(met.ok()) << met.error().message;
    return met.ok() && *met;
  }

  std::array<std::unique_ptr<Rendezvous>, kRanks> ranks_;
};

TEST_F(RendezvousTest, NobodyPassesBeforeAllHaveCome) {
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const auto call = all_reduce(round);
    EXPECT_FALSE(passes(0, 10 * round, call));
    EXPECT_FALSE(passes(0, 10 * round, call)) << "it has come twice";
    EXPECT_FALSE(passes(2, round, call));
    EXPECT_FALSE(ranks_[0]->ready());
    EXPECT_TRUE(passes(1, 7 * round, call));
    EXPECT_TRUE(ranks_[0]->ready());
    EXPECT_TRUE(passes(0, 10 * round, call));
    EXPECT_FALSE(ranks_[0]->ready()) << "it waits for nothing more";
    EXPECT_TRUE(passes(0, 10 * round, call));
    EXPECT_TRUE(passes(2, round, call));
  }
}

TEST_F(RendezvousTest, AllAreToldTheSameOfWhatDiffers) {
  (void)arrive(0, 1, all_reduce(64));
  (void)arrive(1, 1, all_reduce(64, ReduceOp::max));
  for (std::size_t rank : {2u, 1u, 0u}) {
    const auto met = arrive(rank, 1, all_reduce(rank == 1 ? 0 : 64));
    ASSERT_EQ(met.code(), Errc::invalid);
    EXPECT_EQ(met.error().message,
              "the ranks call different collectives: rank 1: collective.all_reduce of 64 f32, max; "
              "ranks 0, 2: collective.all_reduce of 64 f32, sum");
  }
  collective::Broadcast broadcast;
  broadcast.dtype = OpDType(DType::f32);
  broadcast.count = 64;
  (void)arrive(0, 2, broadcast);
  broadcast.root = kRoot;
  (void)arrive(1, 2, broadcast);
  const auto met = arrive(2, 2, all_reduce(64));
  EXPECT_EQ(met.error().message,
            "the ranks call different collectives: rank 2: collective.all_reduce of 64 f32, sum; "
            "rank 0: collective.broadcast of 64 f32, root 0; "
            "rank 1: collective.broadcast of 64 f32, root 1");
}

TEST_F(RendezvousTest, WhatOneRefusesIsLaunchedByNobody) {
  collective::Broadcast broadcast;
  broadcast.dtype = OpDType(DType::f32);
  broadcast.count = 64;
  broadcast.root = 7;
  EXPECT_TRUE(refuse(1, broadcast)) << "it waits for nobody";
  EXPECT_FALSE(refuse(1, broadcast)) << "the others have not seen the one before";
  EXPECT_FALSE(ranks_[1]->ready());
  EXPECT_FALSE(passes(0, 1, broadcast));
  for (const std::size_t rank : {2u, 0u}) {
    const auto met = arrive(rank, 1, broadcast);
    ASSERT_EQ(met.code(), Errc::invalid);
    EXPECT_EQ(met.error().message,
              "the ranks call different collectives: "
              "ranks 0, 2: collective.broadcast of 64 f32, root 7; "
              "rank 1: collective.broadcast of 64 f32, root 7, refused there");
  }
  EXPECT_TRUE(ranks_[1]->ready());
  EXPECT_TRUE(refuse(1, broadcast));
  EXPECT_TRUE(refuse(0, broadcast));
  EXPECT_TRUE(refuse(2, broadcast));
  EXPECT_FALSE(passes(0, 3, all_reduce(1)));
  EXPECT_FALSE(passes(1, 3, all_reduce(1)));
  EXPECT_TRUE(passes(2, 3, all_reduce(1)));
}

TEST_F(RendezvousTest, MessagesWaitForTheirOtherSideOnly) {
  const collective::Exchange exchange;
  EXPECT_FALSE(passes(0, 1, exchange, {message(1, false, 100)}));
  EXPECT_FALSE(passes(2, 1, exchange, {message(1, false, 8), message(0, true, 8)}));
  EXPECT_TRUE(passes(1, 1, exchange, {message(0, true, 100)}));
  EXPECT_TRUE(passes(0, 1, exchange, {message(1, false, 100)}));
  // To itself, and to a rank that is not there: that is for the engine to say.
  EXPECT_TRUE(passes(0, 2, exchange, {message(0, false, 8), message(9, true, 8)}));
  EXPECT_FALSE(ranks_[2]->ready());
  // The first of two messages is waited for by one side, both by the other.
  EXPECT_FALSE(passes(0, 3, exchange, {message(2, false, 8), message(2, false, 16)}));
  EXPECT_FALSE(passes(1, 2, exchange, {message(2, true, 8), message(2, false, 9)}));
  EXPECT_TRUE(passes(2, 1, exchange, {}));
  EXPECT_FALSE(passes(0, 3, exchange, {}));
  EXPECT_TRUE(passes(2, 2, exchange, {message(0, true, 16)}));
  EXPECT_TRUE(passes(0, 3, exchange, {}));
}

TEST_F(RendezvousTest, MessagesOfDifferentLengthAreToldToBothSides) {
  const collective::Exchange exchange;
  (void)arrive(0, 1, exchange, {message(1, false, 100)});
  const auto receiver = arrive(1, 1, exchange, {message(0, true, 60)});
  const auto sender = arrive(0, 1, exchange, {});
  ASSERT_EQ(receiver.code(), Errc::invalid);
  EXPECT_EQ(receiver.error().message, "rank 0 sends 100 bytes to rank 1, which expects 60");
  EXPECT_EQ(sender.error().message, receiver.error().message);
}

TEST_F(RendezvousTest, WakesWhoSleeps) {
  const auto rung = [&](std::size_t rank) {
    pollfd fd{ranks_[rank]->fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
  };
  const auto call = all_reduce(4);
  ranks_[0]->announce_sleep();  // it waits for nobody
  EXPECT_FALSE(passes(1, 1, call));
  EXPECT_FALSE(rung(0));
  ranks_[1]->announce_sleep();
  EXPECT_FALSE(ranks_[1]->ready());
  EXPECT_FALSE(passes(0, 1, call));
  ranks_[1]->cancel_sleep();
  EXPECT_TRUE(rung(1)) << "who rings may come late";
  ranks_[1]->clear();
  EXPECT_FALSE(rung(1));
  EXPECT_TRUE(passes(2, 1, call));
  EXPECT_FALSE(rung(1));
}

// Each a thread, as fast as they can: whatever one reads of another is of the same round.
TEST_F(RendezvousTest, ManyRoundsAtOnce) {
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (std::uint64_t round = 1; round <= 20'000; ++round) {
        for (;;) {
          const auto met = arrive(rank, round, all_reduce(round));
          ASSERT_TRUE(met.ok()) << met.error().message;
          if (*met) break;
          ranks_[rank]->announce_sleep();
          pollfd fd{ranks_[rank]->fd(), POLLIN, 0};
          if (!ranks_[rank]->ready()) ::poll(&fd, 1, -1);
          ranks_[rank]->cancel_sleep();
          ranks_[rank]->clear();
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

class RendezvousOnTwoHosts : public RendezvousTest {
  void change(std::vector<Rendezvous::Card>& cards) override { cards[1].host[0] = '?'; }
};

TEST_F(RendezvousOnTwoHosts, NobodyWaitsForAnotherHost) {
  EXPECT_FALSE(passes(0, 1, all_reduce(1)));
  EXPECT_TRUE(passes(2, 1, all_reduce(1)));
  EXPECT_TRUE(passes(0, 1, all_reduce(1)));
  EXPECT_TRUE(passes(0, 2, collective::Exchange(), {message(1, true, 8)}));
}

class RendezvousWithAnOldCard : public RendezvousTest {
  void change(std::vector<Rendezvous::Card>& cards) override { cards[1].cookie[0] ^= 1; }
};

TEST_F(RendezvousWithAnOldCard, WhoCannotBeReachedIsNotWaitedFor) {
  EXPECT_FALSE(passes(0, 1, all_reduce(1)));
  EXPECT_TRUE(passes(2, 1, all_reduce(1)));
}

/// Rank 1 has closed what its card names since, and other files have the numbers: memory, as large
/// as what was there or smaller.
class RendezvousWithReusedDescriptors : public RendezvousTest {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;

  void change(std::vector<Rendezvous::Card>& cards) override {
    other_ = ipc::SharedMemory::create("other", kBytes).take();
    std::memset(other_.data(), 0xff, kBytes);
    small_ = ipc::SharedMemory::create("small", 8).take();
    if (memory_goes_) cards[1].memory = small_.fd();
    cards[1].bell = other_.fd();
    testing::internal::CaptureStderr();
  }
  [[nodiscard]] bool untouched() const {
    return std::all_of(other_.data(), other_.data() + kBytes,
                       [](std::byte one) { return one == std::byte{0xff}; });
  }

  bool memory_goes_ = false;
  ipc::SharedMemory other_, small_;
};

TEST_F(RendezvousWithReusedDescriptors, NothingIsWrittenToAnotherFile) {
  ranks_[1]->announce_sleep();  // so that it would be woken
  EXPECT_FALSE(passes(0, 1, all_reduce(1)));
  EXPECT_TRUE(passes(2, 1, all_reduce(1))) << "rank 1 is waited for";
  EXPECT_TRUE(untouched());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

class RendezvousWithReusedMemory : public RendezvousWithReusedDescriptors {
  void SetUp() override {
    memory_goes_ = true;
    RendezvousTest::SetUp();
  }
};

TEST_F(RendezvousWithReusedMemory, WhoHasLeftIsNoWarning) {
  EXPECT_FALSE(passes(0, 1, all_reduce(1)));
  EXPECT_TRUE(passes(2, 1, all_reduce(1)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Rendezvous, AMemberThatIsAloneIsNotWoken) {
  const auto alone = Rendezvous::open().take();
  const Rendezvous::Card card = alone->card();
  const auto readable = [&] {
    pollfd bell{alone->fd(), POLLIN, 0};
    return ::poll(&bell, 1, 0) != 0;
  };
  EXPECT_FALSE(readable());
  alone->meet(0, {&card, 1});
  EXPECT_FALSE(readable());
  {
    const auto other = Rendezvous::open().take();
    const std::array cards{card, other->card()};
    other->meet(1, cards);
  }
  EXPECT_FALSE(readable()) << "the only other member is gone";
}

}  // namespace
}  // namespace troupe::host
