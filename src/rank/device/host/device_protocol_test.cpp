// What becomes of device hosts, in a seeded simulator: whatever dies and whenever, the device
// serves again or is given up, and no two hosts have the memory. TROUPE_SIM_SEED=n replays that
// seed of a test, with a trace:
//   TROUPE_SIM_SEED=17 unit_rank_device --gtest_filter=DeviceProtocol.AloneToo
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "device_simulation.hpp"
#include "random_cases.hpp"

namespace troupe::rank_process {
namespace {

using Ill = DeviceSimulation::Ill;
using namespace std::chrono_literals;

constexpr HostState kStrikable[] = {HostState::rising,    HostState::standby,  HostState::coming,
                                    HostState::waiting,   HostState::starting, HostState::ready,
                                    HostState::promoting, HostState::serving,  HostState::retired};

/// Every second device has faults all the time, not only at random moments.
DeviceSimulation::Options options_of(std::uint32_t seed) {
  std::mt19937 random(seed ^ 0xdecu);
  DeviceSimulation::Options options{.seed = seed,
                                    .trace = std::getenv("TROUPE_SIM_SEED") != nullptr};
  options.device = {.standby = random() % 4 != 0,
                    .in_world = true,
                    .start_timeout = 2s,
                    .restart_budget = random() % 3 == 0 ? 2 : 1000,
                    .asks_to_stop = random() % 3 == 0};
  options.standby_world = random() % 4 != 0;
  if (random() % 2 == 0) {
    options.start_fails_percent = random() % 8 == 0 ? 5 : 0;
    options.never_answers_percent = static_cast<int>(random() % 8);
    options.refuses_percent = static_cast<int>(random() % 8);
  }
  return options;
}

void scatter_faults(DeviceSimulation& device, std::uint32_t seed) {
  std::mt19937 random(seed ^ 0x5eedu);
  const auto when = [&] { return Micros(random() % 8'000'000); };
  const auto how = [&] {
    return random() % 60 == 0 ? Ill::fails_for_good : static_cast<Ill>(random() % 3);
  };
  for (auto faults = random() % 12; faults > 0; --faults) {
    switch (random() % 7) {
      case 0: device.strike_at(when(), how()); break;
      case 1: device.strike_active_at(when(), how()); break;
      case 2: {  // two at once
        const auto moment = when();
        device.strike_active_at(moment, how());
        device.strike_at(moment + Micros(random() % 400'000), how());
        break;
      }
      case 3: device.break_communicator_at(when()); break;
      case 4: device.delay_operation_at(when()); break;
      case 5: device.fault_elsewhere_at(when()); break;
      default: device.strike_in(kStrikable[random() % std::size(kStrikable)], how()); break;
    }
  }
}

/// The seeds of a test, or the one to be replayed. Under a sanitizer, which is for memory and not
/// for the protocol, a few of them.
template <class Simulate>
void for_each_seed(std::uint32_t count, Simulate simulate) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  count = std::max(1u, count / 60);
#else
  count = test::fewer_if_brief(count);
#endif
  if (const char* seed = std::getenv("TROUPE_SIM_SEED"))
    return simulate(static_cast<std::uint32_t>(std::atoi(seed)));
  for (std::uint32_t seed = 1; seed <= count && !::testing::Test::HasFailure(); ++seed)
    simulate(seed);
}

struct Tally {
  int served = 0, ended = 0, revivals = 0, promotions = 0, exhausted = 0, outlived = 0;
  std::set<HostState> hosts{};
  std::set<DeviceState> devices{};
};

/// Faults for eight seconds, none later.
void simulate(std::uint32_t seed, const DeviceSimulation::Options& options, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed) +
               ", replay with TROUPE_SIM_SEED=" + std::to_string(seed));
  DeviceSimulation device(options);
  scatter_faults(device, seed);
  ASSERT_TRUE(device.run([&] { return device.now() > 8s || device.ended(); }));
  device.behave();
  ASSERT_TRUE(device.run([&] { return device.settled() || device.ended(); }))
      << "it did not come back to work: " << device.where();
  EXPECT_LT(device.now(), 5min);
  tally.served += device.ended() ? 0 : 1;
  tally.ended += device.ended() ? 1 : 0;
  tally.revivals += device.revivals();
  tally.promotions += device.promotions();
  tally.exhausted += device.exhausted();
  tally.outlived += device.outlived();
  tally.hosts.insert(device.host_states().begin(), device.host_states().end());
  tally.devices.insert(device.device_states().begin(), device.device_states().end());
  device.shut_down();
}

bool replays() {
  return std::getenv("TROUPE_SIM_SEED") != nullptr;
}

TEST(DeviceProtocol, WhateverDiesTheDeviceServesAgainOrIsGivenUp) {
  Tally tally;
  for_each_seed(6000, [&](std::uint32_t seed) { simulate(seed, options_of(seed), tally); });
  if (replays() || HasFailure()) return;
  EXPECT_GT(tally.served, tally.ended);
  EXPECT_GT(tally.ended, 0);
  EXPECT_GT(tally.promotions, 0);
  EXPECT_GT(tally.exhausted, 0);
  EXPECT_GT(tally.outlived, 0) << "no successor began beside a host whose context was dead";
}

TEST(DeviceProtocol, AloneToo) {
  Tally tally;
  for_each_seed(3000, [&](std::uint32_t seed) {
    auto options = options_of(seed);
    options.world = options.device.in_world = false;
    simulate(seed, options, tally);
  });
  if (replays() || HasFailure()) return;
  EXPECT_GT(tally.served, tally.ended);
  EXPECT_GT(tally.outlived, 0);
}

TEST(DeviceProtocol, ComesBackToAWorldThatWentOnWithoutIt) {
  Tally tally;
  for_each_seed(3000, [&](std::uint32_t seed) {
    auto options = options_of(seed);
    options.shrink = true;
    options.device.restart_budget = static_cast<int>(seed % 2);
    simulate(seed, options, tally);
  });
  if (replays() || HasFailure()) return;
  EXPECT_GT(tally.revivals, 10);
}

TEST(DeviceProtocol, MayBeGivenUpWhileItWorks) {
  int revivals = 0;
  for_each_seed(500, [&](std::uint32_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto options = options_of(seed);
    options.shrink = true;
    DeviceSimulation device(options);
    if (seed % 2 == 0) scatter_faults(device, seed);
    device.leave_at(Micros(seed * std::uint64_t{1'618'033} % 8'000'000));
    ASSERT_TRUE(device.run([&] { return device.now() > 8s || device.ended(); }));
    device.behave();
    ASSERT_TRUE(device.run([&] { return device.settled() || device.ended(); })) << device.where();
    revivals += device.revivals();
    device.shut_down();
  });
  if (replays() || HasFailure()) return;
  EXPECT_GT(revivals, 5);
}

TEST(DeviceProtocol, EveryStateIsSeen) {
  if (replays()) GTEST_SKIP() << "of one seed";
  Tally tally;
  for_each_seed(9000, [&](std::uint32_t seed) {
    auto options = options_of(seed);
    options.shrink = seed % 2 == 0;
    simulate(seed, options, tally);
  });
  EXPECT_EQ(tally.hosts.size(), static_cast<std::size_t>(HostState::ended));
  EXPECT_EQ(tally.devices.size(), static_cast<std::size_t>(DeviceState::ended));
}

TEST(DeviceProtocol, ASeedReplaysExactly) {
  for (const std::uint32_t seed : {3u, 77u, 1234u}) {
    std::vector<std::int64_t> ends;
    for (int i = 0; i < 2; ++i) {
      DeviceSimulation device(options_of(seed));
      scatter_faults(device, seed);
      EXPECT_TRUE(device.run([&] { return device.now() > 8s || device.ended(); }));
      device.behave();
      EXPECT_TRUE(device.run([&] { return device.settled() || device.ended(); }));
      ends.push_back(device.now().count());
      device.shut_down();
    }
    EXPECT_EQ(ends[0], ends[1]);
  }
}

TEST(DeviceProtocol, ADeathInEachStateIsOvercome) {
  for (const auto state : kStrikable) {
    for (const auto how : {Ill::dies, Ill::loses_context, Ill::hangs}) {
      SCOPED_TRACE("state " + std::to_string(static_cast<int>(state)) + ", ill " +
                   std::to_string(static_cast<int>(how)));
      DeviceSimulation device({.seed = 9, .device = {.in_world = true, .start_timeout = 2s}});
      ASSERT_TRUE(device.run([&] { return device.settled(); }));
      device.strike_in(state, how);
      device.strike_active_at(Micros(2'000'000), Ill::dies);
      ASSERT_TRUE(device.run([&] { return device.now() > 20s; }));
      ASSERT_TRUE(device.run([&] { return device.settled(); })) << device.where();
      device.shut_down();
    }
  }
}

TEST(DeviceProtocol, WithoutFaultsOneHostAndOneStandbyDo) {
  DeviceSimulation device({.seed = 5, .device = {.in_world = true}});
  ASSERT_TRUE(device.run([&] { return device.now() > 60s; }));
  EXPECT_TRUE(device.settled());
  EXPECT_EQ(device.hosts_started(), 2);
  device.shut_down();
}

TEST(DeviceProtocol, AFirstHostThatEndsWhileItStartsIsTheEnd) {
  for (const auto how : {Ill::dies, Ill::loses_context, Ill::hangs}) {
    DeviceSimulation device({.seed = 5, .device = {.start_timeout = 2s}, .world = false});
    device.strike_active_at(Micros(1), how);
    ASSERT_TRUE(device.run([&] { return device.ended(); }));
    EXPECT_EQ(device.hosts_started(), 1);
    device.shut_down();
  }
}

TEST(DeviceProtocol, ASpentBudgetGivesTheDeviceUp) {
  for (const int budget : {0, 1, 3}) {
    DeviceSimulation device({.seed = 5, .device = {.restart_budget = budget}, .world = false});
    int deaths = 0;
    while (!device.ended()) {
      ASSERT_TRUE(device.run([&] { return device.settled() || device.ended(); }));
      if (device.ended()) break;
      device.strike_active_at(Micros(1'000), Ill::dies);
      ++deaths;
      ASSERT_TRUE(device.run([&] { return !device.settled(); }));
    }
    EXPECT_EQ(deaths, budget + 1);
    EXPECT_EQ(device.device().failure()->code, Errc::budget_exhausted);
    device.shut_down();
  }
}

/// However long the time between the deaths: what counts in a run is the commits.
TEST(DeviceProtocol, ARunThatDoesNotGetOnSpendsTheBudgetWithoutTheWindow) {
  for (const bool in_run : {true, false}) {
    DeviceSimulation device(
        {.seed = 5,
         .device = {.restart_budget = 2, .restart_window = std::chrono::nanoseconds(1)},
         .world = false});
    device.progress(in_run);
    int deaths = 0;
    for (; deaths < 12 && !device.ended(); ++deaths) {
      ASSERT_TRUE(device.run([&] { return device.settled() || device.ended(); }));
      if (device.ended()) break;
      if (deaths == 2 || deaths == 4) device.progress(in_run);  // a commit
      device.strike_active_at(Micros(1'000), Ill::dies);
      ASSERT_TRUE(device.run([&] { return !device.settled(); }));
    }
    EXPECT_EQ(device.ended(), in_run);
    EXPECT_EQ(deaths, in_run ? 7 : 12) << "two before each commit, and the third that is too many";
    if (in_run) {
      EXPECT_EQ(device.device().failure()->code, Errc::budget_exhausted);
      EXPECT_NE(device.device().failure()->message.find("without a commit"), std::string::npos);
    }
    device.shut_down();
  }
}

TEST(DeviceProtocol, TheEndOfTheRunIsAskedForOnceAndGetsOneHostMore) {
  DeviceSimulation device(
      {.seed = 5, .device = {.in_world = true, .restart_budget = 0, .asks_to_stop = true}});
  for (int deaths = 0; deaths < 2; ++deaths) {
    ASSERT_TRUE(device.run([&] { return device.settled(); }));
    EXPECT_EQ(device.exhausted(), deaths);
    device.strike_active_at(Micros(1'000), Ill::dies);
    ASSERT_TRUE(device.run([&] { return !device.settled(); }));
  }
  ASSERT_TRUE(device.run([&] { return device.ended(); }));
  EXPECT_EQ(device.exhausted(), 1);
  device.shut_down();
}

// The tables

struct Row {
  std::string state, event, next;
};
std::vector<Row> hosts() {
  return {
#define TROUPE_HOST(state, on, into) {#state, #on, #into},
#include "rank/device/host/host_transitions.def"
#undef TROUPE_HOST
  };
}
std::vector<Row> devices() {
  return {
#define TROUPE_DEVICE(state, on, into) {#state, #on, #into},
#include "rank/device/host/device_transitions.def"
#undef TROUPE_DEVICE
  };
}

TEST(DeviceTransitions, LeadToOneState) {
  for (const auto& table : {hosts(), devices()}) {
    std::set<std::pair<std::string, std::string>> seen;
    for (const auto& row : table)
      EXPECT_TRUE(seen.insert({row.state, row.event}).second) << row.state << ' ' << row.event;
  }
}

TEST(DeviceTransitions, GiveMemoryOnlyBehindTheHostThatHadIt) {
  for (const auto& row : hosts()) {
    const auto& [state, event, next] = row;
    EXPECT_TRUE(next != "promoting" || state == "ready");
    // To be ready is to have the commands: by having started with them, or from who had them.
    EXPECT_TRUE(next != "ready" || event == "ready" || event == "inherits" ||
                event == "takes_over");
    EXPECT_TRUE(event != "inherits" || state == "coming" || state == "waiting");
  }
}

TEST(DeviceTransitions, NewRoundsAndTheEndAreAlwaysPossible) {
  std::set<std::string> states, halted, given_up;
  for (const auto& row : devices()) {
    states.insert(row.state);
    if (row.event == "halt") halted.insert(row.state);
    if (row.event == "given_up") given_up.insert(row.state);
  }
  for (const auto& state : states) {
    if (state == "failed" || state == "reviving") continue;
    EXPECT_TRUE(halted.contains(state)) << state;
    EXPECT_TRUE(given_up.contains(state)) << state;
  }
}

}  // namespace
}  // namespace troupe::rank_process
