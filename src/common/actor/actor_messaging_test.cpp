// tell, ask, deadlines, timers and futures of actors, on a clock that stands still.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/stepped_scheduler.hpp>

#include "common/core/continuations.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct Note {
  std::string text;
};
struct Length {
  using Reply = int;
};
struct Check {
  using Reply = void;
  bool holds;
};
struct Parse {
  using Reply = int;
  std::string text;
};
struct Fetch {
  using Reply = std::string;
};
struct Supply {
  std::string value;
};
struct Remind {
  std::chrono::nanoseconds after;
  std::string text;
};
struct CancelReminder {
  using Reply = bool;
};
struct Await {
  Future<int> future;
};
struct Awaited {
  int value;
};
struct Unknown {};

class Clerk : public Actor<Clerk, Note, Length, Check, Parse, Fetch, Supply, Remind, CancelReminder,
                           Await, Awaited> {
 public:
  explicit Clerk(std::vector<std::string>* log) : log_(log) {}

  void on(Note&& note) { log_->push_back(std::move(note.text)); }
  int on(Length) { return static_cast<int>(log_->size()); }
  void on(Check check) {
    if (!check.holds) throw Exception(Error{Errc::library, 42, "does not hold"});
  }
  Result<int> on(const Parse& parse) {
    if (parse.text.empty()) return Error{Errc::invalid, 0, "empty"};
    return static_cast<int>(parse.text.size());
  }
  Future<std::string> on(Fetch) {
    promises_.emplace_back();
    return promises_.back().future();
  }
  void on(Supply&& supply) {
    for (auto& promise : promises_) promise.resolve(supply.value);
    promises_.clear();
  }
  void on(Remind&& remind) { reminder_ = context().schedule(remind.after, Note{remind.text}); }
  bool on(CancelReminder) { return context().cancel(reminder_); }
  void on(Await&& await) {
    context().pipe(await.future, [](const Result<int>& outcome) {
      return Awaited{outcome.ok() ? *outcome : -1};
    });
  }
  void on(Awaited awaited) { log_->push_back("awaited " + std::to_string(awaited.value)); }

 private:
  std::vector<std::string>* log_;
  std::vector<Promise<std::string>> promises_;
  TimerId reminder_;
};

template <class A, class M>
concept CanTell = requires(ActorRef<A> ref, M message) {
  ref.tell(std::move(message));
};
template <class A, class M>
concept CanAsk = requires(ActorRef<A> ref, M message) {
  ref.ask(std::move(message), 1s);
};

static_assert(CanTell<Clerk, Note> && CanTell<Clerk, Length>);
static_assert(!CanTell<Clerk, Unknown>, "the message set is closed");
static_assert(CanAsk<Clerk, Length> && CanAsk<Clerk, Check>);
static_assert(!CanAsk<Clerk, Note>, "only messages with a Reply can be asked");

class ActorMessaging : public ::testing::Test {
 protected:
  std::vector<std::string> log_;
  std::shared_ptr<SteppedScheduler> scheduler_ = std::make_shared<SteppedScheduler>();
  ActorSystem system_{scheduler_};
  ActorRef<Clerk> clerk_ = system_.spawn<Clerk>({.name = "clerk", .mailbox_capacity = 4}, &log_);
};

TEST_F(ActorMessaging, TellDeliversInOrder) {
  EXPECT_TRUE(clerk_.tell(Note{"one"}).ok());
  EXPECT_TRUE(clerk_.tell(Note{"two"}).ok());
  EXPECT_TRUE(log_.empty()) << "nothing runs before its turn";
  scheduler_->run_until_idle();
  EXPECT_EQ(log_, (std::vector<std::string>{"one", "two"}));
}

TEST_F(ActorMessaging, AFullMailboxWouldBlock) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(clerk_.tell(Note{"n"}).ok());
  EXPECT_EQ(clerk_.tell(Note{"n"}).code(), Errc::would_block);
  auto question = clerk_.ask(Length{}, 1s);
  ASSERT_TRUE(question.ready());
  EXPECT_EQ(question.wait().code(), Errc::would_block);
  scheduler_->run_until_idle();
  EXPECT_EQ(log_.size(), 4u);
  EXPECT_TRUE(clerk_.tell(Note{"n"}).ok());
}

