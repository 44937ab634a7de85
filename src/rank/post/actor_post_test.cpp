// Messages between actors of several ranks, over a network that is simulated: order, at most once,
// back-pressure, actors that are not there, ranks that leave, bytes that mean nothing.
#include "rank/post/actor_post.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <troupe/actor.hpp>

namespace troupe::rank_process {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kWindow = kActorWindow;
constexpr auto kDeadline = 1s;

struct Number {
  int from;
  int value;
};
struct Text {
  std::string text;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text);
  }
};
struct Sum {
  using Reply = std::int64_t;
  int more = 0;
};
struct Fail {
  using Reply = void;
};
struct Later {
  using Reply = std::string;
};
struct Local {
  std::shared_ptr<int> what;
};

struct Seen {
  std::vector<std::pair<int, int>> numbers;
  std::vector<std::string> texts;
  std::vector<Promise<std::string>> later;
};

class Clerk : public Actor<Clerk, Local, Number, Text, Sum, Fail, Later> {
 public:
  explicit Clerk(Seen* seen) : seen_(seen) {}
  void on(Local&&) {}
  void on(Number number) { seen_->numbers.emplace_back(number.from, number.value); }
  void on(const Text& text) { seen_->texts.push_back(text.text); }
  std::int64_t on(Sum sum) {
    std::int64_t total = sum.more;
    for (const auto& [from, value] : seen_->numbers) total += value;
    return total;
  }
  Result<void> on(Fail) { return Error{Errc::numeric, 42, "does not converge"}; }
  Future<std::string> on(Later) {
    seen_->later.emplace_back();
    return seen_->later.back().future();
  }

 private:
  Seen* seen_;
};

/// Of another class, with another set.
class Other : public Actor<Other, Number> {
 public:
  void on(Number) {}
};

template <class A, class M>
concept CanTell = requires(RemoteActor<A> actor, M message) {
  actor.tell(message);
};
static_assert(CanTell<Clerk, Number> && CanTell<Clerk, Text> && !CanTell<Other, Text>);
static_assert(!CanTell<Clerk, Local>, "what does not travel cannot be told");

/// Between two ranks in order, as MPI has it; which pair comes next is drawn.
class Network {
 public:
  explicit Network(int ranks, std::uint64_t seed = 1) : random_(seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      reports_.emplace_back();
      posts_.push_back(ActorPost::make({.rank = rank,
                                        .size = ranks,
                                        .scheduler = scheduler_.get(),
                                        .send =
                                            [this, rank](int to, std::vector<std::byte> bytes) {
                                              links_[{rank, to}].push_back(std::move(bytes));
                                            },
                                        .report =
                                            [this, rank](const Error& error) {
                                              reports_[static_cast<std::size_t>(rank)].push_back(
                                                  error);
                                            }}));
    }
  }

  [[nodiscard]] ActorPost& post(int rank) { return *posts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::vector<Error>& reports(int rank) {
    return reports_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] SteppedScheduler& scheduler() { return *scheduler_; }
  [[nodiscard]] ActorSystem& system() { return system_; }

  ActorRef<Clerk> clerk(int rank, const std::string& name, Seen* seen,
                        std::size_t capacity = 4096) {
    auto made = system_.spawn<Clerk>({.name = name, .mailbox_capacity = capacity}, seen);
    EXPECT_TRUE(publish(rank, name, made).ok());
    return made;
  }
  template <class A>
  Result<void> publish(int rank, const std::string& name, const ActorRef<A>& actor) {
    return post(rank).publish(name, std::make_shared<detail::PublishedActorOf<A>>(actor));
  }
  template <class A = Clerk>
  RemoteActor<A> actor(int from, int rank, const std::string& name) {
    return RemoteActor<A>(post(from).address(name, rank, A::MessageSet::number()));
  }

  /// One message of the network; false if there is none.
  bool deliver(bool twice = false) {
    std::vector<std::pair<int, int>> busy;
    for (const auto& [link, queue] : links_)
      if (!queue.empty()) busy.push_back(link);
    if (busy.empty()) return false;
    const auto link = busy[random_() % busy.size()];
    const auto bytes = std::move(links_[link].front());
    links_[link].pop_front();
    for (int i = 0; i < (twice ? 2 : 1); ++i) EXPECT_TRUE(post(link.second).received(bytes).ok());
    return true;
  }
  /// Until nothing moves; time stands still.
  void settle(bool twice = false) {
    do {
      while (deliver(twice)) {
      }
      scheduler_->run_until_idle();
    } while (has_traffic());
  }
  /// As settle(), while time goes on.
  void advance(std::chrono::nanoseconds by) {
    for (int i = 0; i < 100; ++i) {
      settle();
      scheduler_->advance(by / 100);
    }
    settle();
  }
  void exclude(const std::vector<std::int32_t>& ranks) {
    for (auto& post : posts_) post->set_excluded(ranks);
  }

 private:
  [[nodiscard]] bool has_traffic() const {
    for (const auto& [link, queue] : links_)
      if (!queue.empty()) return true;
    return false;
  }

  std::mt19937_64 random_;
  std::shared_ptr<SteppedScheduler> scheduler_ = std::make_shared<SteppedScheduler>();
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> links_;
  std::vector<std::vector<Error>> reports_;
  std::vector<std::shared_ptr<ActorPost>> posts_;
  ActorSystem system_{scheduler_};
};

