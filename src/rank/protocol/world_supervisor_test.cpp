// The supervisor alone, by hand.
#include "rank/protocol/supervisor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe::rank_process {
namespace {

using namespace from_supervisor;

template <class Message>
concept HasRound = requires(Message message) {
  message.round;
};

class SupervisorByHand : public ::testing::Test {
 protected:
  explicit SupervisorByHand(int max_rounds = 16) {
    supervisor_.emplace(
        WorldSupervisor::Options{
            .size = 2, .phase_timeout = std::chrono::seconds(1), .max_rounds = max_rounds},
        [this](const SupervisorMessage& message) { sent_.push_back(message); });
    supervisor_->start(now_);
  }
  template <class Message>
  void from(int rank, Message message) {
    message.rank = rank;
    if constexpr (HasRound<Message>) {
      if (message.round == 0) message.round = supervisor_->round();
    }
    supervisor_->receive(message, now_);
  }
  void fault(int rank, const std::string& kind, Error error = {}) {
    from(rank, from_rank::Fault{.kind = kind, .error = std::move(error)});
  }
  void done(int rank, Phase phase) { from(rank, from_rank::Done{.phase = phase}); }
  /// Both ranks answer until the world is active.
  void settle(std::int64_t newest_a = -1, std::int64_t newest_b = -1) {
    while (supervisor_->phase() != Phase::active) {
      const auto phase = supervisor_->phase();
      from(0, from_rank::Done{
                  .phase = phase, .newest = newest_a, .repeated = 2, .iterations = {{0, 8}}});
      EXPECT_EQ(supervisor_->phase(), phase) << "one rank's answer is not enough";
      from(1, from_rank::Done{
                  .phase = phase, .newest = newest_b, .repeated = 3, .iterations = {{1, 9}}});
    }
  }
  void commit(int rank, std::int64_t step) {
    from(rank, from_rank::Committed{.epoch = supervisor_->epoch(), .step = step});
  }
  void finish(int rank, std::int64_t step = 7) {
    from_rank::Finished message{.epoch = supervisor_->epoch()};
    if (step != kAnyStep) message.ends = {{rank, step}};
    from(rank, std::move(message));
  }
  /// How many messages of this kind the supervisor has sent.
  template <class Message>
  int sent() const {
    return static_cast<int>(std::count_if(sent_.begin(), sent_.end(), [](const auto& message) {
      return std::holds_alternative<Message>(message);
    }));
  }
  /// The last message, which is of this kind: else the test throws.
  template <class Message>
  const Message& last() const {
    return std::get<Message>(sent_.back());
  }
  const std::vector<Recovery>& reports() const { return last<from_supervisor::Activate>().reports; }

  TimePoint now_{};
  std::vector<SupervisorMessage> sent_;
  std::optional<WorldSupervisor> supervisor_;
};

TEST_F(SupervisorByHand, StableIsTheOldestOfTheNewestCommits) {
  settle();
  commit(0, 0);
  commit(0, 10);
  EXPECT_EQ(sent<Stable>(), 0);
  commit(1, 0);
  EXPECT_EQ(last<Stable>().step, 0);
  commit(1, 10);
  EXPECT_EQ(last<Stable>().step, 10);
  commit(1, 0);
  EXPECT_EQ(sent<Stable>(), 2) << "it never goes back";
  from(1, from_rank::Committed{.epoch = supervisor_->epoch() + 1, .step = 99});
  from(0, from_rank::Committed{.epoch = supervisor_->epoch() + 1, .step = 99});
  EXPECT_EQ(sent<Stable>(), 2) << "of another epoch";
}

TEST_F(SupervisorByHand, RestoresTheNewestCommitThatAllHave) {
  settle();
  fault(1, "kill");
  settle(20, 10);
  const auto order = std::find_if(sent_.rbegin(), sent_.rend(), [](const auto& message) {
    const auto* const ordered = std::get_if<Order>(&message);
    return ordered != nullptr && ordered->phase == Phase::restore;
  });
  ASSERT_NE(order, sent_.rend());
  EXPECT_EQ(std::get<Order>(*order).step, 10);
  EXPECT_EQ(last<Activate>().stable, 10);
  EXPECT_EQ(last<Activate>().epoch, 2u);
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports().front().rank, 1);
  EXPECT_EQ(reports().front().kind, "kill");
  EXPECT_EQ(reports().front().epoch, 2u);
  EXPECT_EQ(reports().front().iteration, 9);
  EXPECT_EQ(reports().front().repeated_iterations, 3);
}