TEST_F(ActorMessaging, AskIsAnsweredWithTheValue) {
  clerk_.tell(Note{"one"}).take();
  auto length = clerk_.ask(Length{}, 1s);
  auto check = clerk_.ask(Check{true}, 1s);
  auto parsed = clerk_.ask(Parse{"four"}, 1s);
  EXPECT_FALSE(length.ready());
  scheduler_->run_until_idle();
  EXPECT_EQ(length.get(), 1);
  EXPECT_TRUE(check.wait().ok());
  EXPECT_EQ(parsed.get(), 4);
}

TEST_F(ActorMessaging, AskIsAnsweredWithWhatTheHandlerFailsWith) {
  auto thrown = clerk_.ask(Check{false}, 1s);
  auto returned = clerk_.ask(Parse{""}, 1s);
  scheduler_->run_until_idle();
  EXPECT_EQ(thrown.wait().code(), Errc::library);
  EXPECT_EQ(thrown.wait().error().native, 42);
  EXPECT_EQ(returned.wait().code(), Errc::invalid);
  EXPECT_FALSE(clerk_.ended());
}

TEST_F(ActorMessaging, AQuestionMayBeToldAndItsAnswerIsDropped) {
  EXPECT_TRUE(clerk_.tell(Length{}).ok());
  EXPECT_TRUE(clerk_.tell(Fetch{}).ok());
  scheduler_->run_until_idle();
  EXPECT_FALSE(clerk_.ended());
}

