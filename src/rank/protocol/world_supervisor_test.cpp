// The supervisor alone, by hand.
#include "rank/protocol/supervisor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace troupe::rank_process {
namespace {

using Kind = WorldMessage::Kind;

class SupervisorByHand : public ::testing::Test {
 protected:
  explicit SupervisorByHand(int max_rounds = 16) {
    supervisor_.emplace(
        WorldSupervisor::Options{
            .size = 2, .phase_timeout = std::chrono::seconds(1), .max_rounds = max_rounds},
        [this](const WorldMessage& message) { sent_.push_back(message); });
    supervisor_->start(now_);
  }
  void from(int rank, WorldMessage message) {
    message.rank = rank;
    if (message.round == 0) message.round = supervisor_->round();
    supervisor_->receive(message, now_);
  }
  void fault(int rank, const std::string& kind) {
    from(rank, {.kind = Kind::fault, .epoch = supervisor_->epoch(), .text = kind});
  }
  /// Both ranks answer until the world is active.
  void settle(std::int64_t newest_a = -1, std::int64_t newest_b = -1) {
    while (supervisor_->phase() != Phase::active) {
      const auto phase = supervisor_->phase();
      from(
          0,
          {.kind = Kind::done, .phase = phase, .step = newest_a, .repeated = 2, .parts = {{0, 8}}});
      EXPECT_EQ(supervisor_->phase(), phase) << "one rank's answer is not enough";
      from(
          1,
          {.kind = Kind::done, .phase = phase, .step = newest_b, .repeated = 3, .parts = {{1, 9}}});
    }
  }
  void commit(int rank, std::int64_t step) {
    from(rank, {.kind = Kind::committed, .epoch = supervisor_->epoch(), .step = step});
  }
  void finish(int rank, std::int64_t step = 7) {
    WorldMessage message{.kind = Kind::finished, .epoch = supervisor_->epoch()};
    if (step != kAnyStep) message.parts = {{.rank = rank, .iteration = step}};
    from(rank, std::move(message));
  }
  int sent(Kind kind) const {
    return static_cast<int>(
        std::count_if(sent_.begin(), sent_.end(), [&](const auto& m) { return m.kind == kind; }));
  }

  TimePoint now_{};
  std::vector<WorldMessage> sent_;
  std::optional<WorldSupervisor> supervisor_;
};

TEST_F(SupervisorByHand, StableIsTheOldestOfTheNewestCommits) {
  settle();
  commit(0, 0);
  commit(0, 10);
  EXPECT_EQ(sent(Kind::stable), 0);
  commit(1, 0);
  ASSERT_EQ(sent_.back().kind, Kind::stable);
  EXPECT_EQ(sent_.back().step, 0);
  commit(1, 10);
  EXPECT_EQ(sent_.back().step, 10);
  commit(1, 0);
  EXPECT_EQ(sent(Kind::stable), 2) << "it never goes back";
  from(1, {.kind = Kind::committed, .epoch = supervisor_->epoch() + 1, .step = 99});
  from(0, {.kind = Kind::committed, .epoch = supervisor_->epoch() + 1, .step = 99});
  EXPECT_EQ(sent(Kind::stable), 2) << "of another epoch";
}

TEST_F(SupervisorByHand, RestoresTheNewestCommitThatAllHave) {
  settle();
  fault(1, "kill");
  settle(20, 10);
  const auto order = std::find_if(sent_.rbegin(), sent_.rend(), [](const auto& m) {
    return m.kind == Kind::order && m.phase == Phase::restore;
  });
  ASSERT_NE(order, sent_.rend());
  EXPECT_EQ(order->step, 10);
  EXPECT_EQ(sent_.back().kind, Kind::activate);
  EXPECT_EQ(sent_.back().step, 10);
  EXPECT_EQ(sent_.back().epoch, 2u);
  const auto reports = decode_reports(sent_.back().payload);
  ASSERT_TRUE(reports.ok());
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().rank, 1);
  EXPECT_EQ(reports->front().kind, "kill");
  EXPECT_EQ(reports->front().epoch, 2u);
  EXPECT_EQ(reports->front().iteration, 9);
  EXPECT_EQ(reports->front().repeated_iterations, 3);
}

