// Ranks whose processes die, and come back, in a seeded simulator: the real leadership, supervisor,
// followers and relays; devices and programs that do at once, or a little later, what is ordered.
#include "rank/protocol/leadership.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "random_cases.hpp"
#include "rank/protocol/follower.hpp"
#include "rank/protocol/relay.hpp"
#include "rank/protocol/supervisor.hpp"

namespace troupe::rank_process {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A job of ranks. Each rank has a process, or none for a moment.
class Job {
 public:
  Job(int ranks, std::uint64_t seed) : random_(seed), processes_(static_cast<std::size_t>(ranks)) {
    incarnations_.assign(static_cast<std::size_t>(ranks), 0);
    for (int rank = 0; rank < ranks; ++rank) start(rank);
  }

  [[nodiscard]] int size() const { return static_cast<int>(processes_.size()); }
  std::mt19937_64& random() { return random_; }

  /// The process dies, and another one starts a while later.
  void kill(int rank) {
    auto& process = processes_[static_cast<std::size_t>(rank)];
    if (!process) return;
    process.reset();
    ++incarnations_[static_cast<std::size_t>(rank)];
    after(some_time(40'000), [this, rank] { start(rank); });
  }
  /// The first process of the rank that is ordered to do this dies of it.
  void kill_in(int rank, Phase phase) { struck_.emplace(rank, phase); }

  void run(std::chrono::nanoseconds time) {
    const auto end = now_ + time;
    while (!::testing::Test::HasFailure()) {
      if (events_.empty() || events_.begin()->first.first > end) break;
      auto event = std::move(*events_.begin());
      events_.erase(events_.begin());
      now_ = event.first.first;
      event.second();
    }
    now_ = end;
  }
  /// Until the world is whole, and for a while more; some phases may outlast their deadlines first.
  void run_until_whole() {
    for (int seconds = 0; seconds < 400 && !is_whole(); ++seconds) run(std::chrono::seconds(1));
    run(std::chrono::seconds(2));
  }
  [[nodiscard]] bool is_whole() const {
    return std::all_of(processes_.begin(), processes_.end(), [&](const auto& process) {
      return process && process->member.phase() == Phase::active && processes_[0] &&
             process->member.epoch() == processes_[0]->member.epoch();
    });
  }
  /// All processes are in one world.
  void expect_whole() {
    std::set<std::uint32_t> epochs;
    std::set<int> leaders;
    for (int rank = 0; rank < size(); ++rank) {
      const auto& process = processes_[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(process) << rank;
      EXPECT_EQ(process->member.phase(), Phase::active) << rank;
      EXPECT_FALSE(process->stopped) << rank << ": " << process->stopped->message;
      epochs.insert(process->member.epoch());
      leaders.insert(process->leadership.leader());
      for (int other = 0; other < size(); ++other) {
        if (other == rank) continue;
        EXPECT_EQ(process->known[static_cast<std::size_t>(other)],
                  incarnations_[static_cast<std::size_t>(other)]);
      }
    }
    EXPECT_EQ(epochs.size(), 1u);
    EXPECT_EQ(leaders.size(), 1u);
    EXPECT_TRUE(processes_[static_cast<std::size_t>(*leaders.begin())]->supervisor);
  }
  [[nodiscard]] int leader() const { return processes_[0]->leadership.leader(); }
  [[nodiscard]] std::uint32_t epoch() const { return processes_[0]->member.epoch(); }

 private:
  struct Process final : FollowerActions, Leadership::Actions {
    Process(Job& its_job, int its_rank, std::uint32_t its_incarnation)
        : job(its_job),
          rank(its_rank),
          incarnation(its_incarnation),
          known(static_cast<std::size_t>(its_job.size()),
                its_incarnation == 0 ? 0 : Leadership::kUnknown),
          leadership(its_rank, its_job.size(), its_incarnation, this),
          member(its_rank, this, its_incarnation > 0),
          relay(
              {.rank = its_rank, .tree = {.size = its_job.size(), .radix = 2}},
              [this](int to, const RankMessage& said) {
                if (to != WorldRelay::kToSupervisor) return job.send(*this, to, said);
                if (supervisor) return supervisor->receive(said, job.now_);
                job.send(*this, leadership.leader(), ForLeader{said});
              },
              [this](int to, const SupervisorMessage& said) { job.send(*this, to, said); },
              [this](const SupervisorMessage& said) { member.receive(said); }) {}

    void make_supervisor() {
      supervisor = std::make_unique<WorldSupervisor>(
          WorldSupervisor::Options{.size = job.size(), .leader = rank},
          [this](const SupervisorMessage& said) { job.send(*this, 0, said); });
    }
    void hear(const WorldMessage& message) {
      if (const auto* const for_leader = std::get_if<ForLeader>(&message)) {
        if (supervisor) supervisor->receive(for_leader->said, job.now_);
      } else if (const auto* const said = std::get_if<RankMessage>(&message)) {
        if (const auto* const joined = std::get_if<from_rank::Joined>(said))
          return leadership.on(*joined);
        relay.up(*said);
      } else {
        const auto& told = std::get<SupervisorMessage>(message);
        if (const auto* const order = std::get_if<from_supervisor::Order>(&told)) {
          if (order->round < member.round()) return;
          if (!leadership.learn(*order)) return;
        }
        relay.down(told, job.now_);
      }
    }
    /// Calls f a little later, if the process lives then.
    template <class F>
    void later(std::uint64_t limit_us, F f) {
      job.after(job.some_time(limit_us),
                [&its_job = job, its_rank = rank, its_incarnation = incarnation, f = std::move(f)] {
                  if (its_job.lives(its_rank, its_incarnation)) f();
                });
    }

    // FollowerActions
    void send(const RankMessage& message) override { relay.up(message); }
    void close_world() override {}
    void order(DeviceOrder order) override {
      later(3000, [this, what = order.what, round = order.round] {
        member.device_event(DeviceDone{.order = what, .round = round});
      });
    }
    void verify(std::uint32_t round, std::uint32_t) override {
      later(1000, [this, round] { member.verified(round, {}); });
    }
    void regroup(std::uint32_t round) override { (void)member.regrouped(round); }
    void restore(std::uint32_t round, std::int64_t) override {
      later(5000, [this, round] { member.restored(round, {}, 0, 0); });
    }
    void activate(const from_supervisor::Activate& activate) override {
      job.judge(activate);
      rounds[activate.epoch] = activate.round;
      (void)leadership.settle();
    }
    [[nodiscard]] Keeping keeping() const override {
      return {.kept = incarnation > 0 ? kAnyStep : 10,
              .stable = incarnation > 0 ? -1 : 10,
              .runs_ended = 0};
    }
    void stable(std::int64_t) override {}
    void stopping(std::int64_t) override {}
    void all_finished(std::int64_t) override {}
    void retire() override {}
    void strike(Phase phase) override {
      if (job.struck_.erase({rank, phase}) > 0)
        job.after(microseconds(0), [&its_job = job, its_rank = rank] { its_job.kill(its_rank); });
    }
    void pass_on(const SupervisorMessage& message) override {
      if (const auto* const stop = std::get_if<from_supervisor::Stop>(&message))
        stopped = stop->error;
    }

    // Leadership::Actions
    [[nodiscard]] std::uint32_t incarnation_of(int other) const override {
      return known[static_cast<std::size_t>(other)];
    }
    bool learn(int other, std::uint32_t number) override {
      auto& before = known[static_cast<std::size_t>(other)];
      if (before != Leadership::kUnknown && number <= before) return false;
      before = number;
      return true;
    }
    void died(const from_rank::Joined&) override {}
    void send(int to, const from_rank::Joined& joined) override {
      job.send(*this, to, RankMessage(joined));
    }
    void follow(int) override {}
    void lead(const Heard& heard, const std::vector<Incarnation>& all,
              const std::vector<from_rank::Joined>& joined) override {
      make_supervisor();
      supervisor->take_over({.round = heard.round,
                             .epoch = heard.epoch,
                             .excluded = {},
                             .incarnations = all,
                             .joined = joined},
                            job.now_);
    }
    [[nodiscard]] std::uint32_t round() const override { return supervisor->round(); }
    void resign() override { supervisor.reset(); }
    void take_in(const from_rank::Joined& joined) override {
      supervisor->receive(joined, job.now_);
    }

    Job& job;
    int rank;
    std::uint32_t incarnation;
    std::vector<std::uint32_t> known;
    Leadership leadership;
    std::unique_ptr<WorldSupervisor> supervisor;
    WorldFollower member;
    WorldRelay relay;
    std::optional<Error> stopped;
    std::map<std::uint32_t, std::uint32_t> rounds;  ///< of the epochs that it has seen
  };

  microseconds some_time(std::uint64_t limit_us) { return microseconds(1 + random_() % limit_us); }
  void after(std::chrono::nanoseconds delay, std::function<void()> event) {
    events_.emplace(std::pair(now_ + delay, ++order_), std::move(event));
  }
  [[nodiscard]] bool lives(int rank, std::uint32_t incarnation) const {
    const auto& process = processes_[static_cast<std::size_t>(rank)];
    return process && process->incarnation == incarnation;
  }
  void start(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    processes_[index] = std::make_unique<Process>(*this, rank, incarnations_[index]);
    auto& process = *processes_[index];
    if (process.incarnation == 0 && rank == 0) {
      process.make_supervisor();
      process.later(1000, [&process, this] { process.supervisor->start(now_); });
    }
    process.later(20'000, [&process] { process.leadership.begin(); });
    tick(process);
  }
  void tick(Process& process) {
    process.later(100'000, [&process, this] {
      if (process.supervisor) process.supervisor->tick(now_);
      process.relay.tick(now_);
      tick(process);
    });
  }
  /// As links carry it: in order between two processes, to none but the one that it is meant for,
  /// and heard of none that is known to be dead.
  void send(Process& from, int to, const WorldMessage& message) {
    const auto wanted =
        to == from.rank ? from.incarnation : from.known[static_cast<std::size_t>(to)];
    auto& due = last_[{from.rank, from.incarnation, to}];
    due = std::max(due + microseconds(1), now_ + some_time(2000));
    after(due - now_, [this, bytes = encode(message), to, wanted, sender = from.rank,
                       number = from.incarnation] {
      const auto& process = processes_[static_cast<std::size_t>(to)];
      if (!process || (wanted != Leadership::kUnknown && wanted != process->incarnation)) return;
      const auto known = process->known[static_cast<std::size_t>(sender)];
      if (sender != to && known != Leadership::kUnknown && number < known) return;
      const auto decoded = decode_world_message(bytes);
      ASSERT_TRUE(decoded.ok());
      process->hear(*decoded);
    });
  }
  /// An epoch begins once for all that live: of two worlds each would have its own. Where all have
  /// died nobody knows which epochs there have been.
  void judge(const from_supervisor::Activate& activate) const {
    for (const auto& process : processes_) {
      if (!process) continue;
      const auto known = process->rounds.find(activate.epoch);
      if (known == process->rounds.end()) continue;
      EXPECT_EQ(known->second, activate.round) << "epoch " << activate.epoch << " begins twice";
    }
  }

  std::mt19937_64 random_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> events_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::uint32_t> incarnations_;
  std::map<std::tuple<int, std::uint32_t, int>, TimePoint> last_;
  std::set<std::pair<int, Phase>> struck_;
};

TEST(Leadership, RankZeroLeadsUntilItDies) {
  Job job(4, 1);
  job.run(milliseconds(200));
  job.expect_whole();
  EXPECT_EQ(job.leader(), 0);
  job.kill(2);
  job.run(milliseconds(500));
  job.expect_whole();
  EXPECT_EQ(job.leader(), 0);
  EXPECT_EQ(job.epoch(), 2u);
  job.kill(0);
  job.run(milliseconds(500));
  job.expect_whole();
  EXPECT_EQ(job.leader(), 1);
}

TEST(Leadership, TheLeaderMayDieInEachPhase) {
  for (std::uint32_t phase = 1; phase < kPhaseCount; ++phase) {
    for (const int victim : {0, 1, 3}) {
      SCOPED_TRACE(std::string(to_string(static_cast<Phase>(phase))) + " " +
                   std::to_string(victim));
      Job job(4, 10 + phase);
      job.run(milliseconds(200));
      job.kill(2);
      job.kill_in(victim, static_cast<Phase>(phase));
      job.run_until_whole();
      job.expect_whole();
    }
  }
}

TEST(Leadership, AllMayDieAtOnce) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Job job(2 + static_cast<int>(seed % 6), seed);
    job.run(milliseconds(200));
    for (int rank = 0; rank < job.size(); ++rank) job.kill(rank);
    job.run_until_whole();
    job.expect_whole();
    if (::testing::Test::HasFailure()) return;
  }
}

/// As many as a large machine has GPUs: the leader dies, its successor in the recovery, others with
/// them.
TEST(Leadership, OfThousandsOfRanks) {
  Job job(static_cast<int>(test::random_cases(4096)), 7);
  job.run(milliseconds(500));
  job.expect_whole();
  for (const int rank : {0, 17, job.size() / 2, job.size() - 1}) job.kill(rank);
  job.kill_in(1, Phase::form);
  job.run_until_whole();
  job.expect_whole();
}

TEST(Leadership, WhoeverDiesAndWheneverTheWorldBecomesWhole) {
  const std::uint64_t seeds = test::fewer_if_brief(1500);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(seed);
    Job job(2 + static_cast<int>(seed % 11), seed);
    job.run(milliseconds(200));
    auto& random = job.random();
    for (auto deaths = 1 + random() % 8; deaths > 0; --deaths) {
      job.kill(static_cast<int>(random() % static_cast<unsigned>(job.size())));
      if (random() % 3 == 0)
        job.kill_in(static_cast<int>(random() % static_cast<unsigned>(job.size())),
                    static_cast<Phase>(1 + random() % (kPhaseCount - 1)));
      job.run(microseconds(random() % 80'000));
    }
    job.run_until_whole();
    job.expect_whole();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace troupe::rank_process