TEST_F(ActorMessaging, AskWaitsForAFuture) {
  auto fetched = clerk_.ask(Fetch{}, 1s);
  scheduler_->run_until_idle();
  EXPECT_FALSE(fetched.ready());
  clerk_.tell(Supply{"bread"}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(fetched.get(), "bread");
}

TEST_F(ActorMessaging, DeadlinePassesWhileTheAnswerIsOutstanding) {
  auto fetched = clerk_.ask(Fetch{}, 10ms);
  scheduler_->advance(9ms);
  EXPECT_FALSE(fetched.ready());
  scheduler_->advance(1ms);
  ASSERT_TRUE(fetched.ready());
  EXPECT_EQ(fetched.wait().code(), Errc::timeout);
  clerk_.tell(Supply{"too late"}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(fetched.wait().code(), Errc::timeout) << "a future resolves once";
}

TEST_F(ActorMessaging, AnAnswerInTimeCancelsTheDeadline) {
  auto length = clerk_.ask(Length{}, 10ms);
  scheduler_->run_until_idle();
  scheduler_->advance(1s);
  EXPECT_TRUE(length.wait().ok());
}

TEST_F(ActorMessaging, DeadActorsAndNobodyAnswerStopped) {
  clerk_.stop();
  scheduler_->run_until_idle();
  EXPECT_TRUE(clerk_.ended());
  EXPECT_EQ(clerk_.tell(Note{"n"}).code(), Errc::stopped);
  EXPECT_EQ(clerk_.ask(Length{}, 1s).wait().code(), Errc::stopped);
  const ActorRef<Clerk> nobody;
  EXPECT_EQ(nobody.tell(Note{"n"}).code(), Errc::stopped);
  EXPECT_EQ(nobody.ask(Length{}, 1s).wait().code(), Errc::stopped);
  EXPECT_TRUE(nobody.ended());
}

TEST_F(ActorMessaging, TheEndOfTheActorResolvesQuestionsInTheMailboxAndInFlight) {
  auto in_flight = clerk_.ask(Fetch{}, 1s);
  scheduler_->run_until_idle();
  auto queued = clerk_.ask(Length{}, 1s);
  clerk_.stop();  // overtakes the mailbox
  scheduler_->run_until_idle();
  ASSERT_TRUE(in_flight.ready());
  EXPECT_EQ(in_flight.wait().code(), Errc::stopped);
  ASSERT_TRUE(queued.ready());
  EXPECT_EQ(queued.wait().code(), Errc::stopped);
}

TEST_F(ActorMessaging, AReferenceOutlivesTheSystem) {
  ActorRef<Clerk> survivor;
  {
    ActorSystem other(std::make_shared<SteppedScheduler>());
    survivor = other.spawn<Clerk>({}, &log_);
  }
  EXPECT_EQ(survivor.tell(Note{"n"}).code(), Errc::stopped);
  EXPECT_EQ(survivor.ask(Length{}, 1s).wait().code(), Errc::stopped);
}

TEST_F(ActorMessaging, TimersFireInOrderAtTheirTime) {
  clerk_.tell(Remind{20ms, "late"}).take();
  clerk_.tell(Remind{10ms, "early"}).take();
  clerk_.tell(Remind{10ms, "early too"}).take();
  scheduler_->advance(9ms);
  EXPECT_TRUE(log_.empty());
  scheduler_->advance(1ms);
  EXPECT_EQ(log_, (std::vector<std::string>{"early", "early too"}));
  scheduler_->advance(1h);
  EXPECT_EQ(log_.back(), "late");
  EXPECT_EQ(scheduler_->clock().now(), 1h + 10ms);
}

TEST_F(ActorMessaging, ATimersMessageIsNotLostToAFullMailbox) {
  clerk_.tell(Remind{10ms, "reminder"}).take();
  scheduler_->run_until_idle();
  for (int i = 0; i < 4; ++i) clerk_.tell(Note{"n"}).take();
  scheduler_->advance(10ms);
  EXPECT_EQ(log_.size(), 5u);
}

TEST_F(ActorMessaging, ACancelledTimerDoesNotFire) {
  clerk_.tell(Remind{10ms, "never"}).take();
  auto cancelled = clerk_.ask(CancelReminder{}, 1s);
  scheduler_->advance(20ms);
  EXPECT_TRUE(cancelled.get());
  EXPECT_TRUE(log_.empty());
  clerk_.tell(Remind{10ms, "fires"}).take();
  scheduler_->advance(20ms);
  auto too_late = clerk_.ask(CancelReminder{}, 1s);
  scheduler_->run_until_idle();
  EXPECT_FALSE(too_late.get());
  EXPECT_EQ(log_, (std::vector<std::string>{"fires"}));
}

TEST_F(ActorMessaging, PipeTurnsAFutureIntoAMessage) {
  Promise<int> promise;
  clerk_.tell(Await{promise.future()}).take();
  clerk_.tell(Await{Future<int>(Error{Errc::library, 0, "no"})}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(log_, (std::vector<std::string>{"awaited -1"}));
  promise.resolve(7);
  scheduler_->run_until_idle();
  EXPECT_EQ(log_.back(), "awaited 7");
}

TEST_F(ActorMessaging, PipeToSendsAFutureToAnotherActorHoweverFullItsMailbox) {
  Promise<int> promise;
  const auto to_message = [](const Result<int>& outcome) {
    return Note{outcome.ok() ? std::to_string(*outcome) : outcome.error().message};
  };
  pipe_to(promise.future(), clerk_, to_message);
  pipe_to(Future<int>(Error{Errc::library, 0, "no"}), clerk_, to_message);
  pipe_to(promise.future(), ActorRef<Clerk>(), to_message);
  for (int i = 0; i < 4; ++i) clerk_.tell(Note{"n"}).take();
  promise.resolve(7);
  scheduler_->run_until_idle();
  EXPECT_EQ(log_, (std::vector<std::string>{"no", "7", "n", "n", "n", "n"}));
}

TEST_F(ActorMessaging, AQuestionThatWasNotSentIsNoAnswer) {
  for (int i = 0; i < 4; ++i) clerk_.tell(Note{"n"}).take();
  EXPECT_EQ(clerk_.try_ask(Length{}, 1s).code(), Errc::would_block);
  scheduler_->run_until_idle();
  auto asked = clerk_.try_ask(Length{}, 1s);
  ASSERT_TRUE(asked.ok());
  scheduler_->run_until_idle();
  EXPECT_EQ(asked->get(), 4);
  EXPECT_EQ(ActorRef<Clerk>().try_ask(Length{}, 1s).code(), Errc::stopped);
}

// The timelines that messages are sent for, and failures that nobody waits for

struct WorksFor {};
struct WorkLater {
  Future<int> after;
};
struct TimeIsUp {};
struct Answered {
  using Reply = int;
};
struct Broken {};

/// Notes what its messages are handled for.
class Errands : public Actor<Errands, WorksFor, WorkLater, TimeIsUp, Answered, Broken> {
 public:
  explicit Errands(std::vector<detail::TimelineState*>* seen) : seen_(seen) {}
  void on(WorksFor) { note(); }
  void on(WorkLater work) {
    context().schedule(1s, TimeIsUp{});
    context().pipe(work.after, [](const Result<int>&) { return WorksFor{}; });
  }
  void on(TimeIsUp) { note(); }
  Future<int> on(Answered) { return answer_.future(); }
  Result<void> on(Broken) {
    answer_.resolve(7);
    return Error{Errc::io, 0, "a broken file"};
  }

 private:
  void note() { seen_->push_back(detail::bound_timeline()); }
  std::vector<detail::TimelineState*>* seen_;
  Promise<int> answer_;
};

/// A timeline that the test holds.
struct OwnTimeline {
  ~OwnTimeline() { state->release(); }
  [[nodiscard]] std::uint32_t active() const { return state->work().active; }
  detail::TimelineState* state = new detail::TimelineState;
};

TEST_F(ActorMessaging, AMessageIsHandledForWhatItWasSentFor) {
  const OwnTimeline one;
  std::vector<detail::TimelineState*> seen;
  const auto actor = system_.spawn<Errands>({.name = "errands"}, &seen);
  Promise<int> later;
  actor.tell(WorksFor{}).take();
  Future<int> answer;
  {
    const detail::Binding binding(one.state);
    actor.tell(WorksFor{}).take();
    actor.tell(WorkLater{later.future()}).take();
    answer = actor.ask(Answered{}, 10s);
    EXPECT_EQ(one.active(), 4u) << "three messages, and a question until it is answered";
  }
  scheduler_->run_until_idle();
  EXPECT_EQ(one.active(), 1u);
  EXPECT_EQ(one.state->work().waiting, 1u) << "what is piped";
  later.resolve(1);
  scheduler_->run_until_idle();
  scheduler_->advance(2s);
  scheduler_->run_until_idle();
  EXPECT_EQ(seen, (std::vector<detail::TimelineState*>{nullptr, one.state, one.state, nullptr}))
      << "the last is by a timer, which is for nothing";
  actor.tell(Broken{}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(answer.get(), 7);
  EXPECT_EQ(one.active() + one.state->work().waiting, 0u);
}

TEST_F(ActorMessaging, AFailureThatNobodyWaitsForIsTold) {
  std::vector<Error> entered;
  detail::set_error_account([&](Error error, detail::Heard) {
    entered.push_back(error);
    return error;
  });
  std::vector<detail::TimelineState*> seen;
  const auto actor = system_.spawn<Errands>({.name = "errands"}, &seen);
  const auto known = system_.spawn<Errands>(
      {.name = "known", .supervision = {.decider = [](const Error&) { return Directive::resume; }}},
      &seen);
  actor.tell(Broken{}).take();
  known.tell(Broken{}).take();
  scheduler_->run_until_idle();
  ASSERT_EQ(entered.size(), 1u) << "a decider of the program's has been told";
  EXPECT_EQ(entered[0].code, Errc::io);
  EXPECT_EQ(entered[0].message, "actor 'errands' has failed: a broken file");
  (void)clerk_.ask(Parse{""}, 1s);
  scheduler_->run_until_idle();
  EXPECT_EQ(entered.size(), 2u) << "an answer that its asker may drop";
  detail::set_error_account(nullptr);
}

}  // namespace
}  // namespace troupe