TEST(ActorPost, TellReachesAnActorOfAnotherRankAndOfThisOne) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  EXPECT_TRUE(net.actor(0, 1, "clerk").tell(Number{0, 5}).ok());
  EXPECT_TRUE(net.actor(1, 1, "clerk").tell(Text{"to myself"}).ok());
  EXPECT_TRUE(seen.numbers.empty() && seen.texts.empty()) << "nothing runs before its turn";
  net.settle();
  EXPECT_EQ(seen.numbers, (std::vector<std::pair<int, int>>{{0, 5}}));
  EXPECT_EQ(seen.texts, std::vector<std::string>{"to myself"});
}

TEST(ActorPost, AskIsAnsweredWithWhatTheHandlerReturnsOrFailsWith) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  const auto clerk = net.actor(0, 1, "clerk");
  clerk.tell(Number{0, 5}).take();
  const auto sum = clerk.ask(Sum{2}, kDeadline);
  const auto failed = clerk.ask(Fail{}, kDeadline);
  const auto later = clerk.ask(Later{}, kDeadline);
  net.settle();
  EXPECT_EQ(sum.get(), 7);
  EXPECT_EQ(failed.wait().error().to_string(),
            (Error{Errc::numeric, 42, "does not converge"}).to_string());
  EXPECT_FALSE(later.ready());
  seen.later[0].resolve(std::string("now"));
  net.settle();
  EXPECT_EQ(later.get(), "now");
  EXPECT_TRUE(net.reports(0).empty()) << "these errors have a future";
}

TEST(ActorPost, AnErrorThatNoFutureTellsIsReported) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  (void)net.actor(0, 1, "clerk").ask(Fail{}, kDeadline);
  net.settle();
  ASSERT_EQ(net.reports(0).size(), 1u);
  EXPECT_EQ(net.reports(0)[0].code, Errc::numeric);
}

