#include <atomic>
#include <mutex>

#include <troupe/actor.hpp>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

struct Number {
  int from;  ///< rank of the job
  int value;
};
struct Count {
  using Reply = std::vector<int>;  ///< of each rank of the job, how many numbers have come
  template <class Archive>
  void serialize(Archive&) {}
};
/// Adds up a buffer of another rank, or of this one.
struct AddUp {
  using Reply = double;
  GpuToken token;
};
struct Added {
  std::shared_ptr<Promise<double>> promise;
  Result<GpuRef<double>> copy;
};
struct WhoAreYou {
  using Reply = int;  ///< rank of the job
};

/// Of one rank: counts the numbers of each other one, which must come in order.
class Clerk : public Actor<Clerk, Number, Count, AddUp, Added, WhoAreYou> {
 public:
  Clerk(Runtime* runtime, int me, int ranks, std::chrono::microseconds pause)
      : runtime_(runtime), me_(me), pause_(pause), next_(static_cast<std::size_t>(ranks)) {}

  Result<void> on(Number number) {
    if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
    auto& next = next_[static_cast<std::size_t>(number.from)];
    if (number.value != next) {
      std::fprintf(stderr, "[job rank %d] number %d of rank %d came instead of %d\n", me_,
                   number.value, number.from, next);
      wrong_ = true;
    }
    ++next;
    return {};
  }
  Result<std::vector<int>> on(Count) {
    if (wrong_) return Error{Errc::internal, 0, "numbers came out of order"};
    return next_;
  }
  Future<double> on(const AddUp& question) {
    auto promise = std::make_shared<Promise<double>>();
    context().pipe(runtime_->world().fetch<double>(question.token),
                   [promise](const Result<GpuRef<double>>& copy) {
                     return Added{promise, copy};
                   });
    return promise->future();
  }
  void on(Added&& added) {
    if (!added.copy.ok()) return (void)added.promise->resolve(added.copy.error());
    double sum = 0;
    for (const double value : runtime_->device().download(*added.copy)) sum += value;
    added.promise->resolve(sum);
  }
  int on(WhoAreYou) { return me_; }

 private:
  Runtime* runtime_;
  int me_;
  std::chrono::microseconds pause_;
  std::vector<int> next_;
  bool wrong_ = false;
};

/// Published on all ranks by the time this returns.
ActorRef<Clerk> publish_clerk(Context& c, const std::string& name, std::size_t capacity = 256,
                              std::chrono::microseconds pause = 0us) {
  auto clerk = c.runtime().actors().spawn<Clerk>({.name = name, .mailbox_capacity = capacity},
                                                 &c.runtime(), c.rank(), c.size(), pause);
  c.require(c.world().publish(name, clerk).ok(), "an actor cannot be published");
  c.world().barrier();
  return clerk;
}

std::vector<RemoteActor<Clerk>> all_clerks(Context& c, const std::string& name) {
  std::vector<RemoteActor<Clerk>> clerks;
  for (int rank = 0; rank < c.size(); ++rank)
    clerks.push_back(c.world().actor<Clerk>(name, Rank(rank)));
  return clerks;
}

/// Once `sent` numbers of each rank are there.
bool all_have_come(const std::vector<RemoteActor<Clerk>>& clerks, int sent) {
  const auto end = Clock::now() + kDeadline;
  for (const auto& clerk : clerks) {
    for (;;) {
      const auto counts = clerk.ask(Count{}, kDeadline).get();
      if (std::all_of(counts.begin(), counts.end(), [&](int count) { return count == sent; }))
        break;
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(1ms);
    }
  }
  return true;
}

}  // namespace