TEST_F(SupervisorByHand, AFaultBetweenTheRanksEndsMakesAllFinishAgain) {
  settle();
  finish(0);
  fault(1, "kill");
  finish(1);  // on its way already
  settle();
  finish(1);
  EXPECT_EQ(sent<AllFinished>(), 0) << "rank 0 was rolled back";
  finish(0);
  EXPECT_EQ(sent<AllFinished>(), 1);
  commit(0, 0);
  commit(1, 0);
  EXPECT_EQ(sent<Stable>(), 1) << "the next run counts from its own first step";
}

TEST_F(SupervisorByHand, TellsWithWhichStepARunHasEnded) {
  settle();
  finish(0, 19);
  finish(1, 19);
  EXPECT_EQ(last<AllFinished>().step, 19);
  finish(0, kAnyStep);  // a spectator, or one that has left the run
  finish(1, 3);
  EXPECT_EQ(last<AllFinished>().step, 3);
  finish(0, kAnyStep);
  finish(1, kAnyStep);
  EXPECT_EQ(last<AllFinished>().step, kAnyStep);
  EXPECT_EQ(sent<AllFinished>(), 3);
}

TEST_F(SupervisorByHand, RanksThatEndARunWithDifferentStepsDisagree) {
  settle();
  finish(1, 40);
  EXPECT_FALSE(supervisor_->stopped());
  finish(0, 10);
  EXPECT_EQ(last<Stop>().error.code, Errc::invalid);
  EXPECT_EQ(
      last<Stop>().error.message,
      "the ranks disagree on the end of the run: rank 0 has ended it with step 10, rank 1 with "
      "step 40");
}

TEST_F(SupervisorByHand, ARankThatGoesOnBehindTheEndOfAnotherDisagrees) {
  settle();
  commit(0, 10);
  commit(1, 10);
  finish(0, 12);
  EXPECT_FALSE(supervisor_->stopped());
  commit(1, 20);
  EXPECT_EQ(
      last<Stop>().error.message,
      "the ranks disagree on the end of the run: rank 0 has ended it with step 12, rank 1 has "
      "gone on to a commit of step 20");
}

TEST_F(SupervisorByHand, AFaultTakesTheEndsOfARunBack) {
  settle();
  finish(0, 10);
  fault(1, "kill");
  settle();
  finish(0, 11);
  finish(1, 11);
  EXPECT_FALSE(supervisor_->stopped());
  EXPECT_EQ(sent<AllFinished>(), 1);
}

TEST_F(SupervisorByHand, ARunThatARankLeavesIsToldOnceInWhateverPhase) {
  settle();
  const auto leave = [&](int rank, std::int64_t run) {
    from(rank, from_rank::Left{.run = run, .error = {Errc::unsupported, 0, "why"}});
  };
  leave(1, 4);
  EXPECT_EQ(last<RunLeft>().rank, 1);
  EXPECT_EQ(last<RunLeft>().run, 4);
  EXPECT_EQ(last<RunLeft>().error.code, Errc::unsupported);
  EXPECT_EQ(last<RunLeft>().error.message, "why");
  EXPECT_EQ(supervisor_->phase(), Phase::halt) << "the ranks have left it at different places";
  leave(0, 4);
  EXPECT_EQ(sent<RunLeft>(), 1);
  settle();
  EXPECT_EQ(supervisor_->epoch(), 2u);
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports().front().kind, "left");
  fault(0, "kill");
  leave(0, 5);
  EXPECT_EQ(sent<RunLeft>(), 2);
  settle();
  EXPECT_EQ(supervisor_->epoch(), 3u) << "the fault's recovery is enough";
}

TEST_F(SupervisorByHand, AnEchoIsAFaultOnlyIfNothingElseComes) {
  settle();
  fault(0, "communicator");
  fault(1, "segv");
  settle();
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports().front().kind, "segv");
  fault(0, "communicator");
  settle();
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports().front().kind, "communicator");
}

TEST_F(SupervisorByHand, AnEchoOfAnEarlierRoundChangesNothing) {
  settle();
  const auto old = supervisor_->round();
  fault(1, "kill");
  settle();
  const auto round = supervisor_->round();
  from(0, from_rank::Fault{.round = old, .kind = "communicator"});
  EXPECT_EQ(supervisor_->phase(), Phase::active);
  EXPECT_EQ(supervisor_->round(), round);
}