TEST_F(SupervisorByHand, AFaultBetweenTheRanksEndsMakesAllFinishAgain) {
  settle();
  finish(0);
  fault(1, "kill");
  finish(1);  // on its way already
  settle();
  finish(1);
  EXPECT_EQ(sent(Kind::all_finished), 0) << "rank 0 was rolled back";
  finish(0);
  EXPECT_EQ(sent(Kind::all_finished), 1);
  commit(0, 0);
  commit(1, 0);
  EXPECT_EQ(sent_.back().kind, Kind::stable) << "the next run counts from its own first step";
}

TEST_F(SupervisorByHand, TellsWithWhichStepARunHasEnded) {
  settle();
  finish(0, 19);
  finish(1, 19);
  ASSERT_EQ(sent_.back().kind, Kind::all_finished);
  EXPECT_EQ(sent_.back().step, 19);
  finish(0, kAnyStep);
  finish(1, 3);
  ASSERT_EQ(sent_.back().kind, Kind::all_finished) << "a spectator, or one that has left the run";
  EXPECT_EQ(sent_.back().step, 3);
  finish(0, kAnyStep);
  finish(1, kAnyStep);
  EXPECT_EQ(sent_.back().step, kAnyStep);
  EXPECT_EQ(sent(Kind::all_finished), 3);
}

TEST_F(SupervisorByHand, RanksThatEndARunWithDifferentStepsDisagree) {
  settle();
  finish(1, 40);
  EXPECT_FALSE(supervisor_->stopped());
  finish(0, 10);
  ASSERT_EQ(sent_.back().kind, Kind::stop);
  EXPECT_EQ(sent_.back().code, static_cast<std::uint32_t>(Errc::invalid));
  EXPECT_EQ(
      sent_.back().text,
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
  ASSERT_EQ(sent_.back().kind, Kind::stop);
  EXPECT_EQ(
      sent_.back().text,
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
  EXPECT_EQ(sent(Kind::all_finished), 1);
}

TEST_F(SupervisorByHand, ARunThatARankLeavesIsToldOnceInWhateverPhase) {
  settle();
  const auto leave = [&](int rank, std::int64_t run) {
    from(rank, {.kind = Kind::left,
                .code = static_cast<std::uint32_t>(Errc::unsupported),
                .step = run,
                .text = "why"});
  };
  leave(1, 4);
  ASSERT_EQ(sent_.back().kind, Kind::run_left);
  EXPECT_EQ(sent_.back().rank, 1);
  EXPECT_EQ(sent_.back().step, 4);
  EXPECT_EQ(sent_.back().code, static_cast<std::uint32_t>(Errc::unsupported));
  EXPECT_EQ(sent_.back().text, "why");
  EXPECT_EQ(supervisor_->phase(), Phase::halt) << "the ranks have left it at different places";
  leave(0, 4);
  EXPECT_EQ(sent(Kind::run_left), 1);
  settle();
  EXPECT_EQ(supervisor_->epoch(), 2u);
  const auto reports = decode_reports(sent_.back().payload);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().kind, "left");
  fault(0, "kill");
  leave(0, 5);
  EXPECT_EQ(sent(Kind::run_left), 2);
  settle();
  EXPECT_EQ(supervisor_->epoch(), 3u) << "the fault's recovery is enough";
}

TEST_F(SupervisorByHand, AnEchoIsAFaultOnlyIfNothingElseComes) {
  settle();
  fault(0, "communicator");
  fault(1, "segv");
  settle();
  auto reports = decode_reports(sent_.back().payload);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().kind, "segv");
  fault(0, "communicator");
  settle();
  reports = decode_reports(sent_.back().payload);
  ASSERT_EQ(reports->size(), 1u);
  EXPECT_EQ(reports->front().kind, "communicator");
}

