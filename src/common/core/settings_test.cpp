#include "common/core/settings.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime_variables.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

class SettingsOfAProgram : public ::testing::Test {
 protected:
  /// The machine's own are not looked at.
  SettingsOfAProgram() {
    test::forget_runtime_variables();
    ::setenv("TROUPE_SITE_CONFIG", "", 1);
  }

  static Settings of(std::vector<const char*> options) {
    options.insert(options.begin(), "test");
    return Settings::of(Config::parse(static_cast<int>(options.size()), options.data()).take());
  }
  /// Each word is the enumerator beside it, and there are no others.
  template <class T>
  static void expect_words(const std::string& name, T Settings::*member,
                           std::vector<std::pair<std::string, T>> words) {
    SCOPED_TRACE(name);
    std::vector<std::string> all;
    for (const auto& [word, value] : words) {
      all.push_back(word);
      EXPECT_EQ(of({("--" + name).c_str(), word.c_str()}).*member, value) << word;
    }
    for (const auto& option : runtime_options()) {
      if (option.name == name) {
        EXPECT_EQ(option.choices, all);
      }
    }
  }
};

TEST_F(SettingsOfAProgram, WordsAreEnumerators) {
  expect_words("engine", &Settings::engine,
               {{"auto", Engine::automatic}, {"cpu", Engine::cpu}, {"cuda", Engine::cuda}});
  expect_words("isolation", &Settings::isolation,
               {{"process", Isolation::process}, {"thread", Isolation::thread}});
  expect_words("standby", &Settings::standby,
               {{"off", StandbyMode::off},
                {"local", StandbyMode::local},
                {"world", StandbyMode::world},
                {"on", StandbyMode::world}});
  expect_words("completion", &Settings::completion,
               {{"event", CompletionMode::event},
                {"host_fn", CompletionMode::host_fn},
                {"sync", CompletionMode::sync}});
  expect_words("token-path", &Settings::token_path,
               {{"auto", TokenWay::automatic},
                {"peer", TokenWay::peer},
                {"network", TokenWay::network},
                {"nccl", TokenWay::nccl}});
  expect_words("on-loss", &Settings::on_loss,
               {{"respawn", OnLoss::respawn}, {"shrink", OnLoss::shrink}, {"stop", OnLoss::stop}});
  expect_words(
      "on-health", &Settings::on_health,
      {{"warn", OnHealth::warn}, {"shrink", OnHealth::shrink}, {"replace", OnHealth::replace}});
  expect_words("on-slow", &Settings::on_slow, {{"warn", OnSlow::warn}, {"leave", OnSlow::leave}});
  expect_words("checkpoint-io", &Settings::checkpoint_io,
               {{"direct", CheckpointIo::direct},
                {"pinned", CheckpointIo::pinned},
                {"auto", CheckpointIo::automatic}});
  expect_words("partner", &Settings::partner,
               {{"auto", Partner::automatic},
                {"on", Partner::on},
                {"off", Partner::off},
                {"every", Partner::every}});
  expect_words("stop-signal", &Settings::stop_signal,
               {{"USR1", StopSignal::usr1},
                {"USR2", StopSignal::usr2},
                {"TERM", StopSignal::term},
                {"none", StopSignal::none}});
  expect_words("bind", &Settings::bind, {{"auto", Binding::automatic}, {"none", Binding::none}});
}

TEST_F(SettingsOfAProgram, NumbersMayBeWords) {
  EXPECT_EQ(of({}).spin, std::nullopt);
  EXPECT_EQ(of({"--spin", "20us"}).spin, 20us);
  EXPECT_EQ(of({}).restart.state, RestartFrom::State::newest);
  EXPECT_EQ(of({"--restart", "never"}).restart.state, RestartFrom::State::none);
  const auto step = of({"--restart", "40"}).restart;
  EXPECT_EQ(step.state, RestartFrom::State::step);
  EXPECT_EQ(step.step, 40);
}

TEST_F(SettingsOfAProgram, AreReadByTheirTypes) {
  const auto settings = of({"--slab-size", "8MiB", "--heartbeat-timeout", "1.5s", "--rehearse",
                            "--rehearse-tolerance", "0.25", "--restart-budget", "7", "--check",
                            "collectives,indices", "--trace", "job.json"});
  EXPECT_EQ(settings.slab_size, 8u << 20);
  EXPECT_EQ(settings.heartbeat_timeout, 1500ms);
  EXPECT_TRUE(settings.rehearse);
  EXPECT_EQ(settings.rehearse_tolerance, 0.25);
  EXPECT_EQ(settings.restart_budget, 7);
  EXPECT_TRUE(settings.checks("collectives"));
  EXPECT_TRUE(settings.checks("indices"));
  EXPECT_FALSE(settings.checks("none"));
  EXPECT_EQ(settings.trace, "job.json");
}

/// A program may add words to a setting of the runtime's. What they mean is its own business, which
/// the runtime must not guess at.
TEST_F(SettingsOfAProgram, AWordOfTheProgramsIsRefused) {
  const std::vector<OptionSpec> own = {
      {"bind", OptionType::text, "auto", "WORD", "cores", {"auto", "none", "odd"}}};
  const char* const arguments[] = {"test", "--bind", "odd"};
  const auto config = Config::parse(3, arguments, own).take();
  try {
    (void)Settings::of(config);
    FAIL() << "it is taken";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().message, "bind = odd: the runtime has no such word");
  }
}

}  // namespace
}  // namespace troupe