TEST_F(SupervisorByHand, AnEchoBeforeTheRankHasHeardOfTheNewEpochCounts) {
  settle();
  fault(1, "kill");
  settle();
  // Rank 0 has restored in this round, but its activation is still on its way to it.
  fault(0, "communicator");
  EXPECT_EQ(supervisor_->phase(), Phase::halt)
      << "its communicator is broken: nobody else will say so";
}

/// A world with standbys that have formed theirs.
class WithStandbyWorld : public SupervisorByHand {
 protected:
  void form() {
    settle();
    for (const int rank : {0, 1}) standby(rank, State::ready);
    prepare();
  }
  using State = from_rank::Standby::State;
  void standby(int rank, State state) {
    from(rank, from_rank::Standby{.epoch = supervisor_->epoch(), .state = state});
  }
  void prepare() {
    for (const auto step : {Preparation::contribute, Preparation::connect}) {
      const auto formation = last<Prepare>().formation;
      for (const int rank : {0, 1})
        from(rank, from_rank::Prepared{
                       .epoch = supervisor_->epoch(), .formation = formation, .step = step});
    }
    ASSERT_TRUE(supervisor_->standby_world().formed());
  }
  /// What the ranks are ordered to promote in the replace phase that follows; 0: nothing.
  std::uint32_t promoted() {
    while (supervisor_->phase() != Phase::replace) {
      const auto phase = supervisor_->phase();
      for (const int rank : {0, 1}) done(rank, phase);
    }
    return last<Order>().formation;
  }
};

TEST_F(WithStandbyWorld, IsFormedAnewWithAnotherGroup) {
  form();
  for (int i = 0; i < 10; ++i) {  // more often than a formation that fails is tried
    for (const int rank : {0, 1}) {
      standby(rank, State::stale);
      standby(rank, State::ready);
      EXPECT_FALSE(supervisor_->standby_world().formed());
    }
    supervisor_->tick(now_ += std::chrono::seconds(2));
    prepare();
  }
}

TEST_F(WithStandbyWorld, IsPromotedAfterADeath) {
  form();
  fault(1, "kill");
  EXPECT_NE(promoted(), 0u);
}

TEST_F(WithStandbyWorld, DeviceHostsThatLiveOnKeepTheirPlaces) {
  form();
  fault(1, "timeout");
  fault(0, "timeout");
  EXPECT_EQ(promoted(), 0u);
}

TEST_F(WithStandbyWorld, ADeathBesideADeadlineIsADeath) {
  form();
  fault(0, "timeout");
  fault(1, "hang");
  EXPECT_NE(promoted(), 0u);
}

TEST_F(SupervisorByHand, ACommunicatorHasTheContributionsOfItsOwnRoundAlone) {
  supervisor_.emplace(WorldSupervisor::Options{.size = 3, .shrink = true},
                      [this](const SupervisorMessage& message) { sent_.push_back(message); });
  supervisor_->start(now_);
  std::vector<std::size_t> roots;
  std::byte id{0};
  const auto form = [&] {
    while (supervisor_->phase() != Phase::active) {
      const auto order = last<Order>();
      if (order.phase == Phase::form) roots.push_back(order.contributions.given.size());
      const auto& out = order.excluded;
      const int first = std::binary_search(out.begin(), out.end(), 0) ? 1 : 0;
      for (int rank = 0; rank < 3; ++rank) {
        from_rank::Done done{.phase = order.phase};
        if (order.phase == Phase::replace && rank == first) {
          id = static_cast<std::byte>(std::to_integer<int>(id) + 1);
          done.contributions = {{rank, {id}}};
        }
        from(rank, done);
      }
    }
  };
  form();
  from(0, from_rank::Failed{.error = {Errc::device_failed, 0, "gone"}});
  form();
  from(0, from_rank::Rejoin{});
  form();
  EXPECT_EQ(roots, (std::vector<std::size_t>{1, 1, 1}));
}

