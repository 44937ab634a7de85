// The reactor of a device host: communicators, losses, probes, channels.
#include "reactor.hpp"

namespace troupe::host {
namespace {

// Part of it may run on, and use its memory: it is answered by nobody, and waited for.
TEST_F(Reactor, ACollectiveThatBreaksTheCommunicatorIsInFlightUntilDrained) {
  script_.collective = Error{Errc::peer_lost, 2, "ncclAllReduce: unhandled system error"};
  submit_all_reduce();
  const auto said = receive();
  const auto* const broken = std::get_if<from_host::CommunicatorBroken>(&said.message);
  ASSERT_NE(broken, nullptr);
  EXPECT_NE(broken->what.find("unhandled system error"), std::string::npos) << broken->what;
  const auto quiesces = request(to_host::Quiesce{});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok()) << "quiesced before the lane was drained";
  script_.reached.store(true);
  const auto quiesced = receive();
  EXPECT_TRUE(is<from_host::Done>(quiesced));
  EXPECT_EQ(quiesced.request, quiesces);
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, RefusesMemoryThatComesWithoutItsDescriptor) {
  const auto refuses = [this](auto map) {
    const auto answer = ask(std::move(map));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().message, "a control message came without its descriptor");
  };
  refuses(to_host::MapSlab{2, 2u << 20, {}});
  refuses(to_host::MapPinned{2, 2u << 20, {}});
  refuses(to_host::MapForeign{2, 2u << 20, {}});
}

// Nothing is answered by then, and whoever waits for a heart to stop waits for seconds.
TEST_F(Reactor, ALossIsToldOfWhileTheWorldIsHalted) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  header().halts.fetch_add(1);
  script_.change([this] { script_.lost = Error{Errc::device_lost, 700, "an illegal address"}; });
  const auto said = receive();
  const auto* const fatal = std::get_if<from_host::Fatal>(&said.message);
  ASSERT_NE(fatal, nullptr);
  EXPECT_NE(fatal->error.message.find("an illegal address"), std::string::npos);
  EXPECT_FALSE(answered());
}

// A peer may have given the communicator up by then, and its dying kernels seem to end.
TEST_F(Reactor, NothingThatEndsAfterAHaltIsAnswered) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  header().halts.fetch_add(1);
  script_.reached.store(true);
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok());
  EXPECT_TRUE(ask(to_host::Quiesce{}).ok());
  EXPECT_FALSE(answered());
  const auto behind = submit(dot(0, 1));
  send(to_host::Resume{header().halts.load()});
  EXPECT_EQ(await_answer(behind).code, 0u);
}

// CUDA keeps it waiting while a collective of a dead peer runs.
TEST_F(Reactor, CommunicatorsAreGivenUpAlthoughItWaitsInALaunch) {
  script_.reached.store(true);
  await_answer(submit(dot(0, 1)));  // the library is open now
  script_.change([this] { script_.dot_waits = true; });
  submit(dot(0, 1));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  header().halts.fetch_add(1);
  header().surrenders.advance();
  EXPECT_TRUE(ask(to_host::Quiesce{}).ok());
  EXPECT_TRUE(script_.await([this] { return script_.given_up_in_time; }));
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, AFaultThatWasOrderedShowsAlthoughNothingElseRuns) {
  send(to_host::Suffer{memory::FaultKind::trap});
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok());
  script_.change([this] { script_.lost = Error{Errc::device_lost, 719, "a launch has failed"}; });
  EXPECT_TRUE(is<from_host::Fatal>(receive()));
}

TEST_F(Reactor, AProbeIsAnsweredOnceItHasEnded) {
  const auto probe = request(to_host::Probe{});
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok());
  script_.change([this] { script_.probe_ends = true; });
  const auto answer = receive();
  EXPECT_TRUE(is<from_host::Done>(answer));
  EXPECT_EQ(answer.request, probe);
}

TEST_F(Reactor, AProbeThatFindsTheErrorTellsOfTheLoss) {
  script_.change([this] { script_.lost = Error{Errc::device_lost, 719, "a launch has failed"}; });
  request(to_host::Probe{});
  EXPECT_TRUE(is<from_host::Fatal>(receive()));
}

// When a communicator is given up, each collective that was launched takes its time to see it.
TEST_F(Reactor, FewCollectivesAreLaunchedAhead) {
  constexpr std::size_t kMany = 3 * kCollectivesAhead;
  for (std::size_t i = 0; i < kMany; ++i) submit_all_reduce();
  ASSERT_TRUE(runs("collective.all_reduce", kCollectivesAhead));  // once their lane is open
  submit(multiply(4, 5));                                         // passes those that wait
  ASSERT_TRUE(runs("vector.multiply"));
  const auto launched = [this] {
    return static_cast<std::size_t>(
        std::count(script_.ran.begin(), script_.ran.end(), "collective.all_reduce"));
  };
  script_.change([&] { EXPECT_EQ(launched(), kCollectivesAhead); });
  script_.reached.store(true);
  EXPECT_TRUE(runs("collective.all_reduce", kMany));
}

