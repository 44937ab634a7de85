// The reactor of a device host: libraries that are opened, block, fail and are prepared.
#include "reactor.hpp"

namespace troupe::host {
namespace {

TEST_F(Reactor, ALibraryIsOpenedWhenACommandNeedsItAndHoldsUpNobody) {
  script_.reached.store(true);
  await_answer(submit(multiply(0, 1)));
  EXPECT_EQ(script_.blas_opened, 0) << "nothing needs it";
  script_.change([this] { script_.blas_opens = false; });
  const auto first = submit(dot(1, 2));
  const auto depends = submit(multiply(2, 3)), other = submit(multiply(4, 5));
  await_answer(other);
  EXPECT_FALSE(has_run("blas.dot"));
  EXPECT_TRUE(header().set_aside.contains(first) && header().set_aside.contains(depends));
  submit_all_reduce();
  EXPECT_TRUE(runs("collective.all_reduce")) << "a collective waits for a library";
  script_.change([this] { script_.blas_opens = true; });
  await_answer(depends);
  EXPECT_FALSE(header().set_aside.contains(first) || header().set_aside.contains(depends));
  EXPECT_EQ(script_.ran,
            (std::vector<std::string>{"vector.multiply", "vector.multiply", "collective.all_reduce",
                                      "blas.dot", "vector.multiply"}));
  EXPECT_EQ(script_.blas_opened, 2) << "its lane and its detour";
}

class ReactorOfSeveralHosts : public Reactor {
 protected:
  ReactorOfSeveralHosts() : Reactor(true, wire::Completion::event, {.other_hosts = 1}) {}
};

// What is queued behind a library that loads its kernels waits for the running ones, and a
// collective may run until another host comes.
TEST_F(ReactorOfSeveralHosts, NoCollectiveBeginsWhileALibraryIsOpened) {
  script_.reached.store(true);
  submit_all_reduce();
  await_answer(submit(multiply(4, 5)));
  EXPECT_FALSE(has_run("collective.all_reduce"));
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_TRUE(runs("collective.all_reduce"));
}

// As may a transfer.
class ReactorWithChannels : public Reactor {
 protected:
  ReactorWithChannels() : Reactor(true, wire::Completion::event, {.channels = 2}) {}
  std::uint64_t join(std::uint64_t number) {
    return submit(channel::Join{DType::u8, number}, 0, std::vector<std::byte>(8));
  }
};

TEST_F(ReactorWithChannels, NoneBeginsWhileALibraryIsOpenedAndHoldsUpNobody) {
  script_.reached.store(true);
  const auto joins = join(1);
  await_answer(submit(multiply(4, 5)));
  EXPECT_TRUE(header().set_aside.contains(joins));
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_EQ(await_answer(joins).code, 0u);
  EXPECT_FALSE(header().set_aside.contains(joins));
}

TEST_F(ReactorWithChannels, OneThatIsGivenUpWhileALibraryIsOpenedIsNotMadeLater) {
  script_.reached.store(true);
  const auto joins = join(1);
  EXPECT_EQ(await_answer(submit(channel::Drop{DType::u8, 1})).code, 0u);
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_EQ(static_cast<Errc>(await_answer(joins).code), Errc::world_reformed);
  EXPECT_EQ(await_answer(join(2)).code, 0u);
}

// What a library waits for when it is opened anew after a failure.
TEST_F(ReactorWithChannels, ATransferUnderWayIsGivenUpPastOneThatIsHeldUp) {
  script_.change([this] { script_.blas_opens = true; });
  await_answer(join(1));
  await_answer(join(2));
  const auto under_way = submit(channel::Receive{DType::u8, 1, part(1)});
  ASSERT_TRUE(script_.await([this] { return script_.transfers == 1; }));
  script_.change([this] { script_.blas_fails = true, script_.blas_opens = false; });
  EXPECT_EQ(static_cast<Errc>(await_answer(submit(dot(2, 3))).code), Errc::library);
  const auto held_up = submit(channel::Receive{DType::u8, 2, part(4)});
  await_answer(submit(channel::Drop{DType::u8, 1}));
  EXPECT_NE(await_answer(under_way).code, 0u);
  EXPECT_TRUE(header().set_aside.contains(held_up));
  script_.change([this] { script_.blas_opens = true; });
  EXPECT_TRUE(script_.await([this] { return script_.transfers == 2; }));
  submit(channel::Drop{DType::u8, 2});
  EXPECT_NE(await_answer(held_up).code, 0u);
  script_.reached.store(true);
}

TEST_F(Reactor, WhatBlocksHoldsUpItsOwnLibraryAlone) {
  script_.reached.store(true);
  await_answer(submit(dot(0, 1)));
  script_.change([this] { script_.works = false; });
  const auto work = submit(gemm(1, 2));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto same_library = submit(dot(3, 4)), depends = submit(multiply(2, 5));
  await_answer(submit(multiply(6, 7)));
  submit_all_reduce();
  EXPECT_TRUE(runs("collective.all_reduce"));
  EXPECT_TRUE(header().set_aside.contains(same_library) && header().set_aside.contains(depends));
  EXPECT_FALSE(header().set_aside.contains(work)) << "it may have begun";
  script_.change([this] { script_.works = true; });
  await_answer(depends);
  EXPECT_TRUE(runs("blas.dot", 2));
}

TEST_F(Reactor, WaitsForWorkBeforeItIsQuiet) {
  script_.reached.store(true);
  script_.change([this] { script_.works = false; });
  submit(gemm(1, 2));
  await_answer(submit(multiply(6, 7)));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto quiesces = request(to_host::Quiesce{});
  ASSERT_TRUE(script_.await([this] { return script_.aborted > 0; }));
  EXPECT_TRUE(ask(to_host::TellMemoryUse{}).ok()) << "quiesced while a library was at work";
  script_.change([this] { script_.works = true; });
  EXPECT_EQ(receive().request, quiesces);
}

TEST_F(Reactor, ALibraryThatFailsIsOpenedAnewUntilItIsGivenUp) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_fails = true; });
  for (int failure = 1; failure <= LaneActor::kRestarts + 1; ++failure) {
    const auto reply = await_answer(submit(dot(0, 1)));
    EXPECT_EQ(static_cast<Errc>(reply.code), Errc::library);
    EXPECT_EQ(reply.native, 14);
    EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u) << "a neighbour failed";
  }
  EXPECT_EQ(script_.discarded, LaneActor::kRestarts);
  script_.change([this] { script_.blas_fails = false; });
  const auto given_up = await_answer(submit(dot(0, 1)));
  EXPECT_EQ(static_cast<Errc>(given_up.code), Errc::library) << "it was to be given up";
  EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u);
}

