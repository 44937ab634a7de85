// What has failed, by place in the program: fences, errors, and the way back to a fence.
#include "rank/device/commands/outcome_log.hpp"

#include <gtest/gtest.h>

#include <random>

#include "command_port_rig.hpp"

namespace troupe::rank_process {
namespace {

const Error kWrong{Errc::invalid, 0, "wrong"};

TEST(OutcomeLog, AFenceHoldsIfAllBeforeItHasEndedWell) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto before = rig.nop();
  const auto fence = rig.port.outcomes().fence();
  const auto behind = rig.nop();
  host.take(2);
  host.answer(2, 1, kWrong);
  rig.port.replies().drain();
  EXPECT_FALSE(fence.reached.ready()) << "its command has not ended";
  host.answer(1, 1);
  rig.port.replies().drain();
  ASSERT_TRUE(fence.reached.ready());
  EXPECT_TRUE(fence.reached.wait().ok()) << "what fails behind it is none of its business";
  EXPECT_EQ(behind.wait().code(), Errc::invalid);
  EXPECT_TRUE(rig.port.outcomes().fence().reached.ready()) << "nothing is under way";
}

TEST(OutcomeLog, AFenceFailsWithACommandBeforeItThatEndsLater) {
  PortRig rig;
  HostEnd host(rig.link);
  (void)rig.nop();  // its future is dropped
  const auto copies = rig.nop();
  const auto fence = rig.port.outcomes().fence();
  host.take(2);
  host.answer(2, 1);  // answers come in any order
  rig.port.replies().drain();
  EXPECT_TRUE(copies.wait().ok());
  EXPECT_FALSE(fence.reached.ready());
  host.answer(1, 1, kWrong);
  rig.port.replies().drain();
  EXPECT_EQ(fence.reached.wait().code(), Errc::invalid);
  EXPECT_TRUE(rig.port.outcomes().take_error());
}

// Else a commit behind the command would count because the program has looked at the error.
TEST(OutcomeLog, AFenceFailsAlthoughTheErrorBeforeItWasTaken) {
  PortRig rig;
  HostEnd host(rig.link);
  (void)rig.nop();  // its future is dropped
  (void)rig.nop();
  const auto fence = rig.port.outcomes().fence();
  host.take(2);
  host.answer(1, 1, kWrong);
  rig.port.replies().drain();
  EXPECT_FALSE(fence.reached.ready());
  EXPECT_TRUE(rig.port.outcomes().take_error());
  const auto behind = rig.port.outcomes().fence();
  host.answer(2, 1);
  rig.port.replies().drain();
  EXPECT_EQ(fence.reached.wait().code(), Errc::invalid);
  EXPECT_TRUE(behind.reached.wait().ok()) << "the error was known before it";
}

TEST(OutcomeLog, RefusalsStandWhereTheyWereSubmitted) {
  PortRig rig;
  const auto gone = rig.operand(rig.add_buffer());
  auto lost = gone;
  lost.generation += 1;
  EXPECT_TRUE(rig.port.outcomes().fence().reached.wait().ok());
  EXPECT_EQ(rig.fill(lost).wait().code(), Errc::stale);
  EXPECT_EQ(rig.port.outcomes().fence().reached.wait().code(), Errc::stale)
      << "also where no ticket lies between them";
}

TEST(OutcomeLog, ALossBreaksFencesAndIsNoError) {
  PortRig rig;
  HostEnd host(rig.link);
  (void)rig.nop();
  const auto fence = rig.port.outcomes().fence();
  host.take(1);
  (void)rig.port.hosts().move_to(make_link(2), {Errc::device_lost, 9, "killed"});
  EXPECT_EQ(fence.reached.wait().code(), Errc::device_lost);
  EXPECT_FALSE(rig.port.outcomes().take_error());
}

TEST(OutcomeLog, WhatAClosedGateRefusesIsNoError) {
  PortRig rig;
  rig.port.gate().close({Errc::world_reformed, 0, "closed"});
  EXPECT_EQ(rig.nop().wait().code(), Errc::world_reformed);
  EXPECT_FALSE(rig.port.outcomes().take_error());
}

TEST(OutcomeLog, TheWayBackForgetsWhatIsDoneAgain) {
  PortRig rig;
  HostEnd host(rig.link);
  const auto commit = rig.port.outcomes().fence();
  (void)rig.nop();
  const auto late = rig.nop();
  host.take(2);
  host.answer(1, 1, kWrong);
  rig.port.replies().drain();
  rig.port.outcomes().forget_since(commit.place);
  EXPECT_FALSE(rig.port.outcomes().take_error());
  host.answer(2, 1, kWrong);
  rig.port.replies().drain();
  EXPECT_EQ(late.wait().code(), Errc::invalid);
  EXPECT_FALSE(rig.port.outcomes().take_error())
      << "it belongs to what was given up, though it ended later";
  EXPECT_TRUE(rig.port.outcomes().fence().reached.wait().ok());
  (void)rig.nop();
  host.take(1);
  host.answer(3, 1, kWrong);
  rig.port.replies().drain();
  EXPECT_TRUE(rig.port.outcomes().take_error()) << "what is done again counts";
}

TEST(OutcomeLog, TheWayBackKeepsWhatFailedBeforeIt) {
  PortRig rig;
  HostEnd host(rig.link);
  (void)rig.nop();
  const auto commit = rig.port.outcomes().fence();
  host.take(1);
  host.answer(1, 1, kWrong);
  rig.port.replies().drain();
  rig.port.outcomes().forget_since(commit.place);
  EXPECT_TRUE(rig.port.outcomes().take_error());
}

TEST(OutcomeLog, AKnownLossAndWhatItHasSpoiltBreakNothingAnyMore) {
  PortRig rig;
  HostEnd host(rig.link);
  (void)rig.nop();
  (void)rig.nop();
  host.take(2);
  host.answer(1, 1, Error{Errc::world_reformed, 0, "the epoch has ended"});
  host.answer(2, 1, Error{Errc::stale, 0, "what it read was lost"});
  rig.port.replies().drain();
  EXPECT_FALSE(rig.port.outcomes().fence().reached.wait().ok());
  rig.port.outcomes().forgive_losses();
  EXPECT_TRUE(rig.port.outcomes().fence().reached.wait().ok());
  EXPECT_FALSE(rig.port.outcomes().take_error());
  (void)rig.nop();
  (void)rig.nop();
  host.take(2);
  host.answer(3, 1, Error{Errc::stale, 0, "what it read was lost"});
  host.answer(4, 1, kWrong);
  rig.port.replies().drain();
  rig.port.outcomes().forgive_losses();
  EXPECT_EQ(rig.port.outcomes().fence().reached.wait().code(), Errc::invalid) << "that was no loss";
  const auto told = rig.port.outcomes().take_error();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->code, Errc::invalid);
}