class ReactorWithHostFunctions : public Reactor {
 protected:
  ReactorWithHostFunctions() : Reactor(true, wire::Completion::host_fn) {}
};

// No host function runs behind an error, and nothing else is submitted that could meet it.
TEST_F(ReactorWithHostFunctions, TellsOfALossAlthoughNoneRuns) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  script_.change([this] { script_.lost = Error{Errc::device_lost, 716, "a misaligned address"}; });
  EXPECT_TRUE(is<from_host::Fatal>(receive()));
  EXPECT_FALSE(answered());
}

TEST_F(Reactor, HasEachTransferOfAChannelWaitForItselfAlone) {
  const std::vector<std::byte> invitation(8);
  for (const std::uint64_t number : {1u, 2u})
    EXPECT_EQ(await_answer(submit(channel::Join{DType::u8, number}, 0, invitation)).code, 0u);
  auto shorter = part(2);
  shorter.bytes = 64;
  (void)submit(channel::Receive{DType::u8, 1, part(1)});
  const auto other = submit(channel::Receive{DType::u8, 2, shorter});
  EXPECT_TRUE(script_.await([&] { return script_.transfers == 2; })) << "one waits for the other";
  // What is queued, also on the range of a transfer, waits for neither.
  EXPECT_EQ(await_answer(submit(memory::Nop{DType::f64})).code, 0u);
  script_.change([&] { script_.let_through = 64; });
  EXPECT_EQ(await_answer(other).code, 0u);
  // The first one ends when the communicators are given up, and is waited for.
  script_.reached.store(true);
  EXPECT_TRUE(ask(to_host::Quiesce{}).ok());
  const std::lock_guard lock(script_.mutex);
  EXPECT_EQ(script_.aborted, 1);
}

TEST_F(ReactorWithHostFunctions, TellsOfALossWhileItQuiesces) {
  submit_all_reduce();
  ASSERT_TRUE(script_.await([this] { return script_.queued > 0; }));
  request(to_host::Quiesce{});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  script_.change([this] { script_.lost = Error{Errc::device_lost, 716, "a misaligned address"}; });
  EXPECT_TRUE(is<from_host::Fatal>(receive()));
}

/// On the reactor's thread and on that of a library that blocks.
TEST_F(Reactor, WhatIsGivenToTheEngineIsTracedByItsTicket) {
  script_.reached.store(true);
  const auto first = submit(dot(0, 1));
  await_answer(first);
  const auto second = submit(gemm(1, 2));
  await_answer(second);
  const std::lock_guard lock(script_.mutex);
  EXPECT_EQ(script_.traced,
            (std::vector<std::string>{"blas.dot " + std::to_string(first), "run", "end",
                                      "blas.gemm " + std::to_string(second), "run", "end"}));
}

TEST_F(Reactor, WhatFindsNoMemoryTellsWhoHasIt) {
  const auto refused = ask(to_host::MakeSlab{2, 2ull << 30});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "no room (taken by this device host: slabs 2 MiB, blas 64 MiB)");
  const auto use = ask(to_host::TellMemoryUse{});
  ASSERT_TRUE(use.ok());
  std::string text;
  for (const auto& [cause, bytes] : use->parts) text += cause + " " + std::to_string(bytes) + " ";
  EXPECT_EQ(text, "slabs 2097152 blas 67108864 nothing 5 ");
}

class SlowReactor : public Reactor {
 protected:
  SlowReactor() : Reactor(false) {}
};

// Both the start of the device host and connect want it.
TEST_F(SlowReactor, OpensTheCollectiveLaneOnce) {
  ASSERT_TRUE(script_.await([this] { return script_.opened == 1; }));
  const auto contributed = ask(to_host::Contribute{0, 1, {}});
  ASSERT_TRUE(contributed.ok());
  const auto connects = request(to_host::Connect{0, 1, {contributed->contribution}, {}});
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok());
  script_.change([this] { script_.lanes_open = true; });
  const auto connected = receive();
  EXPECT_TRUE(is<from_host::Done>(connected));
  EXPECT_EQ(connected.request, connects);
  EXPECT_EQ(script_.opened, 1);
  script_.reached.store(true);
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions&) {
  return std::unique_ptr<Engine>(std::make_unique<ScriptedEngine>());
}

std::unique_ptr<Tracing> make_tracing(ActivitySink) {
  return std::make_unique<ScriptedTracing>();
}

}  // namespace troupe::host
