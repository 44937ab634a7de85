// Messages between ranks of a node through shared memory. All ranks are this process.
#include "rank/net/node_rings.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace troupe::rank_process {
namespace {

using Message = std::vector<std::byte>;

Message message(std::size_t number, std::size_t bytes) {
  Message made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(number * 31 + i);
  return made;
}

struct Node {
  explicit Node(int ranks) {
    std::vector<FdIdentity> identities;
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) {
      fds.push_back(FdExchange::open(0).take());
      identities.push_back(fds.back()->identity());
      all.push_back(rank);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      at(fds, rank)->set_peers(identities, rank);
      rings.push_back(NodeRings::open(*at(fds, rank), all, rank).take());
    }
    for (int rank = 0; rank < ranks; ++rank) at(rings, rank).meet(*at(fds, rank));
  }
  template <class T>
  static T& at(std::vector<T>& all, int rank) {
    return all[static_cast<std::size_t>(rank)];
  }
  NodeRings& operator[](int rank) { return at(rings, rank); }
  std::vector<Message> heard_by(int rank) {
    std::vector<Message> heard;
    at(rings, rank).receive([&](Message one) { heard.push_back(std::move(one)); });
    return heard;
  }

  std::vector<std::unique_ptr<FdExchange>> fds;
  std::vector<NodeRings> rings;
};

TEST(NodeRings, EachRankHearsWhatItIsSent) {
  Node node(3);
  EXPECT_EQ(node[0].reached(), 2u);
  EXPECT_TRUE(node[0].reaches(1));
  EXPECT_FALSE(node[0].reaches(0));
  node[0].send(2, message(1, 100));
  node[1].send(2, message(2, 0));
  node[1].send(0, message(3, 7));
  const auto heard = node.heard_by(2);
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0], message(1, 100));
  EXPECT_EQ(heard[1], message(2, 0));
  EXPECT_EQ(node.heard_by(0), std::vector<Message>{message(3, 7)});
  EXPECT_TRUE(node.heard_by(1).empty());
}

TEST(NodeRings, WhatHasNoRoomWaitsAndStaysInOrder) {
  Node node(2);
  constexpr std::size_t kMessages = 300;
  const auto bytes = [](std::size_t number) { return number % 17 == 0 ? 64 * 1024 : number; };
  std::vector<Message> heard;
  for (std::size_t number = 0; number < kMessages; ++number) {
    node[0].send(1, message(number, bytes(number)));
  }
  EXPECT_TRUE(node[0].sending());
  while (node[0].sending()) {
    node[0].advance();
    for (auto& one : node.heard_by(1)) heard.push_back(std::move(one));
  }
  for (auto& one : node.heard_by(1)) heard.push_back(std::move(one));
  ASSERT_EQ(heard.size(), kMessages);
  for (std::size_t number = 0; number < kMessages; ++number)
    ASSERT_EQ(heard[number], message(number, bytes(number))) << number;
}

TEST(NodeRings, ARankThatIsForgottenIsNotReached) {
  Node node(2);
  node[0].send(1, message(1, 100'000));
  node[1].send(0, message(2, 10));
  node[0].forget(1);
  EXPECT_FALSE(node[0].reaches(1));
  EXPECT_FALSE(node[0].sending());
  EXPECT_TRUE(node.heard_by(0).empty());
}

TEST(NodeRings, AReceiverMayForgetTheSenderMeanwhile) {
  Node node(2);
  node[1].send(0, message(1, 10));
  node[1].send(0, message(2, 10));
  int heard = 0;
  node[0].receive([&](const Message&) {
    ++heard;
    node[0].forget(1);
  });
  EXPECT_EQ(heard, 1);
}

TEST(NodeRings, AnInboxThatIsNotThereLeavesItsRankUnreached) {
  auto first = FdExchange::open(0).take(), second = FdExchange::open(0).take();
  const std::vector<FdIdentity> identities{first->identity(), second->identity()};
  first->set_peers(identities, 0);
  second->set_peers(identities, 1);
  auto rings = NodeRings::open(*first, {0, 1}, 0).take();
  rings.meet(*first);  // the other rank has opened none
  EXPECT_FALSE(rings.reaches(1));
  EXPECT_EQ(rings.reached(), 0u);
}

}  // namespace
}  // namespace troupe::rank_process