TEST(ActorPost, TheEndOfAnActorIsToldToWhoWatchesIt) {
  Network net(3);
  Seen seen;
  const auto clerk = net.clerk(1, "clerk", &seen);
  const auto other = net.clerk(2, "other", &seen);
  const auto far = net.actor(0, 1, "clerk").ended(), own = net.actor(1, 1, "clerk").ended(),
             gone = net.actor(0, 2, "other").ended(), nobody = net.actor(0, 1, "nobody").ended();
  { const auto dropped = net.actor(0, 1, "clerk").ended(); }
  net.advance(std::chrono::hours(24 * 400));
  ASSERT_TRUE(nobody.ready() && !far.ready() && !own.ready() && !gone.ready());
  EXPECT_EQ(nobody.wait().code(), Errc::invalid);
  clerk.stop({Errc::numeric, 7, "enough"});
  net.exclude({2});
  net.advance(1ms);
  ASSERT_TRUE(far.ready() && own.ready() && gone.ready());
  EXPECT_EQ(far.wait().error().to_string(), (Error{Errc::numeric, 7, "enough"}).to_string());
  EXPECT_EQ(own.wait().code(), Errc::numeric);
  EXPECT_EQ(gone.wait().code(), Errc::peer_lost);
  const auto late = net.actor(0, 1, "clerk").ended();
  net.settle();
  ASSERT_TRUE(late.ready());
  EXPECT_EQ(late.wait().code(), Errc::stopped);
  EXPECT_TRUE(net.reports(0).empty()) << "an end is no error";
}

TEST(ActorPost, MessagesOfEachRankArriveInOrderAndOnce) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Network net(4, seed);
    Seen seen;
    net.clerk(3, "clerk", &seen, 8);  // full again and again
    std::mt19937_64 random(seed);
    std::array<int, 3> sent{};
    while (sent[0] + sent[1] + sent[2] < 3 * 700) {
      const auto from = static_cast<int>(random() % 3);
      auto& count = sent[static_cast<std::size_t>(from)];
      const bool told = count < 700 && net.actor(from, 3, "clerk").tell(Number{from, count}).ok();
      if (told) {
        ++count;
      } else {
        net.advance(1ms);
      }
      if (random() % 4 == 0) net.deliver(random() % 2 == 0);
      if (random() % 8 == 0) net.scheduler().step();
    }
    net.advance(10s);
    std::array<int, 3> next{};
    for (const auto& [from, value] : seen.numbers)
      EXPECT_EQ(value, next[static_cast<std::size_t>(from)]++) << "seed " << seed;
    EXPECT_EQ(next, sent) << "seed " << seed;
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(net.reports(rank).empty());
  }
}

TEST(ActorPost, AFullWindowWouldBlockUntilTheActorHasTakenSome) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen, 8);
  const auto clerk = net.actor(0, 1, "clerk");
  std::uint32_t sent = 0;
  while (clerk.tell(Number{0, 1}).ok()) ++sent;
  EXPECT_EQ(sent, kWindow);
  EXPECT_EQ(clerk.tell(Number{0, 1}).code(), Errc::would_block);
  const auto asked = clerk.ask(Sum{}, kDeadline);
  ASSERT_TRUE(asked.ready());
  EXPECT_EQ(asked.wait().code(), Errc::would_block);
  // The network alone gives no room: the mailbox has 8 places, and its actor no turn.
  while (net.deliver()) {
  }
  EXPECT_EQ(clerk.tell(Number{0, 1}).code(), Errc::would_block);
  net.advance(1s);
  EXPECT_EQ(seen.numbers.size(), kWindow);
  EXPECT_TRUE(clerk.tell(Number{0, 1}).ok());
}

TEST(ActorPost, AWindowHasRoomForSoManyBytes) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen, 2);
  const auto clerk = net.actor(0, 1, "clerk");
  const Text large{std::string(kMaxActorPayload - 8, 'x')};
  for (int round = 1; round <= 3; ++round) {
    std::uint32_t sent = 0;
    while (clerk.tell(large).ok()) ++sent;
    EXPECT_EQ(sent, kWindow / places_of(kMaxActorPayload)) << round;
    std::uint32_t small = 0;
    while (clerk.tell(Number{0, 1}).ok()) ++small;
    EXPECT_EQ(small, kWindow % places_of(kMaxActorPayload)) << round;
    net.advance(1s);
    EXPECT_EQ(seen.texts.size(), sent * static_cast<std::size_t>(round));
  }
}