TEST_F(SupervisorByHand, AnEchoOfAnEarlierRoundChangesNothing) {
  settle();
  const auto old = supervisor_->round();
  fault(1, "kill");
  settle();
  const auto round = supervisor_->round();
  from(0, {.kind = Kind::fault, .round = old, .epoch = 1, .text = "communicator"});
  EXPECT_EQ(supervisor_->phase(), Phase::active);
  EXPECT_EQ(supervisor_->round(), round);
}

TEST_F(SupervisorByHand, AnEchoBeforeTheRankHasHeardOfTheNewEpochCounts) {
  settle();
  fault(1, "kill");
  settle();
  // Rank 0 has restored in this round, but its activation is still on its way to it.
  from(0, {.kind = Kind::fault, .phase = Phase::restore, .epoch = 1, .text = "communicator"});
  EXPECT_EQ(supervisor_->phase(), Phase::halt)
      << "its communicator is broken: nobody else will say so";
}

/// A world with standbys that have formed theirs.
class WithStandbyWorld : public SupervisorByHand {
 protected:
  void form() {
    settle();
    for (const int rank : {0, 1}) standby(rank, Errc::ok);
    prepare();
  }
  void standby(int rank, Errc code) {
    from(rank, {.kind = Kind::standby,
                .epoch = supervisor_->epoch(),
                .code = static_cast<std::uint32_t>(code)});
  }
  void prepare() {
    for (const auto phase : {Phase::replace, Phase::form}) {
      for (const int rank : {0, 1})
        from(rank, {.kind = Kind::prepared,
                    .phase = phase,
                    .epoch = supervisor_->epoch(),
                    .formation = sent_.back().formation});
    }
    ASSERT_TRUE(supervisor_->standby_world().formed());
  }
  /// What the ranks are ordered to promote in the replace phase that follows; 0: nothing.
  std::uint32_t promoted() {
    while (supervisor_->phase() != Phase::replace) {
      const auto phase = supervisor_->phase();
      for (const int rank : {0, 1}) from(rank, {.kind = Kind::done, .phase = phase});
    }
    return sent_.back().formation;
  }
};