// An echo goes when its cause is heard of; what else has happened by then stays in the report.
TEST_F(SupervisorByHand, ALossIsReportedWhateverIsHeardBeforeAndAfterIt) {
  supervisor_.emplace(WorldSupervisor::Options{.size = 3, .shrink = true},
                      [this](const SupervisorMessage& message) { sent_.push_back(message); });
  supervisor_->start(now_);
  const auto form = [&] {
    while (supervisor_->phase() != Phase::active) {
      const auto phase = supervisor_->phase();
      for (int rank = 0; rank < 3; ++rank) done(rank, phase);
    }
  };
  form();
  fault(0, "communicator");
  from(2, from_rank::Failed{.error = {Errc::device_failed, 0, "gone"}});
  fault(1, "kill");
  form();
  ASSERT_EQ(reports().size(), 2u);
  EXPECT_EQ(reports()[0].rank, 2);
  EXPECT_EQ(reports()[0].kind, kKindFailed);
  EXPECT_EQ(reports()[1].rank, 1);
  EXPECT_EQ(reports()[1].kind, "kill");
}

TEST_F(SupervisorByHand, DeadlinesBeginANewRoundAndEndInAStop) {
  done(0, Phase::replace);
  supervisor_->tick(now_ += std::chrono::milliseconds(1000));
  EXPECT_EQ(supervisor_->phase(), Phase::replace) << "not yet";
  supervisor_->tick(now_ += std::chrono::milliseconds(1));
  EXPECT_EQ(supervisor_->phase(), Phase::halt);
  done(0, Phase::halt);
  supervisor_->tick(now_ += std::chrono::milliseconds(1001));
  EXPECT_TRUE(supervisor_->stopped());
  const auto& error = last<Stop>().error;
  EXPECT_EQ(error.code, Errc::timeout);
  EXPECT_NE(error.message.find("waited for rank 1"), std::string::npos) << error.message;
  const auto count = sent_.size();
  fault(0, "kill");
  supervisor_->tick(now_ += std::chrono::seconds(100));
  EXPECT_EQ(sent_.size(), count) << "a stopped world says no more";
}

TEST_F(SupervisorByHand, RoundsAreBounded) {
  settle();
  for (int i = 0; i < 40 && !supervisor_->stopped(); ++i) {
    fault(1, "kill", {Errc::device_lost, 9, "its process ended"});
    for (const auto phase : {Phase::halt, Phase::quiesce}) {
      done(0, phase);
      done(1, phase);
    }
  }
  EXPECT_TRUE(supervisor_->stopped());
  EXPECT_EQ(last<Stop>().error.code, Errc::budget_exhausted);
  EXPECT_EQ(last<Stop>().error.message,
            "the world could not be re-formed in 16 rounds; the last failure: rank 1 (kill): its "
            "process ended");
  EXPECT_LE(supervisor_->round(), 18u);
}

TEST_F(SupervisorByHand, AWorldThatNeverFormsEndsWithTheReason) {
  for (int i = 0; i < 40 && !supervisor_->stopped(); ++i) {
    while (supervisor_->phase() != Phase::form) {
      const auto phase = supervisor_->phase();
      for (const int rank : {0, 1}) done(rank, phase);
    }
    fault(1, "form", {Errc::library, 2, "ncclCommInitRank: unhandled system error"});
  }
  EXPECT_TRUE(supervisor_->stopped());
  EXPECT_EQ(last<Stop>().error.code, Errc::library);
  EXPECT_EQ(last<Stop>().error.native, 2);
  EXPECT_EQ(last<Stop>().error.message,
            "the world could not be formed in 16 rounds; the last failure: rank 1 (form): "
            "ncclCommInitRank: unhandled system error");
}

TEST_F(SupervisorByHand, AnswersToAnOlderRoundOrAnotherPhaseDoNotCount) {
  settle();
  fault(1, "kill");
  const auto answer = [&](std::uint32_t round, Phase phase) {
    for (const int rank : {0, 1}) from(rank, from_rank::Done{.round = round, .phase = phase});
  };
  answer(1, Phase::halt);
  answer(2, Phase::replace);
  EXPECT_EQ(supervisor_->phase(), Phase::halt);
  done(0, Phase::halt);
  done(0, Phase::halt);
  EXPECT_EQ(supervisor_->phase(), Phase::halt) << "twice the same rank";
  answer(2, Phase::halt);
  EXPECT_EQ(supervisor_->phase(), Phase::quiesce);
}

TEST_F(SupervisorByHand, ForeignRanksAreIgnored) {
  settle();
  for (const int rank : {2, -1}) fault(rank, "kill");
  EXPECT_EQ(supervisor_->phase(), Phase::active);
}