TEST(ActorPost, ASlowActorHoldsUpItsOwnSendersAlone) {
  Network net(3);
  Seen slow, quick;
  net.clerk(1, "slow", &slow, 2);
  net.clerk(1, "quick", &quick);
  while (net.actor(0, 1, "slow").tell(Number{0, 1}).ok()) {
  }
  net.actor(0, 1, "quick").tell(Number{0, 2}).take();
  net.actor(2, 1, "quick").tell(Number{2, 3}).take();
  while (net.deliver()) {
  }
  EXPECT_TRUE(net.actor(2, 1, "slow").tell(Number{2, 1}).ok()) << "each rank has its own window";
  net.scheduler().run_until_idle();
  EXPECT_EQ(quick.numbers.size(), 2u);
}

TEST(ActorPost, AMessageToAnActorThatDoesNotExistIsAClearError) {
  Network net(2);
  const auto nobody = net.actor(0, 1, "nobody");
  EXPECT_TRUE(nobody.tell(Number{0, 1}).ok());
  const auto asked = nobody.ask(Sum{}, kDeadline);
  net.settle();
  EXPECT_EQ(asked.wait().code(), Errc::invalid);
  EXPECT_EQ(asked.wait().error().message, "rank 1 has published no actor of that name");
  ASSERT_EQ(net.reports(0).size(), 1u);
  EXPECT_EQ(
      net.reports(0)[0].to_string(),
      "invalid: a message to actor 'nobody' of rank 1 was not delivered: rank 1 has published "
      "no actor of that name");
  for (std::uint32_t i = 0; i < 3 * kWindow; ++i) {
    ASSERT_TRUE(nobody.tell(Number{0, 1}).ok()) << "what is refused leaves the window";
    net.settle();
  }
  Seen seen;
  net.clerk(1, "nobody", &seen);
  nobody.tell(Number{0, 1}).take();
  net.settle();
  EXPECT_EQ(seen.numbers.size(), 1u) << "it may come later";
}

TEST(ActorPost, AnActorThatHasEndedAnswersStopped) {
  Network net(2);
  Seen seen, again;
  const auto clerk = net.clerk(1, "clerk", &seen);
  const auto remote = net.actor(0, 1, "clerk");
  const auto pending = remote.ask(Later{}, kDeadline);
  net.settle();
  clerk.stop();
  net.settle();
  EXPECT_EQ(pending.wait().code(), Errc::stopped);
  remote.tell(Number{0, 1}).take();
  const auto asked = remote.ask(Sum{}, kDeadline);
  net.settle();
  EXPECT_EQ(asked.wait().code(), Errc::stopped);
  ASSERT_EQ(net.reports(0).size(), 1u);
  EXPECT_EQ(net.reports(0)[0].code, Errc::stopped);
  net.clerk(1, "clerk", &again);
  remote.tell(Number{0, 1}).take();
  net.settle();
  EXPECT_EQ(again.numbers.size(), 1u) << "the name leads to the actor that has it now";
}

TEST(ActorPost, ANameBelongsToOneLivingActor) {
  Network net(1);
  Seen seen;
  const auto first = net.clerk(0, "clerk", &seen);
  const auto second = net.system().spawn<Clerk>({}, &seen);
  EXPECT_EQ(net.publish(0, "clerk", second).code(), Errc::invalid);
  EXPECT_EQ(net.publish(0, "", second).code(), Errc::invalid);
  EXPECT_EQ(net.publish(0, "nobody", ActorRef<Clerk>()).code(), Errc::stopped);
  first.stop();
  net.settle();
  EXPECT_TRUE(net.publish(0, "clerk", second).ok());
}

TEST(ActorPost, AnActorOfAnotherClassIsNotTakenForIt) {
  Network net(2);
  ASSERT_TRUE(net.publish(1, "clerk", net.system().spawn<Other>({})).ok());
  net.actor(0, 1, "clerk").tell(Number{0, 1}).take();
  net.settle();
  ASSERT_EQ(net.reports(0).size(), 1u);
  EXPECT_EQ(net.reports(0)[0].code, Errc::invalid);
  EXPECT_TRUE(net.actor<Other>(0, 1, "clerk").tell(Number{0, 1}).ok());
  net.settle();
  EXPECT_EQ(net.reports(0).size(), 1u);
}

