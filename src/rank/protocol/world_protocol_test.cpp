// The protocol of the world in a seeded simulator: whatever dies and whenever, the world becomes
// whole again, in step. TROUPE_SIM_SEED=n replays that seed of a test, with a trace:
//   TROUPE_SIM_SEED=17 world_protocol_test --gtest_filter=WorldProtocol.OnARoughNetworkToo
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "random_cases.hpp"
#include "world_simulation.hpp"

namespace troupe::rank_process {
namespace {

WorldSimulation::Options options_of(std::uint32_t seed) {
  return {.seed = seed,
          .ranks = 2 + static_cast<int>(seed * 7 % 15),
          .trace = std::getenv("TROUPE_SIM_SEED") != nullptr};
}

/// 4 to 64 ranks; packets are lost, doubled and overtake each other, some ranks are slow.
WorldSimulation::Options rough_options_of(std::uint32_t seed) {
  std::mt19937 random(seed ^ 0xbadu);
  auto options = options_of(seed);
  options.ranks = 4 + static_cast<int>(random() % 61);
  options.radix = 2 + static_cast<int>(random() % 3);
  options.last_step = 3;
  options.network = {.delay_us = 100 + static_cast<std::uint32_t>(random() % 5000),
                     .lost_percent = static_cast<std::uint32_t>(random() % 20),
                     .duplicated_percent = static_cast<std::uint32_t>(random() % 20)};
  for (auto slow = random() % 3; slow > 0; --slow)
    options.network.slow.push_back(static_cast<int>(random() % 64));
  return options;
}

/// Faults of all sorts within the first two seconds; none later.
void scatter_faults(WorldSimulation& world, std::uint32_t seed, int ranks) {
  std::mt19937 random(seed ^ 0x5eedu);
  const auto some_rank = [&] { return static_cast<int>(random() % static_cast<unsigned>(ranks)); };
  for (auto faults = random() % 6; faults > 0; --faults) {
    const Micros when(random() % 2'000'000);
    if (random() % 4 == 0) world.lose_standby_at(Micros(random() % 2'000'000), some_rank());
    switch (random() % 5) {
      case 0: world.kill_at(when, some_rank()); break;
      case 1: world.kill_at(when, 0); break;
      case 2:  // several at once
        for (auto count = 2 + random() % 3; count > 0; --count)
          world.kill_at(when + Micros(random() % 100), some_rank());
        break;
      case 3: world.break_communicator_at(when, some_rank()); break;
      default:
        world.kill_in_phase(some_rank(), static_cast<Phase>(1 + random() % (kPhaseCount - 1)));
        break;
    }
  }
}

/// The seeds of a test, or the one to be replayed. Under a sanitizer, which is for memory and not
/// for the protocol, a few of them.
template <class Simulate>
void for_each_seed(std::uint32_t count, Simulate simulate) {
#ifdef __SANITIZE_ADDRESS__
  count = std::max(1u, count / 60);
#else
  count = test::fewer_if_brief(count);
#endif
  if (const char* seed = std::getenv("TROUPE_SIM_SEED"))
    return simulate(static_cast<std::uint32_t>(std::atoi(seed)));
  for (std::uint32_t seed = 1; seed <= count && !::testing::Test::HasFailure(); ++seed)
    simulate(seed);
}

void simulate(std::uint32_t seed, const WorldSimulation::Options& options) {
  SCOPED_TRACE("seed " + std::to_string(seed) +
               ", replay with TROUPE_SIM_SEED=" + std::to_string(seed));
  WorldSimulation world(options);
  scatter_faults(world, seed, options.ranks);
  const auto last_fault = [&] { return world.now() > std::chrono::seconds(2); };
  EXPECT_TRUE(world.run([&] {
    return last_fault() && world.settled() && world.runs_finished() >= 2;
  })) << "the world did not come back to work: "
      << to_string(world.supervisor().phase()) << " in round " << world.supervisor().round() << ", "
      << world.runs_finished() << " runs finished";
  EXPECT_LT(world.now(), std::chrono::minutes(10));
}

TEST(WorldProtocol, WhateverDiesTheWorldBecomesWholeAgain) {
  for_each_seed(5000, [](std::uint32_t seed) { simulate(seed, options_of(seed)); });
}

TEST(WorldProtocol, OnARoughNetworkToo) {
  for_each_seed(2000, [](std::uint32_t seed) { simulate(seed, rough_options_of(seed)); });
}

TEST(WorldProtocol, TheRoughNetworkIsRough) {
  std::uint64_t overtaken = 0;
  for (const std::uint32_t seed : {5u, 6u, 7u, 8u}) {
    WorldSimulation world({.seed = seed,
                           .ranks = 16,
                           .network = {.lost_percent = 10, .duplicated_percent = 10, .slow = {3}}});
    EXPECT_TRUE(world.run([&] { return world.settled() && world.runs_finished() == 1; }));
    EXPECT_GT(world.network().lost(), 10u);
    EXPECT_GT(world.network().duplicates(), 10u);
    overtaken += world.network().overtaken();
  }
  EXPECT_GT(overtaken, 0u);
}

TEST(WorldProtocol, ASeedReplaysExactly) {
  for (const std::uint32_t seed : {3u, 77u}) {
    std::vector<std::int64_t> ends;
    for (int i = 0; i < 2; ++i) {
      const auto options = rough_options_of(seed);
      WorldSimulation world(options);
      scatter_faults(world, seed, options.ranks);
      EXPECT_TRUE(world.run([&] { return world.settled() && world.runs_finished() >= 2; }));
      ends.push_back(world.now().count());
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

TEST(WorldProtocol, WithoutFaultsOneRoundAndOneEpochDo) {
  for (int ranks = 1; ranks <= 16; ++ranks) {
    WorldSimulation world({.seed = 7, .ranks = ranks});
    EXPECT_TRUE(world.run([&] { return world.settled() && world.runs_finished() == 2; }))
        << ranks << " ranks";
    EXPECT_EQ(world.supervisor().epoch(), 1u);
    EXPECT_EQ(world.supervisor().round(), 1u);
    EXPECT_TRUE(world.reports().empty());
  }
}

TEST(WorldProtocol, AFaultInEachPhaseOfARecoveryIsOvercome) {
  for (std::uint32_t phase = 1; phase < kPhaseCount; ++phase) {
    for (int rank : {0, 1, 3}) {
      SCOPED_TRACE(std::string(to_string(static_cast<Phase>(phase))) + ", rank " +
                   std::to_string(rank));
      WorldSimulation world({.seed = 100 + phase, .ranks = 4});
      ASSERT_TRUE(world.run([&] { return world.settled(); }));
      world.kill_at(Micros(1), 2);
      world.kill_in_phase(rank, static_cast<Phase>(phase));
      ASSERT_TRUE(world.run([&] { return world.settled() && world.supervisor().epoch() == 2; }));
      EXPECT_LE(world.supervisor().round(), 4u);
      std::set<int> reported;
      for (const auto& report : world.reports()) reported.insert(report.rank);
      EXPECT_TRUE(reported.contains(2));
    }
  }
}

TEST(WorldProtocol, ARunThatIsAskedToStopEndsWithTheSameCommitOnAllRanks) {
  for_each_seed(1000, [](std::uint32_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = options_of(seed);
    options.last_step = 1'000'000;
    WorldSimulation world(options);
    if (seed % 4 != 0) scatter_faults(world, seed, options.ranks);
    const auto asked = Micros(100'000 + seed * 1700);
    world.ask_to_stop_at(asked, static_cast<int>(seed) % options.ranks);
    EXPECT_TRUE(world.run([&] { return world.settled() && world.runs_finished() == 1; }));
    EXPECT_GE(world.now(), TimePoint{asked}) << "nobody had asked";
    EXPECT_LT(world.last_end(), 1000);
  });
}

TEST(WorldProtocol, ADeviceThatFailsForGoodStopsEveryRank) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldSimulation world({.seed = seed, .ranks = 5});
    world.kill_at(Micros(200'000), 1);
    world.fail_at(Micros(seed * 10'000), 3, {Errc::budget_exhausted, 4, "4 restarts in 60 s"});
    ASSERT_TRUE(world.run([&] { return world.all_stopped(); }));
    for (int rank = 0; rank < 5; ++rank) {
      EXPECT_EQ(world.stop_of(rank).code, Errc::budget_exhausted);
      EXPECT_EQ(world.stop_of(rank).message, "rank 3: 4 restarts in 60 s");
    }
  }
}

/// Some devices fail for good, others come back, while other faults strike: the world goes on with
/// those it has and ends with all that came back.
void shrink_and_grow(std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) +
               ", replay with TROUPE_SIM_SEED=" + std::to_string(seed));
  auto options = options_of(seed);
  options.ranks = 3 + static_cast<int>(seed * 11 % 30);
  options.shrink = true;
  options.one_root = seed % 2 == 0;
  WorldSimulation world(options);
  scatter_faults(world, seed, options.ranks);
  std::mt19937 random(seed ^ 0x5111u);
  std::set<int> chosen;
  int gone = 0;
  for (auto count = 1 + random() % static_cast<unsigned>(options.ranks - 1); count > 0; --count) {
    const auto rank = static_cast<int>(random() % static_cast<unsigned>(options.ranks));
    if (!chosen.insert(rank).second) continue;
    const auto when = 600'000 + random() % 1'400'000;
    world.fail_at(Micros(when), rank, {Errc::device_failed, 79, "off the bus"});
    if (random() % 2 == 0) {
      ++gone;
    } else {
      world.revive_at(Micros(when + random() % 1'000'000), rank);
    }
  }
  int runs_before = -1;
  EXPECT_TRUE(world.run([&] {
    const bool calm =
        world.now() > std::chrono::seconds(4) && world.settled() && world.spectators() == gone;
    if (calm && runs_before < 0) runs_before = world.runs_finished();
    return calm && world.runs_finished() >= runs_before + 2;
  })) << to_string(world.supervisor().phase())
      << ", " << world.spectators() << " spectators, " << gone << " devices gone";
}

TEST(WorldProtocol, AWorldShrinksAndGrows) {
  for_each_seed(1500, shrink_and_grow);
}

/// All GPUs say that they are failing, some at the same time, while other faults strike: one rank
/// after another leaves, and the last one stays.
TEST(WorldProtocol, RanksThatWithdrawNeverEndTheWorld) {
  for_each_seed(200, [](std::uint32_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = options_of(seed);
    options.ranks = 2 + static_cast<int>(seed % 7);
    options.shrink = true;
    WorldSimulation world(options);
    if (seed % 2 == 0) scatter_faults(world, seed, options.ranks);
    std::mt19937 random(seed ^ 0x4ea1u);
    for (int rank = 0; rank < options.ranks; ++rank)
      world.withdraw_at(Micros(seed % 3 == 0 ? 600'000 : 300'000 + random() % 900'000), rank);
    EXPECT_TRUE(world.run([&] {
      return world.now() > std::chrono::seconds(4) && world.settled() &&
             world.spectators() == options.ranks - 1;
    })) << world.spectators()
        << " of " << options.ranks << " have left";
    EXPECT_FALSE(world.all_stopped());
  });
}

TEST(WorldProtocol, WhatAGpuSaysOfItsHealthAllRanksHear) {
  WorldSimulation world({.seed = 3, .ranks = 12});
  world.say_at(Micros(400'000), 7, {0, HealthKind::nvlink, "Xid 74", false});
  world.say_at(Micros(500'000), 2, {0, HealthKind::bus, "Xid 79", true});
  ASSERT_TRUE(world.run([&] {
    for (int rank = 0; rank < 12; ++rank)
      if (world.told(rank).size() < 2) return false;
    return true;
  }));
  for (int rank = 0; rank < 12; ++rank) {
    const auto& told = world.told(rank);
    ASSERT_EQ(told.size(), 2u);
    EXPECT_EQ(told[0].rank, 7);
    EXPECT_EQ(told[0].kind, HealthKind::nvlink);
    EXPECT_EQ(told[0].text, "Xid 74");
    EXPECT_FALSE(told[0].failing);
    EXPECT_EQ(told[1].rank, 2);
    EXPECT_TRUE(told[1].failing);
  }
}

TEST(WorldProtocol, AFirstRankThatComesBackAloneNamesTheCommunicator) {
  for_each_seed(200, [](std::uint32_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = options_of(seed);
    options.ranks += 1;
    options.shrink = options.one_root = true;
    WorldSimulation world(options);
    world.fail_at(Micros(600'000), 0, {Errc::device_failed, 79, "off the bus"});
    ASSERT_TRUE(world.run([&] { return world.settled() && world.spectators() == 1; }));
    world.revive_at(Micros(1), 0);
    EXPECT_TRUE(world.run([&] { return world.settled() && world.spectators() == 0; }));
  });
}

/// Whoever does not answer an inquiry is named by it, and nobody else; faults meanwhile or not.
TEST(WorldProtocol, AnInquiryNamesWhoDoesNotAnswer) {
  for_each_seed(500, [](std::uint32_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto options = seed % 2 == 0 ? options_of(seed) : rough_options_of(seed);
    WorldSimulation world(options);
    ASSERT_TRUE(world.run([&] { return world.settled(); }));
    const int silent = static_cast<int>(seed) % options.ranks;
    const bool one_is = seed % 3 != 0;
    if (one_is) world.mute(silent);
    for (int i = 0; i < 3; ++i)
      world.stall_at(Micros(1 + i * 50),
                     static_cast<int>(seed + static_cast<std::uint32_t>(i * 7)) % options.ranks);
    if (seed % 5 == 0) world.kill_at(Micros(100), (silent + 1) % options.ranks);
    ASSERT_TRUE(world.run([&] { return !world.findings().empty(); }));
    const auto& text = world.findings().front().text;
    const auto named = "rank " + std::to_string(silent) + ": no answer";
    // A device host that is dead for a while keeps its rank from nothing in the real world; here
    // it answers for the program too.
    if (seed % 5 != 0) {
      EXPECT_EQ(text.find("no answer") != std::string::npos, one_is) << text;
      EXPECT_EQ(text.ends_with(named), one_is) << text;
    }
    EXPECT_FALSE(world.findings().front().error);
  });
}

TEST(WorldProtocol, ARankThatNeverAnswersStopsTheWorldWithItsName) {
  WorldSimulation world({.seed = 3, .ranks = 4});
  ASSERT_TRUE(world.run([&] { return world.settled(); }));
  world.mute(2);
  world.kill_at(Micros(1), 1);
  ASSERT_TRUE(world.run([&] { return world.all_stopped(); }));
  EXPECT_EQ(world.stop_of(0).code, Errc::timeout);
  EXPECT_NE(world.stop_of(0).message.find("rank 2"), std::string::npos) << world.stop_of(0).message;
  EXPECT_EQ(world.stop_of(0).message.find(", "), std::string::npos) << "the others answered";
  EXPECT_LT(world.now(), std::chrono::seconds(70)) << "one deadline in quiesce";
}

}  // namespace
}  // namespace troupe::rank_process
