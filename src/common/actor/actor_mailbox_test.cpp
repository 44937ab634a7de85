// The mailbox on its own: its bound, its order, and that nothing is lost or left behind.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <troupe/actor/mailbox.hpp>

namespace troupe {
namespace {

TEST(Mailbox, CapacityIsRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(Mailbox<int>(0).capacity(), 2u);
  EXPECT_EQ(Mailbox<int>(5).capacity(), 8u);
  EXPECT_EQ(Mailbox<int>(8).capacity(), 8u);
}

TEST(Mailbox, FullIsAnAnswerAndKeepsTheMessage) {
  Mailbox<std::unique_ptr<int>> mailbox(4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(mailbox.push(std::make_unique<int>(i)), Push::ok);
  auto fifth = std::make_unique<int>(4);
  EXPECT_EQ(mailbox.push(std::move(fifth)), Push::full);
  ASSERT_TRUE(fifth) << "a refused message must stay with its sender";
  int first = -1;
  EXPECT_TRUE(mailbox.consume([&](std::unique_ptr<int>&& value) { first = *value; }));
  EXPECT_EQ(first, 0);
  EXPECT_EQ(mailbox.push(std::move(fifth)), Push::ok);
  EXPECT_FALSE(fifth);
}

TEST(Mailbox, KeepsOrderOverManyLaps) {
  Mailbox<int> mailbox(4);
  int sent = 0;
  int expected = 0;
  for (int lap = 0; lap < 100; ++lap) {
    while (mailbox.push(sent) == Push::ok) ++sent;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(mailbox.consume([&](int&& value) { EXPECT_EQ(value, expected++); }));
    }
  }
  EXPECT_EQ(sent - expected, 1);
}

TEST(Mailbox, ASlotIsFreedWhenTheConsumerThrows) {
  Mailbox<int> mailbox(2);
  EXPECT_EQ(mailbox.push(1), Push::ok);
  EXPECT_EQ(mailbox.push(2), Push::ok);
  EXPECT_THROW(mailbox.consume([](int&&) { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(mailbox.push(3), Push::ok);
  std::vector<int> seen;
  while (mailbox.consume([&](int&& value) { seen.push_back(value); })) {
  }
  EXPECT_EQ(seen, (std::vector<int>{2, 3}));
}

TEST(Mailbox, CloseHandsOverWhatWasAcceptedAndRefusesTheRest) {
  Mailbox<int> mailbox(8);
  EXPECT_EQ(mailbox.push(1), Push::ok);
  EXPECT_EQ(mailbox.push(2), Push::ok);
  EXPECT_FALSE(mailbox.closed());
  std::vector<int> left;
  mailbox.close([&](int&& value) { left.push_back(value); });
  EXPECT_EQ(left, (std::vector<int>{1, 2}));
  EXPECT_TRUE(mailbox.closed());
  EXPECT_EQ(mailbox.push(3), Push::closed);
  EXPECT_FALSE(mailbox.claimed());
}

TEST(Mailbox, DestroysWhatNobodyConsumed) {
  auto token = std::make_shared<int>(0);
  {
    Mailbox<std::shared_ptr<int>> mailbox(4);
    EXPECT_EQ(mailbox.push(token), Push::ok);
    EXPECT_EQ(token.use_count(), 2);
  }
  EXPECT_EQ(token.use_count(), 1);
}

struct Numbered {
  int producer;
  int number;
};

TEST(Mailbox, ManyProducersLoseNothingAndKeepTheirOrder) {
  constexpr int kProducers = 4;
  constexpr int kEach = 20'000;
  Mailbox<Numbered> mailbox(64);
  std::vector<std::jthread> producers;
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&mailbox, producer] {
      for (int i = 0; i < kEach; ++i) {
        while (mailbox.push(Numbered{producer, i}) != Push::ok) std::this_thread::yield();
      }
    });
  }
  std::array<int, kProducers> next{};
  for (int received = 0; received < kProducers * kEach;) {
    const bool got = mailbox.consume([&](Numbered&& message) {
      EXPECT_EQ(message.number, next[static_cast<std::size_t>(message.producer)]++);
    });
    if (got) {
      ++received;
    } else {
      std::this_thread::yield();
    }
  }
  for (const int count : next) EXPECT_EQ(count, kEach);
  EXPECT_FALSE(mailbox.claimed());
}

TEST(Mailbox, EveryMessageAcceptedBeforeACloseIsHandedOver) {
  for (int round = 0; round < 50; ++round) {
    Mailbox<int> mailbox(1024);
    std::atomic<int> accepted{0};
    std::atomic<int> started{0};
    std::vector<std::jthread> producers;
    for (int producer = 0; producer < 3; ++producer) {
      producers.emplace_back([&] {
        started.fetch_add(1);
        for (;;) {
          const auto answer = mailbox.push(1);
          if (answer == Push::closed) return;
          if (answer == Push::ok) accepted.fetch_add(1);
        }
      });
    }
    while (started.load() < 3) std::this_thread::yield();
    int handed_over = 0;
    for (int i = 0; i < 100; ++i) mailbox.consume([&](int&& value) { handed_over += value; });
    mailbox.close([&](int&& value) { handed_over += value; });
    producers.clear();
    EXPECT_EQ(handed_over, accepted.load());
  }
}

}  // namespace
}  // namespace troupe