TEST(OutcomeLog, FencesWaitForRequestsToOtherRanks) {
  PortRig rig;
  auto request = std::make_shared<Outcomes::Request>(rig.port.outcomes());
  const auto fence = rig.port.outcomes().fence();
  Outcomes::Request later(rig.port.outcomes());
  EXPECT_FALSE(fence.reached.ready());
  (void)request->end(kWrong);
  EXPECT_EQ(fence.reached.wait().code(), Errc::invalid);
  EXPECT_TRUE(rig.port.outcomes().take_error());
  const auto next = rig.port.outcomes().fence();
  (void)later.end({});
  EXPECT_TRUE(next.reached.wait().ok());
}

TEST(OutcomeLog, RequestsOfWhatWasGivenUpHoldNothingUp) {
  PortRig rig;
  const auto commit = rig.port.outcomes().fence();
  Outcomes::Request abandoned(rig.port.outcomes());
  rig.port.outcomes().forget_since(commit.place);
  EXPECT_TRUE(rig.port.outcomes().fence().reached.ready());
  EXPECT_FALSE(abandoned.end(kWrong).ok());
  EXPECT_EQ(rig.port.outcomes().ledger().unread().count, 0u);
  EXPECT_FALSE(rig.port.outcomes().take_error());
}

/// Random programs with answers in random order: every fence says what a plain list says.
TEST(OutcomeLog, AgreesWithAPlainList) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    OutcomeLog log;
    struct Command {
      bool ended = false, failed = false;
    };
    std::vector<Command> commands;
    struct Fence {
      std::size_t commands;
      Future<void> reached;
    };
    std::vector<Fence> fences;
    const auto publish = [&] {
      std::uint64_t retired = 0;
      while (retired < commands.size() && commands[retired].ended) ++retired;
      for (auto& [state, outcome] : log.ready(retired)) state->resolve(outcome);
    };
    for (int i = 0; i < 60; ++i) {
      const auto choice = random() % 10;
      if (choice < 4) {
        commands.emplace_back();
      } else if (choice < 6) {
        auto* const state = new detail::State<void>(nullptr, detail::StateBase::TwoReferences{});
        fences.push_back({commands.size(), Future<void>(OutcomeLog::State(state))});
        (void)log.add_fence(commands.size(), OutcomeLog::State(state));
      } else if (!commands.empty()) {
        const auto at = random() % commands.size();
        if (commands[at].ended) continue;
        commands[at] = {true, random() % 8 == 0};
        if (commands[at].failed) log.command_failed(at + 1, kWrong);
      }
      publish();
      for (const auto& fence : fences) {
        bool ended = true, failed = false;
        for (std::size_t at = 0; at < fence.commands; ++at) {
          ended &= commands[at].ended;
          failed |= commands[at].failed;
        }
        ASSERT_EQ(fence.reached.ready(), ended) << "seed " << seed;
        if (!ended) continue;
        ASSERT_EQ(fence.reached.wait().ok(), !failed) << "seed " << seed;
      }
    }
    for (std::size_t at = 0; at < commands.size(); ++at) commands[at].ended = true;
    publish();
  }
}

}  // namespace
}  // namespace troupe::rank_process
