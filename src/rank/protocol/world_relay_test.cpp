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

using Kind = WorldMessage::Kind;
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
          [this, rank](int to, const WorldMessage& m) {
            queue_.push_back({rank, to, m});
          },
          [this, rank](const WorldMessage& m) {
            delivered_[static_cast<std::size_t>(rank)].push_back(m);
          }));
    }
  }
  void run() {
    while (!queue_.empty()) {
      const auto next = queue_.front();
      queue_.pop_front();
      if (next.to == WorldRelay::kToSupervisor) {
        risen_.push_back(next.message);
      } else if (next.message.kind < Kind::order) {
        relay(next.to).up(next.message);
      } else {
        relay(next.to).down(next.message, now_);
      }
    }
  }
  void order(std::uint32_t round, Phase phase) {
    relay(0).down({.kind = Kind::order, .phase = phase, .round = round}, now_);
    run();
    risen_.clear();
  }
  void say(int rank, WorldMessage message) {
    message.rank = rank;
    relay(rank).up(std::move(message));
    run();
  }
  void tick() {
    for (const auto& relay : relays_) relay->tick(now_);
    run();
  }
  WorldRelay& relay(int rank) { return *relays_[static_cast<std::size_t>(rank)]; }
  int risen(Kind kind) const {
    return static_cast<int>(
        std::count_if(risen_.begin(), risen_.end(), [&](const auto& m) { return m.kind == kind; }));
  }
  std::set<int> late() const {
    std::set<int> ranks;
    for (const auto& part : risen_.back().parts) ranks.insert(part.rank);
    return ranks;
  }

  struct Sent {
    int from, to;
    WorldMessage message;
  };
  int size_ = 0;
  TimePoint now_{};
  std::vector<std::unique_ptr<WorldRelay>> relays_;
  std::deque<Sent> queue_;
  std::vector<WorldMessage> risen_;  ///< what the supervisor hears
  std::vector<std::vector<WorldMessage>> delivered_;
};

TEST_F(Tree, AnOrderReachesEveryMemberOnce) {
  build(37, 3);
  order(1, Phase::replace);
  for (const auto& messages : delivered_) {
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages.front().phase, Phase::replace);
  }
  order(0, Phase::quiesce);
  EXPECT_EQ(delivered_[36].size(), 1u) << "of an older round";
}

TEST_F(Tree, TheEndIsToldWithoutRelays) {
  build(37, 3);
  relay(0).down({.kind = Kind::stop}, now_);
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
      EXPECT_EQ(risen(Kind::done), 0);
      say(rank, {.kind = Kind::done,
                 .phase = Phase::replace,
                 .round = 1,
                 .lost_buffers = 1,
                 .step = 100 + rank,
                 .repeated = rank,
                 .parts = rank % 5 == 0 ? std::vector<RankPart>{{rank, -1, {std::byte{9}}}}
                                        : std::vector<RankPart>{}});
    }
    ASSERT_EQ(risen_.size(), 1u);
    const auto& all = risen_.front();
    EXPECT_EQ(all.kind, Kind::done);
    EXPECT_EQ(all.rank, 0);
    EXPECT_EQ(all.covered, size);
    EXPECT_EQ(all.step, 100);
    EXPECT_EQ(all.repeated, size - 1);
    EXPECT_EQ(all.lost_buffers, static_cast<std::uint32_t>(size));
    EXPECT_EQ(all.parts.size(), static_cast<std::size_t>((size + 4) / 5));
  }
}

TEST_F(Tree, AnswersOfAnOlderRoundOrAnotherPhaseOrTwiceDoNotCount) {
  build(2);
  order(1, Phase::quiesce);
  const WorldMessage done{.kind = Kind::done, .phase = Phase::quiesce, .round = 1};
  say(1, done);
  order(2, Phase::quiesce);
  say(0, {.kind = Kind::done, .phase = Phase::quiesce, .round = 2});
  say(1, done);
  say(1, {.kind = Kind::done, .phase = Phase::replace, .round = 2});
  say(0, {.kind = Kind::done, .phase = Phase::quiesce, .round = 2});
  EXPECT_TRUE(risen_.empty());
  say(1, {.kind = Kind::done, .phase = Phase::quiesce, .round = 2});
  EXPECT_EQ(risen(Kind::done), 1);
}