TEST_F(WithStandbyWorld, IsFormedAnewWithAnotherGroup) {
  form();
  for (int i = 0; i < 10; ++i) {  // more often than a formation that fails is tried
    for (const int rank : {0, 1}) {
      standby(rank, Errc::stale);
      standby(rank, Errc::ok);
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
                      [this](const WorldMessage& message) { sent_.push_back(message); });
  supervisor_->start(now_);
  std::vector<std::size_t> roots;
  std::byte id{0};
  const auto form = [&] {
    while (supervisor_->phase() != Phase::active) {
      const auto order = sent_.back();
      if (order.phase == Phase::form) {
        const auto blobs = decode_blobs(order.payload);
        ASSERT_TRUE(blobs.ok());
        roots.push_back(0);
        for (const auto& blob : *blobs) roots.back() += blob.empty() ? 0 : 1;
      }
      const auto& out = order.excluded;
      const int first = std::binary_search(out.begin(), out.end(), 0) ? 1 : 0;
      for (int rank = 0; rank < 3; ++rank) {
        WorldMessage done{.kind = Kind::done, .phase = order.phase};
        if (order.phase == Phase::replace && rank == first) {
          id = static_cast<std::byte>(std::to_integer<int>(id) + 1);
          done.parts = {{.rank = rank, .contribution = {id}}};
        }
        from(rank, done);
      }
    }
  };
  form();
  from(0, {.kind = Kind::failed, .text = "gone"});
  form();
  from(0, {.kind = Kind::rejoin});
  form();
  EXPECT_EQ(roots, (std::vector<std::size_t>{1, 1, 1}));
}

// An echo goes when its cause is heard of; what else has happened by then stays in the report.
TEST_F(SupervisorByHand, ALossIsReportedWhateverIsHeardBeforeAndAfterIt) {
  supervisor_.emplace(WorldSupervisor::Options{.size = 3, .shrink = true},
                      [this](const WorldMessage& message) { sent_.push_back(message); });
  supervisor_->start(now_);
  const auto form = [&] {
    while (supervisor_->phase() != Phase::active) {
      const auto phase = supervisor_->phase();
      for (int rank = 0; rank < 3; ++rank) from(rank, {.kind = Kind::done, .phase = phase});
    }
  };
  form();
  fault(0, "communicator");
  from(2, {.kind = Kind::failed, .text = "gone"});
  fault(1, "kill");
  form();
  const auto reports = decode_reports(sent_.back().payload);
  ASSERT_TRUE(reports.ok());
  ASSERT_EQ(reports->size(), 2u);
  EXPECT_EQ(reports->at(0).rank, 2);
  EXPECT_EQ(reports->at(0).kind, kKindFailed);
  EXPECT_EQ(reports->at(1).rank, 1);
  EXPECT_EQ(reports->at(1).kind, "kill");
}

TEST_F(SupervisorByHand, DeadlinesBeginANewRoundAndEndInAStop) {
  from(0, {.kind = Kind::done, .phase = Phase::replace});
  supervisor_->tick(now_ += std::chrono::milliseconds(1000));
  EXPECT_EQ(supervisor_->phase(), Phase::replace) << "not yet";
  supervisor_->tick(now_ += std::chrono::milliseconds(1));
  EXPECT_EQ(supervisor_->phase(), Phase::halt);
  from(0, {.kind = Kind::done, .phase = Phase::halt});
  supervisor_->tick(now_ += std::chrono::milliseconds(1001));
  EXPECT_TRUE(supervisor_->stopped());
  EXPECT_EQ(sent_.back().kind, Kind::stop);
  EXPECT_EQ(sent_.back().code, static_cast<std::uint32_t>(Errc::timeout));
  EXPECT_NE(sent_.back().text.find("waited for rank 1"), std::string::npos) << sent_.back().text;
  const auto count = sent_.size();
  fault(0, "kill");
  supervisor_->tick(now_ += std::chrono::seconds(100));
  EXPECT_EQ(sent_.size(), count) << "a stopped world says no more";
}

TEST_F(SupervisorByHand, RoundsAreBounded) {
  settle();
  for (int i = 0; i < 40 && !supervisor_->stopped(); ++i) {
    fault(1, "kill");
    for (const auto phase : {Phase::halt, Phase::quiesce}) {
      from(0, {.kind = Kind::done, .phase = phase});
      from(1, {.kind = Kind::done, .phase = phase});
    }
  }
  EXPECT_TRUE(supervisor_->stopped());
  EXPECT_EQ(sent_.back().code, static_cast<std::uint32_t>(Errc::budget_exhausted));
  EXPECT_LE(supervisor_->round(), 18u);
}

TEST_F(SupervisorByHand, AnswersToAnOlderRoundOrAnotherPhaseDoNotCount) {
  settle();
  fault(1, "kill");
  const auto answer = [&](std::uint32_t round, Phase phase) {
    from(0, {.kind = Kind::done, .phase = phase, .round = round});
    from(1, {.kind = Kind::done, .phase = phase, .round = round});
  };
  answer(1, Phase::halt);
  answer(2, Phase::replace);
  EXPECT_EQ(supervisor_->phase(), Phase::halt);
  from(0, {.kind = Kind::done, .phase = Phase::halt});
  from(0, {.kind = Kind::done, .phase = Phase::halt});
  EXPECT_EQ(supervisor_->phase(), Phase::halt) << "twice the same rank";
  answer(2, Phase::halt);
  EXPECT_EQ(supervisor_->phase(), Phase::quiesce);
}

TEST_F(SupervisorByHand, ForeignRanksAreIgnored) {
  settle();
  supervisor_->receive({.kind = Kind::fault, .round = 1, .epoch = 1, .rank = 2, .text = "kill"},
                       now_);
  supervisor_->receive({.kind = Kind::fault, .round = 1, .epoch = 1, .rank = -1, .text = "kill"},
                       now_);
  EXPECT_EQ(supervisor_->phase(), Phase::active);
}

}  // namespace
}  // namespace troupe::rank_process
