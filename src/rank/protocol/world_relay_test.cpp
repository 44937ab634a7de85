// The tree between the supervisor and the members: its shape, what it combines, what it lets
// through, what it says of those that are late.
#include "rank/protocol/relay.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <set>

namespace troupe::rank_process {
namespace {

using from_supervisor::Activate;
constexpr std::chrono::milliseconds kPhaseTimeout(32'000);

TEST(WorldTree, EveryRankIsOnceInIt) {
  for (const int radix : {2, 3, 8, 500}) {
    for (int size = 1; size <= 300; ++size) {
      const WorldTree tree{size, radix};
      SCOPED_TRACE(std::to_string(size) + " ranks, radix " + std::to_string(radix));
      EXPECT_EQ(tree.parent(0), -1);
      EXPECT_EQ(tree.subtree(0), size);
      int seen = 1;
      for (int rank = 0; rank < size; ++rank) {
        int below = 1, height = 0, end = rank + tree.subtree(rank);
        for (const int child : tree.children(rank)) {
          ++seen;
          EXPECT_EQ(tree.parent(child), rank);
          EXPECT_EQ(child + tree.subtree(child), end) << "subtrees are adjoining ranges";
          end = child;
          below += tree.subtree(child);
          height = std::max(height, 1 + tree.height(child));
        }
        EXPECT_EQ(tree.subtree(rank), below);
        EXPECT_GE(tree.height(rank), height);
      }
      EXPECT_EQ(seen, size);
    }
  }
}

TEST(WorldTree, ItsDepthIsLogarithmic) {
  for (const int size : {1, 2, 3, 4, 5, 64, 1000, 16'384}) {
    const WorldTree tree{size, 2};
    int deepest = 0;
    for (int rank = 0; rank < size; ++rank) {
      int depth = 0;
      for (int at = rank; at != 0; at = tree.parent(at)) ++depth;
      deepest = std::max(deepest, depth);
      EXPECT_LE(tree.children(rank).size(), std::ceil(std::log2(size)));
    }
    EXPECT_LE(deepest, std::ceil(std::log2(size)));
  }
}

/// Relays of all ranks, and messages that arrive at once, in order.
class Tree : public ::testing::Test {
 protected:
  void build(int size, int radix = 2) {
    size_ = size;
    delivered_.resize(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      relays_.push_back(std::make_unique<WorldRelay>(
          WorldRelay::Options{.rank = rank, .tree = {size, radix}, .phase_timeout = kPhaseTimeout},
          [this, rank](int to, const RankMessage& m) {
            queue_.push_back({rank, to, m});
          },
          [this, rank](int to, const SupervisorMessage& m) {
            queue_.push_back({rank, to, m});
          },
          [this, rank](const SupervisorMessage& m) {
            delivered_[static_cast<std::size_t>(rank)].push_back(m);
          }));
    }
  }
  void run() {
    while (!queue_.empty()) {
      const auto next = queue_.front();
      queue_.pop_front();
      const auto* const risen = std::get_if<RankMessage>(&next.message);
      if (next.to == WorldRelay::kToSupervisor) {
        risen_.push_back(*risen);
      } else if (risen != nullptr) {
        relay(next.to).up(*risen);
      } else {
        relay(next.to).down(std::get<SupervisorMessage>(next.message), now_);
      }
    }
  }
  void order(std::uint32_t round, Phase phase) {
    tell(from_supervisor::Order{.round = round, .phase = phase});
    risen_.clear();
  }
  void tell(const SupervisorMessage& message) {
    relay(0).down(message, now_);
    run();
  }
  template <class Message>
  void say(int rank, Message message) {
    message.rank = rank;
    relay(rank).up(std::move(message));
    run();
  }
  void done(int rank, std::uint32_t round, Phase phase) {
    say(rank, from_rank::Done{.round = round, .phase = phase});
  }
  void tick() {
    for (const auto& relay : relays_) relay->tick(now_);
    run();
  }
  WorldRelay& relay(int rank) { return *relays_[static_cast<std::size_t>(rank)]; }
  /// How many messages of this kind the supervisor has heard.
  template <class Message>
  int risen() const {
    return static_cast<int>(std::count_if(risen_.begin(), risen_.end(), [](const auto& message) {
      return std::holds_alternative<Message>(message);
    }));
  }
  /// The last one that it has heard, which is of this kind: else the test throws.
  template <class Message>
  const Message& last() const {
    return std::get<Message>(risen_.back());
  }
  std::set<int> late() const {
    const auto& ranks = last<from_rank::Late>().ranks;
    return {ranks.begin(), ranks.end()};
  }

  struct Sent {
    int from, to;
    WorldMessage message;
  };
  int size_ = 0;
  TimePoint now_{};
  std::vector<std::unique_ptr<WorldRelay>> relays_;
  std::deque<Sent> queue_;
  std::vector<RankMessage> risen_;  ///< what the supervisor hears
  std::vector<std::vector<SupervisorMessage>> delivered_;
};

TEST_F(Tree, AnOrderReachesEveryMemberOnce) {
  build(37, 3);
  order(1, Phase::replace);
  for (const auto& messages : delivered_) {
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(std::get<from_supervisor::Order>(messages.front()).phase, Phase::replace);
  }
  order(0, Phase::quiesce);
  EXPECT_EQ(delivered_[36].size(), 1u) << "of an older round";
}

TEST_F(Tree, TheEndIsToldWithoutRelays) {
  build(37, 3);
  relay(0).down(from_supervisor::Stop{}, now_);
  std::erase_if(queue_, [](const Sent& sent) { return sent.to == 3 || sent.to == 9; });  // silent
  run();
  for (int rank = 0; rank < size_; ++rank) {
    const auto heard = delivered_[static_cast<std::size_t>(rank)].size();
    EXPECT_EQ(heard, rank == 3 || rank == 9 ? 0u : 1u) << rank;
  }
}

TEST_F(Tree, AnswersAreCombinedIntoOne) {
  for (const int size : {1, 2, 13, 64}) {
    relays_.clear(), delivered_.clear(), risen_.clear();
    build(size);
    order(1, Phase::replace);
    for (int i = 0; i < size; ++i) {
      const int rank = (i * 29 + 3) % size;  // coprime to all sizes: each once
      EXPECT_EQ(risen<from_rank::Done>(), 0);
      from_rank::Done done{.round = 1,
                           .phase = Phase::replace,
                           .lost_buffers = 1,
                           .newest = 100 + rank,
                           .repeated = rank};
      if (rank % 5 == 0) done.contributions = {{rank, {std::byte{9}}}};
      if (rank % 2 == 0) done.iterations = {{rank, 7}};
      say(rank, done);
    }
    ASSERT_EQ(risen_.size(), 1u);
    const auto& all = last<from_rank::Done>();
    EXPECT_EQ(all.rank, 0);
    EXPECT_EQ(all.covered, size);
    EXPECT_EQ(all.newest, 100);
    EXPECT_EQ(all.repeated, size - 1);
    EXPECT_EQ(all.lost_buffers, static_cast<std::uint32_t>(size));
    EXPECT_EQ(all.contributions.size(), static_cast<std::size_t>((size + 4) / 5));
    EXPECT_EQ(all.iterations.size(), static_cast<std::size_t>((size + 1) / 2));
  }
}

TEST_F(Tree, AnswersOfAnOlderRoundOrAnotherPhaseOrTwiceDoNotCount) {
  build(2);
  order(1, Phase::quiesce);
  done(1, 1, Phase::quiesce);
  order(2, Phase::quiesce);
  done(0, 2, Phase::quiesce);
  done(1, 1, Phase::quiesce);
  done(1, 2, Phase::replace);
  done(0, 2, Phase::quiesce);
  EXPECT_TRUE(risen_.empty());
  done(1, 2, Phase::quiesce);
  EXPECT_EQ(risen<from_rank::Done>(), 1);
}

/// `Progress`: a message that says how far a rank is.
template <class Progress>
class ProgressInTree : public Tree {};
using KindsOfProgress = ::testing::Types<from_rank::Committed, from_rank::Flushed>;
TYPED_TEST_SUITE(ProgressInTree, KindsOfProgress);

TYPED_TEST(ProgressInTree, RisesWhenTheWholeSubtreeIsThatFar) {
  this->build(5);
  this->order(1, Phase::restore);
  this->tell(Activate{.round = 1, .epoch = 1, .stable = 3});
  const auto reach = [&](int rank, std::int64_t step, std::uint32_t epoch = 1) {
    this->say(rank, TypeParam{.epoch = epoch, .step = step});
  };
  for (int rank = 0; rank < 4; ++rank) reach(rank, 5);
  reach(4, 99, 0);
  EXPECT_TRUE(this->risen_.empty());
  reach(4, 4);
  ASSERT_EQ(this->risen_.size(), 1u);
  EXPECT_EQ(this->template last<TypeParam>().step, 4);
  EXPECT_EQ(this->template last<TypeParam>().covered, 5);
  reach(4, 5);
  EXPECT_EQ(this->template last<TypeParam>().step, 5);
  reach(2, 5);
  EXPECT_EQ(this->risen_.size(), 2u) << "nothing new";
  this->tell(from_supervisor::AllFinished{});
  for (int rank = 0; rank < 5; ++rank) reach(rank, 0);
  EXPECT_EQ(this->risen_.size(), 3u) << "the next run counts from its own first step";
}

TEST_F(Tree, PacesRiseWithTheCommitOfAll) {
  build(3);
  tell(Activate{.round = 1, .epoch = 1, .stable = 0});
  const auto commit = [&](int rank, std::int64_t step, std::vector<RankPace> paces = {}) {
    say(rank, from_rank::Committed{.epoch = 1, .step = step, .paces = std::move(paces)});
  };
  commit(0, 1, {{.rank = 0, .wall_us = 10}});
  commit(1, 1);
  commit(1, 2, {{.rank = 1, .wall_us = 20}});
  EXPECT_TRUE(risen_.empty());
  commit(2, 1, {{.rank = 2, .wall_us = 30}});
  ASSERT_EQ(risen_.size(), 1u);
  const auto& paces = last<from_rank::Committed>().paces;
  ASSERT_EQ(paces.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(paces[i].rank, static_cast<int>(i));
  commit(0, 2);
  commit(2, 2);
  ASSERT_EQ(risen_.size(), 2u);
  EXPECT_TRUE(last<from_rank::Committed>().paces.empty()) << "they were told";
  commit(0, 3, {{.rank = 0, .wall_us = 40}});
  tell(Activate{.round = 2, .epoch = 2, .stable = 2});
  for (int rank = 0; rank < 3; ++rank) say(rank, from_rank::Committed{.epoch = 2, .step = 3});
  EXPECT_TRUE(last<from_rank::Committed>().paces.empty()) << "it was of the epoch before";
}

TEST_F(Tree, FinishedOfAnEpochIsCombined) {
  build(6);
  const auto activate = [&](std::uint32_t epoch) {
    tell(Activate{.round = epoch, .epoch = epoch});
  };
  const auto finish = [&](int rank, std::uint32_t epoch) {
    say(rank, from_rank::Finished{.epoch = epoch, .ends = {{rank, 20 - rank % 5}}});
  };
  activate(1);
  for (int rank = 0; rank < 5; ++rank) finish(rank, 1);
  order(2, Phase::quiesce);
  finish(5, 1);
  activate(2);
  finish(5, 2);
  EXPECT_TRUE(risen_.empty()) << "those of epoch 1 were rolled back";
  for (int rank = 0; rank < 5; ++rank) finish(rank, 2);
  ASSERT_EQ(risen<from_rank::Finished>(), 1);
  const auto& all = last<from_rank::Finished>();
  EXPECT_EQ(all.covered, 6);
  ASSERT_EQ(all.ends.size(), 2u) << "the first end and the last one";
  EXPECT_EQ(all.ends[0], (RankStep{4, 16}));
  EXPECT_EQ(all.ends[1].step, 20);
}

TEST_F(Tree, FaultsRiseAtOnceAndOfEchoesTheFirst) {
  build(64);
  order(1, Phase::form);
  for (const Phase phase : {Phase::form, Phase::verify}) {
    order(1, phase);
    for (int rank = 0; rank < 64; ++rank)
      say(rank, from_rank::Fault{.round = 1, .kind = "communicator"});
    EXPECT_EQ(risen<from_rank::Fault>(), WorldRelay::kEchoesPerPhase);
  }
  say(5, from_rank::Fault{.round = 1, .kind = "kill"});
  EXPECT_EQ(last<from_rank::Fault>().kind, "kill");
  EXPECT_EQ(last<from_rank::Fault>().rank, 5);
  order(2, Phase::quiesce);
  say(9, from_rank::Fault{.round = 1, .kind = "communicator"});
  EXPECT_TRUE(risen_.empty()) << "the echo of what the new round is for";
  say(9, from_rank::Fault{.round = 1, .kind = "segv"});
  EXPECT_EQ(risen<from_rank::Fault>(), 1) << "a death counts whenever it is heard of";
  say(9, from_rank::Failed{});
  EXPECT_EQ(risen<from_rank::Failed>(), 1);
}

TEST_F(Tree, LossesAreSummedUpExceptThoseThatNameADeath) {
  build(8);
  order(1, Phase::quiesce);
  for (int rank = 0; rank < 8; ++rank)
    say(rank, from_rank::Loss{.kind = rank == 3 ? "kill" : "", .lost_buffers = 10});
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(last<from_rank::Loss>().rank, 3);
  EXPECT_EQ(last<from_rank::Loss>().lost_buffers, 10u);
  for (int rank = 0; rank < 8; ++rank) done(rank, 1, Phase::quiesce);
  EXPECT_EQ(last<from_rank::Done>().lost_buffers, 70u);
}

TEST_F(Tree, StandbysAreReadyTogetherAndLostOneByOne) {
  build(11);
  using from_rank::Standby;
  using Is = Standby::State;
  tell(Activate{.round = 1, .epoch = 3});
  const auto standby = [&](int rank, Is state, std::uint32_t epoch = 3) {
    say(rank, Standby{.epoch = epoch, .state = state});
  };
  for (int rank = 0; rank < 10; ++rank) standby(rank, Is::ready);
  standby(10, Is::ready, 2);
  EXPECT_TRUE(risen_.empty());
  standby(10, Is::ready);
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(last<Standby>().covered, 11);
  standby(7, Is::lost);
  ASSERT_EQ(risen_.size(), 2u);
  EXPECT_EQ(last<Standby>().rank, 7);
  EXPECT_EQ(last<Standby>().covered, 1);
  standby(3, Is::ready);
  EXPECT_EQ(risen_.size(), 2u) << "rank 7 still has none";
  standby(7, Is::ready);
  ASSERT_EQ(risen_.size(), 3u);
  EXPECT_EQ(last<Standby>().covered, 11);
}

TEST_F(Tree, AFormationsAnswersAreCombinedAndItsFirstFailureRises) {
  build(7);
  using enum Preparation;
  const auto prepare = [&](std::uint32_t formation, Preparation step) {
    tell(from_supervisor::Prepare{.formation = formation, .step = step});
  };
  const auto prepared = [&](int rank, std::uint32_t formation, Preparation step,
                            Errc code = Errc::ok) {
    say(rank, from_rank::Prepared{.formation = formation,
                                  .step = step,
                                  .error = {code, 0, {}},
                                  .contributions = {{rank, {std::byte{1}}}}});
  };
  prepare(1, contribute);
  for (int rank = 0; rank < 6; ++rank) prepared(rank, 1, contribute);
  prepared(6, 0, contribute);
  prepared(6, 1, connect);
  EXPECT_TRUE(risen_.empty());
  prepared(6, 1, contribute);
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(last<from_rank::Prepared>().covered, 7);
  EXPECT_EQ(last<from_rank::Prepared>().contributions.size(), 7u);
  prepare(1, connect);
  for (int rank = 0; rank < 7; ++rank) prepared(rank, 1, connect, Errc::library);
  EXPECT_EQ(risen_.size(), 2u);
  prepare(2, contribute);
  for (int rank = 0; rank < 7; ++rank) prepared(rank, 2, contribute);
  EXPECT_EQ(risen_.size(), 3u);
}

TEST_F(Tree, ThoseThatAreLateAreNamed) {
  build(100);
  order(1, Phase::replace);
  const std::set<int> missing = {0, 17, 64, 99};
  for (int rank = 0; rank < 100; ++rank) {
    if (!missing.contains(rank)) done(rank, 1, Phase::replace);
  }
  now_ += kPhaseTimeout / 2 - std::chrono::milliseconds(1);
  tick();
  EXPECT_TRUE(risen_.empty()) << "there is time";
  for (int i = 0; i < 80; ++i) now_ += kPhaseTimeout / 256, tick();
  ASSERT_EQ(risen<from_rank::Late>(), 1);
  EXPECT_EQ(late(), missing);
  for (const int rank : missing) done(rank, 1, Phase::replace);
  EXPECT_EQ(last<from_rank::Done>().covered, 100) << "being late is no fault";
}

TEST_F(Tree, WhenAllAreLateSomeAreNamed) {
  build(100);
  order(1, Phase::verify);
  for (int i = 0; i < 256; ++i) now_ += kPhaseTimeout / 256, tick();
  ASSERT_EQ(risen<from_rank::Late>(), 1);
  EXPECT_EQ(late().size(), WorldRelay::kMostLate);
}

TEST_F(Tree, ARelayThatSaysNothingIsNamedItself) {
  build(16);
  order(1, Phase::verify);
  for (int rank = 0; rank < 16; ++rank) {
    if (rank != 12) done(rank, 1, Phase::verify);
  }
  for (int i = 0; i < 256; ++i) {
    now_ += kPhaseTimeout / 256;
    for (int rank = 0; rank < 16; ++rank) {
      if (rank != 12) relay(rank).tick(now_);
    }
    run();
  }
  EXPECT_EQ(late(), std::set<int>{12});
}

}  // namespace
}  // namespace troupe::rank_process