TEST_F(Tree, CommitsAndFlushesRiseWhenTheWholeSubtreeHasThem) {
  for (const auto kind : {Kind::committed, Kind::flushed}) {
    SCOPED_TRACE(static_cast<int>(kind));
    risen_.clear();
    build(5);
    order(1, Phase::restore);
    relay(0).down({.kind = Kind::activate, .round = 1, .epoch = 1, .step = 3}, now_);
    run();
    const auto commit = [&](int rank, std::int64_t step, std::uint32_t epoch = 1) {
      say(rank, {.kind = kind, .round = 1, .epoch = epoch, .step = step});
    };
    for (int rank = 0; rank < 4; ++rank) commit(rank, 5);
    commit(4, 99, 0);
    EXPECT_TRUE(risen_.empty());
    commit(4, 4);
    ASSERT_EQ(risen_.size(), 1u);
    EXPECT_EQ(risen_.back().step, 4);
    EXPECT_EQ(risen_.back().covered, 5);
    commit(4, 5);
    EXPECT_EQ(risen_.back().step, 5);
    commit(2, 5);
    EXPECT_EQ(risen_.size(), 2u) << "nothing new";
    relay(0).down({.kind = Kind::all_finished, .round = 1, .epoch = 1}, now_);
    run();
    for (int rank = 0; rank < 5; ++rank) commit(rank, 0);
    EXPECT_EQ(risen_.size(), 3u) << "the next run counts from its own first step";
  }
}

TEST_F(Tree, FinishedOfAnEpochIsCombined) {
  build(6);
  const auto activate = [&](std::uint32_t epoch) {
    relay(0).down({.kind = Kind::activate, .round = epoch, .epoch = epoch}, now_);
    run();
  };
  const auto finish = [&](int rank, std::uint32_t epoch) {
    say(rank, {.kind = Kind::finished,
               .epoch = epoch,
               .parts = {{.rank = rank, .iteration = 20 - rank % 5}}});
  };
  activate(1);
  for (int rank = 0; rank < 5; ++rank) finish(rank, 1);
  order(2, Phase::quiesce);
  finish(5, 1);
  activate(2);
  finish(5, 2);
  EXPECT_TRUE(risen_.empty()) << "those of epoch 1 were rolled back";
  for (int rank = 0; rank < 5; ++rank) finish(rank, 2);
  ASSERT_EQ(risen(Kind::finished), 1);
  EXPECT_EQ(risen_.back().covered, 6);
  ASSERT_EQ(risen_.back().parts.size(), 2u) << "the first end and the last one";
  EXPECT_EQ(risen_.back().parts[0].iteration, 16);
  EXPECT_EQ(risen_.back().parts[0].rank, 4);
  EXPECT_EQ(risen_.back().parts[1].iteration, 20);
}

TEST_F(Tree, FaultsRiseAtOnceAndOfEchoesTheFirst) {
  build(64);
  order(1, Phase::form);
  for (const Phase phase : {Phase::form, Phase::verify}) {
    order(1, phase);
    for (int rank = 0; rank < 64; ++rank)
      say(rank, {.kind = Kind::fault, .phase = phase, .round = 1, .text = "communicator"});
    EXPECT_EQ(risen(Kind::fault), WorldRelay::kEchoesPerPhase);
  }
  say(5, {.kind = Kind::fault, .round = 1, .text = "kill"});
  EXPECT_EQ(risen_.back().text, "kill");
  EXPECT_EQ(risen_.back().rank, 5);
  order(2, Phase::quiesce);
  say(9, {.kind = Kind::fault, .round = 1, .text = "communicator"});
  EXPECT_TRUE(risen_.empty()) << "the echo of what the new round is for";
  say(9, {.kind = Kind::fault, .round = 1, .text = "segv"});
  EXPECT_EQ(risen(Kind::fault), 1) << "a death counts whenever it is heard of";
  say(9, {.kind = Kind::failed, .round = 1});
  EXPECT_EQ(risen(Kind::failed), 1);
}

TEST_F(Tree, LossesAreSummedUpExceptThoseThatNameADeath) {
  build(8);
  order(1, Phase::quiesce);
  for (int rank = 0; rank < 8; ++rank)
    say(rank, {.kind = Kind::loss, .lost_buffers = 10, .text = rank == 3 ? "kill" : ""});
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(risen_.front().rank, 3);
  EXPECT_EQ(risen_.front().lost_buffers, 10u);
  for (int rank = 0; rank < 8; ++rank)
    say(rank, {.kind = Kind::done, .phase = Phase::quiesce, .round = 1});
  EXPECT_EQ(risen_.back().kind, Kind::done);
  EXPECT_EQ(risen_.back().lost_buffers, 70u);
}