TEST(ActorPost, ADeadlineEndsAQuestionOnBothSides) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  const auto clerk = net.actor(0, 1, "clerk");
  const auto lost_on_the_way = clerk.ask(Sum{}, 10ms);
  net.scheduler().advance(10ms);
  EXPECT_EQ(lost_on_the_way.wait().code(), Errc::timeout);
  const auto never = clerk.ask(Later{}, 10ms);
  net.advance(20ms);
  EXPECT_EQ(never.wait().code(), Errc::timeout);
  seen.later[0].resolve(std::string("too late"));
  net.settle();
  EXPECT_EQ(never.wait().code(), Errc::timeout);
}

TEST(ActorPost, AQuestionThatIsHeldPastItsDeadlineIsNotHandled) {
  Network net(2);
  Seen seen;
  const auto local = net.clerk(1, "clerk", &seen, 2);
  while (local.tell(Local{}).ok()) {
  }
  const auto asked = net.actor(0, 1, "clerk").ask(Later{}, 10us);
  while (net.deliver()) {
  }
  net.advance(1s);
  EXPECT_EQ(asked.wait().code(), Errc::timeout);
  EXPECT_TRUE(seen.later.empty());
}

TEST(ActorPost, WhatIsTooLargeIsRefused) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  const auto clerk = net.actor(0, 1, "clerk");
  EXPECT_EQ(clerk.tell(Text{std::string(kMaxActorPayload, 'x')}).code(), Errc::invalid);
  EXPECT_TRUE(clerk.tell(Text{std::string(kMaxActorPayload - 8, 'x')}).ok());
  const auto answer = clerk.ask(Later{}, kDeadline);
  net.settle();
  EXPECT_EQ(seen.texts.size(), 1u);
  seen.later[0].resolve(std::string(kMaxActorPayload, 'x'));
  net.settle();
  EXPECT_EQ(answer.wait().code(), Errc::invalid);
}

TEST(ActorPost, ARankThatIsGoneAnswersPeerLost) {
  Network net(3);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  net.clerk(0, "clerk", &seen);
  const auto clerk = net.actor(0, 1, "clerk");
  const auto pending = clerk.ask(Later{}, kDeadline);
  const auto back = net.actor(1, 0, "clerk");
  net.settle();
  net.exclude({1});
  EXPECT_FALSE(pending.ready()) << "who waits for it is not called under locks";
  net.settle();
  net.scheduler().advance(1ns);
  EXPECT_EQ(pending.wait().code(), Errc::peer_lost);
  EXPECT_EQ(clerk.tell(Number{0, 1}).code(), Errc::peer_lost);
  EXPECT_EQ(clerk.ask(Sum{}, kDeadline).wait().code(), Errc::peer_lost);
  EXPECT_EQ(net.actor(2, 1, "clerk").tell(Number{2, 1}).code(), Errc::peer_lost);
  EXPECT_EQ(back.tell(Number{1, 1}).code(), Errc::peer_lost) << "the others are gone for it";
  EXPECT_TRUE(net.actor(1, 1, "clerk").tell(Number{1, 1}).ok()) << "it has itself";
  EXPECT_EQ(net.actor(0, -1, "clerk").tell(Number{0, 1}).code(), Errc::peer_lost);
  EXPECT_EQ(net.actor(0, 3, "clerk").tell(Number{0, 1}).code(), Errc::peer_lost);
  net.settle();
  EXPECT_EQ(seen.numbers.size(), 1u);

  net.exclude({});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(clerk.tell(Number{0, 10 + i}).ok());
    EXPECT_TRUE(net.actor(2, 1, "clerk").tell(Number{2, 10 + i}).ok());
    EXPECT_TRUE(back.tell(Number{1, 10 + i}).ok());
  }
  net.settle();
  EXPECT_EQ(seen.numbers.size(), 10u) << "it is back";
  EXPECT_TRUE(net.reports(0).empty() && net.reports(1).empty() && net.reports(2).empty());
}