TEST_F(Reactor, SaysWhichLibrariesItDoesNotHaveAndAnswersTheirCommands) {
  EXPECT_EQ(header().unknown.lanes(), 1u << kUnusedLane);
  EXPECT_EQ(header().unknown.why("alchemy").find("there is no troupe-alchemy-scripted.so in "), 0u)
      << header().unknown.text();
  // As of a rank that has submitted it before it could read that.
  auto record = record_of(memory::Nop{}, ++tickets_);
  wire::CommandHeader head;
  std::memcpy(&head, record.data(), sizeof head);
  head.opcode = 1;  // nobody's
  std::memcpy(record.data(), &head, sizeof head);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit_record(record)).code), Errc::unsupported);
  EXPECT_EQ(await_answer(submit(memory::Nop{})).code, 0u) << "it does not go on";
}

TEST_F(Reactor, AnOrderedFailureHitsTheNextCallOfItsLibrary) {
  script_.reached.store(true);
  EXPECT_EQ(await_answer(submit(memory::LibraryFault{{}, 0, 0, "blas"})).code, 0u);
  EXPECT_EQ(await_answer(submit(multiply(0, 1))).code, 0u);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit(dot(0, 1))).code), Errc::library);
  EXPECT_EQ(await_answer(submit(dot(0, 1))).code, 0u);
  EXPECT_EQ(script_.discarded, 1);
  EXPECT_EQ(static_cast<Errc>(await_answer(submit(memory::LibraryFault{{}, 0, 0, "alchemy"})).code),
            Errc::invalid);
}