TEST_F(Tree, StandbysAreReadyTogetherAndLostOneByOne) {
  build(11);
  relay(0).down({.kind = Kind::activate, .round = 1, .epoch = 3}, now_);
  run();
  const auto standby = [&](int rank, Errc code, std::uint32_t epoch = 3) {
    say(rank, {.kind = Kind::standby, .epoch = epoch, .code = static_cast<std::uint32_t>(code)});
  };
  for (int rank = 0; rank < 10; ++rank) standby(rank, Errc::ok);
  standby(10, Errc::ok, 2);
  EXPECT_TRUE(risen_.empty());
  standby(10, Errc::ok);
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(risen_.back().covered, 11);
  standby(7, Errc::device_lost);
  ASSERT_EQ(risen_.size(), 2u);
  EXPECT_EQ(risen_.back().rank, 7);
  EXPECT_EQ(risen_.back().covered, 1);
  standby(3, Errc::ok);
  EXPECT_EQ(risen_.size(), 2u) << "rank 7 still has none";
  standby(7, Errc::ok);
  ASSERT_EQ(risen_.size(), 3u);
  EXPECT_EQ(risen_.back().covered, 11);
}

TEST_F(Tree, AFormationsAnswersAreCombinedAndItsFirstFailureRises) {
  build(7);
  const auto prepare = [&](std::uint32_t formation, Phase phase) {
    relay(0).down({.kind = Kind::prepare, .phase = phase, .formation = formation}, now_);
    run();
  };
  const auto prepared = [&](int rank, std::uint32_t formation, Phase phase, Errc code = Errc::ok) {
    say(rank, {.kind = Kind::prepared,
               .phase = phase,
               .code = static_cast<std::uint32_t>(code),
               .formation = formation,
               .parts = {{rank, -1, {std::byte{1}}}}});
  };
  prepare(1, Phase::replace);
  for (int rank = 0; rank < 6; ++rank) prepared(rank, 1, Phase::replace);
  prepared(6, 0, Phase::replace);
  prepared(6, 1, Phase::form);
  EXPECT_TRUE(risen_.empty());
  prepared(6, 1, Phase::replace);
  ASSERT_EQ(risen_.size(), 1u);
  EXPECT_EQ(risen_.back().covered, 7);
  EXPECT_EQ(risen_.back().parts.size(), 7u);
  prepare(1, Phase::form);
  for (int rank = 0; rank < 7; ++rank) prepared(rank, 1, Phase::form, Errc::library);
  EXPECT_EQ(risen_.size(), 2u);
  prepare(2, Phase::replace);
  for (int rank = 0; rank < 7; ++rank) prepared(rank, 2, Phase::replace);
  EXPECT_EQ(risen_.size(), 3u);
}

TEST_F(Tree, ThoseThatAreLateAreNamed) {
  build(100);
  order(1, Phase::replace);
  const std::set<int> missing = {0, 17, 64, 99};
  for (int rank = 0; rank < 100; ++rank) {
    if (!missing.contains(rank))
      say(rank, {.kind = Kind::done, .phase = Phase::replace, .round = 1});
  }
  now_ += kPhaseTimeout / 2 - std::chrono::milliseconds(1);
  tick();
  EXPECT_TRUE(risen_.empty()) << "there is time";
  for (int i = 0; i < 80; ++i) now_ += kPhaseTimeout / 256, tick();
  ASSERT_EQ(risen(Kind::late), 1);
  EXPECT_EQ(late(), missing);
  for (const int rank : missing)
    say(rank, {.kind = Kind::done, .phase = Phase::replace, .round = 1});
  EXPECT_EQ(risen_.back().covered, 100) << "being late is no fault";
}

TEST_F(Tree, WhenAllAreLateSomeAreNamed) {
  build(100);
  order(1, Phase::verify);
  for (int i = 0; i < 256; ++i) now_ += kPhaseTimeout / 256, tick();
  ASSERT_EQ(risen(Kind::late), 1);
  EXPECT_EQ(late().size(), WorldRelay::kMostLate);
}

TEST_F(Tree, ARelayThatSaysNothingIsNamedItself) {
  build(16);
  order(1, Phase::verify);
  for (int rank = 0; rank < 16; ++rank) {
    if (rank != 12) say(rank, {.kind = Kind::done, .phase = Phase::verify, .round = 1});
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