TEST(ActorPost, WhatARankSentBeforeItKnewThatItWasGoneIsRefused) {
  Network net(2);
  Seen seen;
  net.clerk(0, "clerk", &seen);
  const auto back = net.actor(1, 0, "clerk");
  back.tell(Number{1, 1}).take();
  net.settle();
  net.post(0).set_excluded({1});
  back.tell(Number{1, 2}).take();
  const auto asked = back.ask(Sum{}, kDeadline);
  net.settle();
  EXPECT_EQ(seen.numbers.size(), 1u);
  EXPECT_EQ(asked.wait().code(), Errc::peer_lost);
  ASSERT_EQ(net.reports(1).size(), 1u);
  EXPECT_EQ(net.reports(1)[0].code, Errc::peer_lost);
}

TEST(ActorPost, TheEndIsAnAnswerToAll) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  const auto clerk = net.actor(0, 1, "clerk");
  const auto pending = clerk.ask(Later{}, kDeadline);
  net.settle();
  net.post(0).end({Errc::stopped, 0, "the end"});
  net.scheduler().advance(1ns);
  EXPECT_EQ(pending.wait().code(), Errc::stopped);
  EXPECT_EQ(clerk.tell(Number{0, 1}).code(), Errc::stopped);
  EXPECT_EQ(net.actor(0, 1, "another").tell(Number{0, 1}).code(), Errc::stopped);
  EXPECT_EQ(net.publish(0, "late", ActorRef<Clerk>()).code(), Errc::stopped);
  net.actor(1, 0, "clerk").tell(Number{1, 1}).take();
  net.settle();
  ASSERT_EQ(net.reports(1).size(), 1u);
  EXPECT_EQ(net.reports(1)[0].code, Errc::stopped);
}

/// Waiting helps nobody then.
TEST(ActorPost, MoreNamesThanItKeepsAreAnErrorThatSaysSo) {
  Network net(2);
  Seen seen;
  net.clerk(1, "0", &seen);
  for (std::size_t i = 0; i < ActorPost::kMaxRoutes; ++i)
    (void)net.post(0).address(std::to_string(i), 1, Clerk::MessageSet::number());
  const auto told = net.actor(0, 1, "one more").tell(Number{0, 1});
  EXPECT_EQ(told.code(), Errc::out_of_memory);
  EXPECT_NE(told.error().message.find("actor 'one more' of rank 1: this rank has spoken to 65536"),
            std::string::npos)
      << told.error().message;
  EXPECT_TRUE(net.actor(0, 1, "0").tell(Number{0, 1}).ok()) << "the others are still there";
  net.settle();
  EXPECT_EQ(seen.numbers.size(), 1u);
}

/// A message of the right form whose contents are not.
TEST(ActorPost, ContentsThatAreMalformedAreRefused) {
  Network net(2);
  Seen seen;
  net.clerk(1, "clerk", &seen);
  const auto raw = net.post(0).address("clerk", 1, Clerk::MessageSet::number());
  const auto place = Clerk::MessageSet::kPlaceOf<Number>;
  EXPECT_TRUE(raw->tell(place, std::vector<std::byte>(3)).ok());
  EXPECT_TRUE(raw->tell(99, {}).ok());
  EXPECT_TRUE(raw->tell(Clerk::MessageSet::kPlaceOf<Local>, {}).ok());
  net.settle();
  EXPECT_TRUE(seen.numbers.empty());
  ASSERT_EQ(net.reports(0).size(), 3u);
  for (const auto& error : net.reports(0)) EXPECT_EQ(error.code, Errc::invalid);
}

}  // namespace
}  // namespace troupe::rank_process