TEST_F(Reactor, ALibraryThatIsHeldUpSaysSo) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_opens = false; });
  const auto held = submit(dot(0, 1));
  await_answer(submit(multiply(2, 3)));
  EXPECT_EQ(header().held_up.load(), 1u << static_cast<unsigned>(library_lane("blas")));
  script_.change([this] { script_.blas_opens = true; });
  await_answer(held);
  EXPECT_EQ(header().held_up.load(), 0u);
  script_.change([this] { script_.works = false; });
  submit(gemm(1, 2));
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto behind = submit(dot(3, 4));
  await_answer(submit(multiply(6, 7)));
  EXPECT_NE(header().held_up.load(), 0u);
  script_.change([this] { script_.works = true; });
  await_answer(behind);
  EXPECT_EQ(header().held_up.load(), 0u);
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST_F(Reactor, AKindThatRecursIsToldOnceAndPreparedWhereTheRankSaysSo) {
  script_.reached.store(true);
  for (int i = 0; i < 3; ++i) await_answer(submit(dot(0, 1)));
  const auto told = receive_other();
  const auto* const kind = std::get_if<from_host::KindRecurs>(&told.message);
  ASSERT_NE(kind, nullptr);
  script_.change([this] { script_.ran.clear(); });
  const auto prepares = request(to_host::Prepare{{kind->record}});
  EXPECT_EQ(receive().request, prepares) << "the kind was told of once more, or more";
  EXPECT_TRUE(has_run("blas.dot"));
  EXPECT_GE(script_.scratch, 3u * 64);
  EXPECT_EQ(script_.given_back, 1);
}

TEST_F(Reactor, WhatIsNoRecordIsNotPreparedButAnswered) {
  const auto prepares = request(to_host::Prepare{{bytes_of("nonsense"), {}}});
  EXPECT_EQ(receive().request, prepares);
}

TEST_F(Reactor, PreparingKeepsItsLibraryAndNoOther) {
  script_.reached.store(true);
  script_.change([this] { script_.works = false; });
  const auto record = record_of(gemm(6, 7));
  const auto prepared = submit(memory::Prepare{}, 0, record);
  ASSERT_TRUE(script_.await([this] { return script_.at_work; }));
  const auto behind = submit(dot(0, 1));
  EXPECT_EQ(await_answer(submit(multiply(2, 3))).code, 0u) << "another library waited";
  EXPECT_FALSE(has_run("blas.dot"));
  script_.change([this] { script_.works = true; });
  EXPECT_EQ(await_answer(prepared).code, 0u);
  EXPECT_EQ(await_answer(behind).code, 0u);
}

TEST_F(Reactor, PreparingSaysWhatIsWrong) {
  script_.reached.store(true);
  script_.change([this] { script_.blas_fails = true; });
  EXPECT_EQ(
      static_cast<Errc>(await_answer(submit(memory::Prepare{}, 0, record_of(dot(0, 1)))).code),
      Errc::library);
  EXPECT_EQ(
      static_cast<Errc>(await_answer(submit(memory::Prepare{}, 0, record_of(memory::Nop{}))).code),
      Errc::unsupported);
  EXPECT_EQ(static_cast<Errc>(
                await_answer(submit(memory::Prepare{}, 0, std::vector<std::byte>(16))).code),
            Errc::invalid);
}

TEST_F(Reactor, PlansThatAreMadeAreToldAndThoseOfOthersAdopted) {
  script_.reached.store(true);
  script_.change([&] { script_.plans.push_back(bytes_of("a plan")); });
  await_answer(submit(gemm(6, 7)));
  const auto told = receive_other();
  const auto* const made = std::get_if<from_host::PlansMade>(&told.message);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(made->library, "blas");
  ASSERT_EQ(made->plans.size(), 1u);
  EXPECT_EQ(made->plans[0], bytes_of("a plan"));
  send(to_host::AdoptPlans{{{"blas", bytes_of("another")}}});
  EXPECT_TRUE(script_.await([this] { return script_.adopted == "blas another"; }));
}

}  // namespace

}  // namespace troupe::host
