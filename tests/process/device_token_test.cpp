#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include <troupe/remote_device.hpp>

#include "device_rig.hpp"
#include "rank/token/token_actor.hpp"
#include "unit/sound_operations.hpp"

// One rank's TokenActor with a device, and what the others say to it, in an order of the test's.

namespace troupe::test {
namespace {

using namespace rank_process::token_message;
namespace routed = rank_process::routed;
using rank_process::TokenMessage;
using rank_process::TransferKey;

Error kReformed() {
  return {Errc::world_reformed, 0, "the world is re-formed"};
}

std::optional<TransferKey> key_of(const TokenMessage& message) {
  return std::visit(
      [](const auto& said) -> std::optional<TransferKey> {
        if constexpr (requires { said.key; }) return said.key;
        return std::nullopt;
      },
      message);
}

/// What a message says has become of a request; an offer says nothing bad.
Result<void> outcome_of(const TokenMessage& message) {
  return std::visit(
      [](const auto& said) -> Result<void> {
        if constexpr (requires { said.outcome; }) return said.outcome;
        return {};
      },
      message);
}

/// Rank 0 of three.
class ActorRig {
 public:
  explicit ActorRig(rank_process::TokenPath path = rank_process::TokenPath::network)
      : system_(ProductionScheduler::start({.workers = 1}).take()) {
    parts_.size = 3;
    parts_.path = path;
    parts_.timeout = kDeadline;
    parts_.device = device_.core().shared_from_this();
    parts_.send = [this](int, std::vector<std::byte> message) {
      const std::lock_guard lock(mutex_);
      sent_.push_back(rank_process::decode_token_message(message).take().message);
      changed_.notify_all();
    };
    actor_ = system_.spawn<rank_process::TokenActor>({.name = "tokens"}, &parts_);
  }
  ~ActorRig() {
    (void)actor_.ask(End{}, kDeadline).wait();
    actor_.stop();
    actor_.wait_ended();
  }

  Device& device() { return device_.device(); }
  rank_process::CommandPort& port() { return device_.core().port(); }

  /// The program turns to this epoch.
  void begin(std::uint32_t epoch) {
    port().gate().set_epoch(Epoch(epoch));
    tell(EpochBegun{epoch});
  }
  void end(std::uint32_t epoch) {
    port().gate().set_epoch(Epoch(0));
    tell(EpochEnded{epoch, kReformed()});
  }
  template <class M>
  void tell(M message) {
    ASSERT_TRUE(actor_.tell(std::move(message)).ok());
  }
  /// Another rank says something: the one that has asked for the transfer.
  template <class M>
  void hear(const M& message) {
    tell(FromNetwork{rank_process::encode(message.key.requester, message)});
  }
  /// Another rank wants a buffer of rank 0 to be kept; the request's number.
  TransferKey ask_to_hold(int requester, std::uint32_t epoch, const GpuRef<double>& buffer,
                          std::uint64_t commit = 0) {
    const TransferKey key{requester, epoch, next_++};
    hear(routed::Hold{key, commit, RemoteRef<double>(buffer.token()).operand()});
    return key;
  }
  /// What is said about a request, as soon as it is.
  Result<void> answer(const TransferKey& key) {
    std::unique_lock lock(mutex_);
    std::optional<Result<void>> found;
    const bool in_time = changed_.wait_for(lock, kDeadline, [&] {
      for (const auto& message : sent_) {
        if (key_of(message) == key) found = outcome_of(message);
      }
      return found.has_value();
    });
    return in_time ? *found : Result<void>(Error{Errc::internal, 0, "no answer"});
  }
  /// How many times something has been said about a request.
  std::ptrdiff_t times_answered(const TransferKey& key) {
    const std::lock_guard lock(mutex_);
    return std::count_if(sent_.begin(), sent_.end(),
                         [&](const auto& message) { return key_of(message) == key; });
  }
  /// Whether anything has been said about a request once all that came before is handled.
  bool waits(const TransferKey& key) {
    const TransferKey probe{2, 1, next_++};  // an offer that nobody wants is answered at once
    hear(routed::Offered{probe, {}});
    EXPECT_EQ(answer(probe).code(), Errc::stopped);
    return times_answered(key) == 0;
  }