/// Messages of all ranks to all actors: in order, none lost or twice, however slow the actor.
TROUPE_MPI_CASE(actors) {
  constexpr int kNumbers = 3000;
  const auto clerk = publish_clerk(c, "clerk");
  const auto slow = publish_clerk(c, "slow", 4, 20us);
  const auto clerks = all_clerks(c, "clerk"), slow_ones = all_clerks(c, "slow");
  for (int i = 0; i < kNumbers; ++i)
    for (const auto& other : clerks)
      c.require(tell_patiently(other, Number{c.rank(), i}).ok(), "a message cannot be told");
  std::uint64_t full = 0;
  for (int i = 0; i < kNumbers; ++i) {
    while (true) {
      const auto told = slow_ones[0].tell(Number{c.rank(), i});
      if (told.ok()) break;
      c.require_equal(told.code(), Errc::would_block, "a message to a slow actor cannot be told");
      ++full;
      std::this_thread::yield();
    }
  }
  c.expect(full > 0, "an actor that takes 20 us for each message is never behind");
  c.expect(all_have_come(clerks, kNumbers), "numbers are missing");
  c.expect(all_have_come({slow_ones[0]}, kNumbers), "numbers to the slow actor are missing");
  for (int rank = 0; rank < c.size(); ++rank)
    c.expect_equal(clerks[static_cast<std::size_t>(rank)].ask(WhoAreYou{}, kDeadline).get(), rank,
                   "it is another rank's actor");

  // What a token names goes from device to device.
  auto mine = c.device().alloc<double>(1000);
  c.device().fill(mine, c.rank() + 1.0);
  const auto& next = clerks[static_cast<std::size_t>((c.rank() + 1) % c.size())];
  c.expect_equal(next.ask(AddUp{mine.token()}, kDeadline).get(), 1000 * (c.rank() + 1.0),
                 "a sum over a token's buffer is wrong");
  auto gone = mine.token();
  gone.generation += 7;
  c.expect_equal(next.ask(AddUp{gone}, kDeadline).wait().code(), Errc::stale,
                 "a token that names nothing does not say so");
  (void)c.device().take_error();
  c.world().barrier();
  (void)c.device().take_error();  // that of the fetch which this rank's actor tried

  // Actors that there are not.
  const auto nobody = c.world().actor<Clerk>("nobody", Rank(c.size() - 1));
  c.expect_equal(nobody.ask(WhoAreYou{}, kDeadline).wait().code(), Errc::invalid,
                 "there is an actor 'nobody'");
  c.expect(nobody.tell(Number{c.rank(), 0}).ok(), "a message cannot be told");
  (void)nobody.ask(WhoAreYou{}, kDeadline).wait();  // the answer comes behind the refusal
  const auto unread = c.device().unread_errors();
  c.expect(unread.count == 1 && unread.first.code == Errc::invalid &&
               unread.first.message.find("'nobody'") != std::string::npos,
           "a message that was not delivered is no unread error");
  const auto error = c.device().take_error();
  c.expect(!error.ok() && error.code() == Errc::invalid,
           "a message that was not delivered is not told");
  c.expect_equal(c.world().actor<Clerk>("clerk", Rank(c.size())).tell(Number{0, 0}).code(),
                 Errc::peer_lost, "there is an actor of a rank that there is not");
  clerk.stop();
  clerk.wait_ended();
  c.world().barrier();
  c.expect(next.tell(Number{c.rank(), kNumbers}).ok(), "a message cannot be told");
  c.expect_equal(next.ask(WhoAreYou{}, kDeadline).wait().code(), Errc::stopped,
                 "an actor that has ended answers");
  c.expect_equal(c.device().take_error().code(), Errc::invalid,
                 "a message to an actor that has ended is not told");
}