/// A rank that is back at its place finds the last commit that all had: all go back to that.
TEST_F(SupervisorByHand, ARankThatIsBackTakesAllBackToTheLastCommonCommit) {
  settle();
  commit(0, 20), commit(1, 20);
  const auto epoch = supervisor_->epoch();
  supervisor_->receive(from_rank::Joined{.rank = 1, .incarnation = 1}, now_);
  EXPECT_EQ(last<Order>().phase, Phase::halt);
  EXPECT_EQ(last<Order>().incarnations, (std::vector<Incarnation>{{1, 1}}));
  for (const auto phase : {Phase::halt, Phase::quiesce}) done(0, phase), done(1, phase);
  from(0, from_rank::Done{.phase = Phase::replace, .newest = 30, .kept = 10, .stable = 20});
  from(1, from_rank::Done{.phase = Phase::replace, .newest = kAnyStep, .kept = kAnyStep});
  for (const auto phase : {Phase::form, Phase::verify}) done(0, phase), done(1, phase);
  EXPECT_EQ(last<Order>().step, 20);
  done(0, Phase::restore), done(1, Phase::restore);
  ASSERT_EQ(supervisor_->phase(), Phase::active);
  EXPECT_TRUE(last<Activate>().renewed);
  EXPECT_EQ(last<Activate>().stable, -1) << "the state is dealt out anew";
  EXPECT_EQ(supervisor_->epoch(), epoch + 1);
  ASSERT_EQ(reports().size(), 1u);
  EXPECT_EQ(reports()[0].kind, kKindRank);
  EXPECT_EQ(reports()[0].rank, 1);
  // Another fault later is one as always.
  fault(0, "kill");
  settle(40, 40);
  EXPECT_FALSE(last<Activate>().renewed);
  EXPECT_EQ(last<Activate>().stable, 40);
}

/// At another place it has no commit: all go back to one of which others keep its part.
TEST_F(SupervisorByHand, ARankAtAnotherPlaceTakesAllBackToWhatIsKept) {
  settle();
  const auto moved = keeper::incarnation_of(1, 0);
  supervisor_->receive(from_rank::Joined{.rank = 1, .incarnation = moved}, now_);
  for (const auto phase : {Phase::halt, Phase::quiesce}) done(0, phase), done(1, phase);
  from(0, from_rank::Done{.phase = Phase::replace, .newest = 30, .kept = 10, .stable = 20});
  from(1, from_rank::Done{.phase = Phase::replace, .newest = kAnyStep, .kept = kAnyStep});
  for (const auto phase : {Phase::form, Phase::verify}) done(0, phase), done(1, phase);
  EXPECT_EQ(last<Order>().step, 10);
}

TEST_F(SupervisorByHand, ARankThatIsBackBehindTheFirstRunEndsTheJob) {
  settle();
  supervisor_->receive(from_rank::Joined{.rank = 0, .incarnation = 1}, now_);
  for (const auto phase : {Phase::halt, Phase::quiesce}) done(0, phase), done(1, phase);
  from(0, from_rank::Done{.phase = Phase::replace, .newest = kAnyStep});
  from(1, from_rank::Done{.phase = Phase::replace, .newest = -1, .kept = -1, .runs_ended = 1});
  ASSERT_TRUE(supervisor_->stopped());
  EXPECT_TRUE(last<Stop>().at_once);
  EXPECT_EQ(last<Stop>().error.code, Errc::budget_exhausted);
}

/// Rounds and epochs that the leader before has begun without this rank's knowledge are over.
TEST(Supervisor, ANewLeaderGoesBeyondAllThatWasBegun) {
  std::vector<SupervisorMessage> sent;
  WorldSupervisor supervisor({.size = 3, .leader = 1},
                             [&](const SupervisorMessage& message) { sent.push_back(message); });
  supervisor.take_over({.round = 7,
                        .epoch = 4,
                        .excluded = {},
                        .incarnations = {{0, 1}, {2, 3}},
                        .joined = {{0, 1}}},
                       TimePoint{});
  ASSERT_EQ(sent.size(), 1u);
  const auto& order = std::get<Order>(sent[0]);
  EXPECT_EQ(order.phase, Phase::halt);
  EXPECT_EQ(order.leader, 1);
  EXPECT_GT(order.round, 8u);
  EXPECT_GT(order.epoch, 5u);
  EXPECT_EQ(order.incarnations, (std::vector<Incarnation>{{0, 1}, {2, 3}}));
}

}  // namespace
}  // namespace troupe::rank_process