 private:
  DeviceRig device_;
  rank_process::TokenParts parts_;
  ActorSystem system_;
  ActorRef<rank_process::TokenActor> actor_;
  std::uint64_t next_ = 1;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TokenMessage> sent_;
};

TEST(TokenEpochs, ARequestIsServedInItsOwnEpochAlone) {
  ActorRig rig;
  const auto buffer = rig.device().alloc<double>(100);
  rig.begin(3);
  EXPECT_TRUE(rig.answer(rig.ask_to_hold(1, 3, buffer)).ok());
  EXPECT_EQ(rig.answer(rig.ask_to_hold(1, 2, buffer)).code(), Errc::world_reformed);
  const auto early = rig.ask_to_hold(1, 4, buffer);
  EXPECT_TRUE(rig.waits(early));
  rig.end(3);
  EXPECT_TRUE(rig.waits(early));
  EXPECT_EQ(rig.answer(rig.ask_to_hold(2, 3, buffer)).code(), Errc::world_reformed);
  rig.begin(4);
  EXPECT_TRUE(rig.answer(early).ok());
  EXPECT_EQ(rig.answer(rig.ask_to_hold(1, 3, buffer)).code(), Errc::world_reformed);
  // An epoch that this rank's program never turned to has ended all the same.
  const auto missed = rig.ask_to_hold(1, 5, buffer);
  rig.end(5);
  EXPECT_EQ(rig.answer(missed).code(), Errc::world_reformed);
}

TEST(TokenEpochs, ARequestMadeBehindACommitWaitsForTheOwners) {
  ActorRig rig;
  const auto buffer = rig.device().alloc<double>(100);
  rig.begin(3);
  rig.tell(Committed{3, 1});
  EXPECT_TRUE(rig.answer(rig.ask_to_hold(1, 3, buffer, 0)).ok());
  EXPECT_TRUE(rig.answer(rig.ask_to_hold(1, 3, buffer, 1)).ok());
  const auto early = rig.ask_to_hold(1, 3, buffer, 2), next = rig.ask_to_hold(1, 4, buffer, 1);
  EXPECT_TRUE(rig.waits(early));
  rig.tell(Committed{3, 2});
  EXPECT_TRUE(rig.answer(early).ok());
  rig.end(3);
  rig.begin(4);  // which counts anew
  EXPECT_TRUE(rig.waits(next));
  rig.tell(Committed{3, 9});
  EXPECT_TRUE(rig.waits(next));
  rig.tell(Committed{4, 1});
  EXPECT_TRUE(rig.answer(next).ok());
}

TEST(TokenEpochs, TheRequestOfARankThatIsBackMayComeAheadOfThatNews) {
  ActorRig rig;
  const auto buffer = rig.device().alloc<double>(100);
  rig.begin(3);
  rig.end(3);
  rig.tell(SetExcluded{{1}});
  rig.begin(4);
  EXPECT_EQ(rig.answer(rig.ask_to_hold(1, 4, buffer)).code(), Errc::peer_lost);
  const auto early = rig.ask_to_hold(1, 5, buffer);
  EXPECT_TRUE(rig.waits(early));
  rig.end(4);
  rig.tell(SetExcluded{});
  EXPECT_TRUE(rig.waits(early));
  rig.begin(5);
  EXPECT_TRUE(rig.answer(early).ok());
}

TEST(TokenEpochs, WhatIsAskedForIsNotSubmittedOnceTheEpochHasEndedWhoeverKnows) {
  ActorRig rig;
  const auto buffer = rig.device().alloc<double>(100);
  rig.device().fill(buffer, 1.0).get();
  rig.begin(3);
  rig.port().gate().set_epoch(Epoch(0));  // the actor has not been told
  const TransferKey key{1, 3, 1000};
  memory::Fill fill{DType::f64, 100, {}, RemoteRef<double>(buffer.token()).operand()};
  rig.hear(routed::Execute{key, 0, "memory.fill", wire::test::record_of(fill)});
  EXPECT_EQ(rig.answer(key).code(), Errc::world_reformed);
  EXPECT_EQ(rig.device().download(buffer), std::vector<double>(100, 1.0));
}

TEST(TokenEpochs, TransfersEndWithTheirEpochAndGiveWhatTheyHoldBack) {
  ActorRig rig;
  const auto source = rig.device().alloc<double>(100), fetched = rig.device().alloc<double>(100),
             box = rig.device().alloc<double>(100);
  rig.device().fill(fetched, 1.0).get();
  rig.begin(3);
  // One that this rank wants, one that comes, and one that goes.
  ASSERT_TRUE(rig.port().transfers().begin_write(fetched.operand()).ok());
  auto there = fetched.token();
  there.rank = 1;
  Promise<void> done;
  const auto ended = done.future();
  rig.tell(Fetch{3, 0, RemoteRef<double>(there).operand(), 1, fetched.operand(),
                 [shared = std::make_shared<Promise<void>>(std::move(done))](
                     const Result<void>& outcome) { shared->resolve(outcome); }});
  const TransferKey put{1, 3, 1000}, fetch{2, 3, 1001};
  rig.hear(routed::Fetch{fetch, 0, RemoteRef<double>(source.token()).operand()});
  EXPECT_TRUE(rig.answer(fetch).ok());  // the offer
  EXPECT_FALSE(ended.ready());
  rig.end(3);
  ASSERT_TRUE(ended.wait_for(kDeadline));
  EXPECT_EQ(ended.wait().code(), Errc::world_reformed);
  EXPECT_FALSE(rig.waits(fetch));
  EXPECT_EQ(rig.answer(fetch).code(), Errc::world_reformed);
  EXPECT_TRUE(fetched.valid()) << "nothing had come";
  // Commands on these ranges, as of a rollback, wait for nothing any more.
  for (const auto& buffer : {source, fetched, box}) rig.device().fill(buffer, 2.0).get();
  rig.begin(4);
  rig.hear(routed::Put{put, 0, RemoteRef<double>(box.token()).operand(), {.bytes = 800}});
  EXPECT_EQ(rig.answer(put).code(), Errc::world_reformed);
  EXPECT_EQ(rig.device().download(box), std::vector<double>(100, 2.0));
  EXPECT_TRUE(rig.device().take_error().ok());
}

TEST(TokenRequests, OneThatFailsAtOnceIsHandledOnce) {
  ActorRig rig(rank_process::TokenPath::peer);
  const auto box = rig.device().alloc<double>(100);
  rig.begin(3);
  const TransferKey put{1, 3, 1000}, next{1, 3, 1001};
  for (const auto& key : {put, next}) {
    // Over the network, which is ruled out.
    rig.hear(routed::Put{key, 0, RemoteRef<double>(box.token()).operand(), {.bytes = 800}});
  }
  EXPECT_FALSE(rig.waits(next));
  for (const auto& key : {put, next}) {
    EXPECT_EQ(rig.answer(key).code(), Errc::unsupported);
    EXPECT_EQ(rig.times_answered(key), 2) << "to the source, and to whoever asked";
  }
  rig.device().fill(box, 2.0).get();  // it is expected no more
}

TEST(TokenRequests, AFetchWhoseBytesAreRightEndsWithItsReadersWord) {
  ActorRig rig;
  const auto source = rig.device().alloc<double>(100);
  rig.device().fill(source, 1.0).get();
  rig.begin(3);
  const TransferKey fetch{2, 3, 1000};
  rig.hear(routed::Fetch{fetch, 0, RemoteRef<double>(source.token()).operand()});
  EXPECT_TRUE(rig.answer(fetch).ok());  // the offer
  rig.hear(routed::Taken{fetch, {}, true});
  EXPECT_FALSE(rig.waits(fetch));
  EXPECT_EQ(rig.times_answered(fetch), 1) << "nothing is left to say";
  // The same number is free for another one: the loan has ended.
  rig.hear(routed::Fetch{fetch, 0, RemoteRef<double>(source.token()).operand()});
  EXPECT_FALSE(rig.waits(fetch));
  EXPECT_TRUE(rig.answer(fetch).ok());
}

TEST(TokenEpochs, AtTheEndOfAllWhatIsAskedOfOthersFails) {
  ActorRig rig;
  rig.begin(3);
  std::vector<Future<void>> asked;
  const auto ask = [&](std::uint32_t epoch) {
    auto promise = std::make_shared<Promise<void>>();
    asked.push_back(promise->future());
    rig.tell(Ask{
        epoch, 2, routed::Execute{},
        [promise](const TransferKey&, const Result<void>& outcome) { promise->resolve(outcome); }});
  };
  ask(3);
  rig.end(3);
  ask(3);
  ASSERT_TRUE(asked[1].wait_for(kDeadline));
  EXPECT_EQ(asked[1].wait().code(), Errc::world_reformed);
  EXPECT_FALSE(asked[0].ready()) << "its owner knows what became of it";
  rig.tell(EpochEnded{kNoMoreEpochs, {Errc::timeout, 0, "a rank is silent"}});
  ask(4);
  for (const auto index : {0, 2}) {
    ASSERT_TRUE(asked[static_cast<std::size_t>(index)].wait_for(kDeadline));
    EXPECT_EQ(asked[static_cast<std::size_t>(index)].wait().code(), Errc::timeout);
  }
}

}  // namespace
}  // namespace troupe::test