/// Actors have nothing to do with epochs: while device hosts die and the world is re-formed they go
/// on, and nothing of what they tell each other is lost.
TROUPE_MPI_CASE(actor_faults) {
  constexpr int kRounds = 4;
  publish_clerk(c, "clerk");
  const auto clerks = all_clerks(c, "clerk");
  std::atomic<bool> stop{false};
  std::atomic<int> sent{0}, unanswered{0};
  std::thread talker([&, me = c.rank()] {
    for (int i = 0; !stop; ++i) {
      for (const auto& clerk : clerks)
        if (!tell_patiently(clerk, Number{me, i}).ok()) ++unanswered;
      for (const auto& clerk : clerks)
        if (!clerk.ask(WhoAreYou{}, kDeadline).wait().ok()) ++unanswered;
      sent = i + 1;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    const auto before = c.world().recoveries().size();
    const int at = sent;
    c.world().barrier();
    if (c.rank() == round % c.size()) c.device().inject(memory::FaultKind::kill);
    c.require(settle(c, before + 1), "the world does not come back");
    c.require(eventually([&] { return sent > at; }), "the actors do not go on");
    (void)c.device().take_error();
  }
  stop = true;
  talker.join();
  // All send as many, so that each can count.
  const auto rounds = c.world().gather_values<int>(sent);
  const int total = *std::max_element(rounds.begin(), rounds.end());
  for (int i = sent; i < total; ++i)
    for (const auto& clerk : clerks) (void)tell_patiently(clerk, Number{c.rank(), i});
  c.expect_equal(unanswered, 0, std::to_string(unanswered) + " messages failed");
  c.expect(all_have_come(clerks, total), "numbers are missing");
  c.expect_equal(c.device().unread_errors().count, 0, "an error of actors is unread");
  c.report("rank 0: " + std::to_string(total) + " rounds of messages in " +
           std::to_string(kRounds) + " recoveries");
  c.world().barrier();
}

/// A rank is lost, and comes back: others' messages to it are refused meanwhile, and the actors of
/// all others stay who they were, whatever their rank is now.
TROUPE_MPI_CASE(actor_members) {
  const int me = c.rank(), all = c.size(), victim = 1;
  publish_clerk(c, "clerk");
  const auto clerks = all_clerks(c, "clerk");
  for (const auto& clerk : clerks)
    c.require(tell_patiently(clerk, Number{me, 0}).ok(), "a message cannot be told");
  c.require(all_have_come(clerks, 1), "numbers are missing");
  const auto end_of_lost = clerks[victim].ended(), end_of_other = clerks[2].ended();
  c.world().barrier();
  if (me == victim) c.device().inject(memory::FaultKind::kill);
  const auto end = Clock::now() + kDeadline;
  const auto until = [&](const auto& condition) {
    while (!condition() && Clock::now() < end) {
      std::this_thread::sleep_for(1ms);
      (void)c.world().wait_active();
    }
    return condition();
  };
  const bool comes_back = c.runtime().config().duration("rejoin-after").count() > 0;
  const auto& lost = clerks[victim];
  const auto is_lost = [&](const auto& clerk) {
    return clerk.tell(Number{me, 1}).code() == Errc::peer_lost;
  };
  if (!comes_back) {
    c.require(until([&] { return c.world().spectator() || c.size() == all - 1; }),
              "the loss goes unnoticed");
    if (me == victim) {
      c.expect(is_lost(clerks[0]), "the others are not gone for a spectator");
      c.expect_equal(clerks[victim].ask(WhoAreYou{}, kDeadline).get(), victim,
                     "a spectator has not its own actors");
      (void)c.device().take_error();
      return;
    }
    c.expect(is_lost(lost), "a message to a lost rank is not refused");
    c.require(end_of_lost.wait_for(kDeadline), "the end of a lost rank's actor is not told");
    c.expect_equal(end_of_lost.wait().code(), Errc::peer_lost, "it has not ended with its rank");
    c.expect(!end_of_other.ready(), "an actor that goes on is said to have ended");
    c.expect_equal(lost.ask(WhoAreYou{}, kDeadline).wait().code(), Errc::peer_lost,
                   "a question to a lost rank is not refused");
    for (int rank = 0; rank < all; ++rank) {
      if (rank == victim) continue;
      c.expect_equal(clerks[static_cast<std::size_t>(rank)].ask(WhoAreYou{}, kDeadline).get(), rank,
                     "an actor that was found before the loss is another one now");
      const int now = rank < victim ? rank : rank - 1;
      c.expect_equal(c.world().actor<Clerk>("clerk", Rank(now)).ask(WhoAreYou{}, kDeadline).get(),
                     rank, "a rank of now is not the one of now");
    }
    (void)c.device().take_error();
    c.world().barrier();
    return;
  }
  const auto is_back = [&] {
    const auto list = c.world().recoveries();
    return std::any_of(list.begin(), list.end(), [](const auto& r) { return r.kind == "rejoin"; });
  };
  c.require(until(is_back), "the lost rank does not come back");
  c.require(settle(c, 2), "the world is not whole again");
  (void)c.device().take_error();
  for (int rank = 0; rank < all; ++rank)
    c.expect_equal(clerks[static_cast<std::size_t>(rank)].ask(WhoAreYou{}, kDeadline).get(), rank,
                   "an actor does not answer again");
  c.world().barrier();
}

}  // namespace troupe::test
