// Councils of many keepers on a simulated network: keepers that die, cables that are cut, and what
// must never be.
#include "keeper/council.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace troupe::keeper {
namespace {

using std::chrono::milliseconds;

constexpr auto kSilence = milliseconds(1000), kWait = milliseconds(200);

/// All keepers of a job.
class Job {
 public:
  Job(int ranks, int spares, std::uint64_t seed, int refuges = 0)
      : ranks_(ranks), refuges_(refuges), random_(seed) {
    const int places = ranks + spares + refuges;
    for (int place = 0; place < places; ++place)
      keepers_.push_back(std::make_unique<Keeper>(*this, place, places));
    for (auto& keeper : keepers_) keeper->council.begin(now_);
    for (int place = 0; place < ranks; ++place)
      at(place).council.set_state(RankState::replaceable, 0, now_);
  }

  struct Keeper : Council::Actions {
    Keeper(Job& its_job, int its_place, int places)
        : job(its_job),
          place(its_place),
          rank(its_place < its_job.ranks_ ? its_place : -1),
          council({.place = its_place,
                   .places = places,
                   .ranks = its_job.ranks_,
                   .refuges = its_job.refuges_,
                   .silence = kSilence,
                   .wait = kWait},
                  *this) {}
    void send(int to, const CouncilMessage& message) override { job.send(place, to, message); }
    void seat(const Roster& roster) override {
      job.note(roster);
      const int mine = roster.rank_at(place);
      if (std::exchange(rank, mine) == mine) return;
      council.set_state(mine >= 0 ? RankState::replaceable : RankState::none, 0, job.now_);
    }
    void keep_rank() override { ++kept; }
    void all_have_ended(int its_status) override { ended = true, status = its_status; }
    void end(int its_status, const std::string&, Ending) override {
      ended = true, status = its_status;
    }

    Job& job;
    int place, rank;
    Council council;
    bool dead = false, ended = false;
    int status = -1, kept = 0;
  };

  Keeper& at(int place) { return *keepers_[static_cast<std::size_t>(place)]; }
  int places() const { return static_cast<int>(keepers_.size()); }
  bool goes_on(int place) { return !at(place).dead && !at(place).ended; }

  /// The process is gone: the others' connections with it end.
  void kill(int place) {
    at(place).dead = true;
    for (int other = 0; other < places(); ++other) {
      if (other == place || !is_connected(place, other)) continue;
      if (random_() % 2 == 0) lines_.erase({place, other});  // what it has said last is lost
      close(place, other);
    }
  }
  /// Nothing passes between these places and the others; they are told nothing.
  void cut(std::set<int> side) { side_ = std::move(side); }
  void heal() {
    side_.clear();
    for (auto& [ends, line] : lines_) {
      // Messages that were sent meanwhile come late, or the connection is broken.
      if (line.empty() || random_() % 2 == 0) continue;
      line.clear();
      at(ends.second).council.closed(ends.first, now_);
    }
  }
  void run(std::chrono::nanoseconds time) {
    for (const auto end = now_ + time; now_ < end; now_ += milliseconds(1)) step();
  }
  /// The keepers that lead, of those that go on.
  std::vector<int> leaders() {
    std::vector<int> found;
    for (int place = 0; place < places(); ++place) {
      if (goes_on(place) && at(place).council.leads()) found.push_back(place);
    }
    return found;
  }
  std::mt19937_64& random() { return random_; }
  TimePoint now() const { return now_; }
  const Roster& newest() const { return rosters_.rbegin()->second; }

 private:
  struct Letter {
    TimePoint due;
    std::vector<std::byte> bytes;
  };

  bool is_connected(int a, int b) const { return side_.contains(a) == side_.contains(b); }
  void close(int dead, int other) {
    lines_.erase({other, dead});
    closings_.push_back({now_ + milliseconds(5 + random_() % 20), {dead, other}});
  }
  void send(int from, int to, const CouncilMessage& message) {
    if (at(from).dead) return;
    if (at(to).dead || at(to).ended) {
      if (is_connected(from, to)) close(to, from);
      return;
    }
    auto& line = lines_[{from, to}];
    auto due = now_ + milliseconds(random_() % 5);
    if (!line.empty()) due = std::max(due, line.back().due);
    line.push_back({due, encode(message)});
  }
  void step() {
    for (auto& keeper : keepers_) {
      if (goes_on(keeper->place) && now_ >= next_tick_[keeper->place]) {
        next_tick_[keeper->place] = now_ + keeper->council.tick_every();
        keeper->council.tick(now_);
      }
    }
    while (!closings_.empty() && closings_.front().first <= now_) {
      const auto [dead, other] = closings_.front().second;
      closings_.pop_front();
      if (goes_on(other)) at(other).council.closed(dead, now_);
    }
    std::vector<std::pair<int, int>> ready;
    for (const auto& [ends, line] : lines_) {
      if (!line.empty() && line.front().due <= now_ && is_connected(ends.first, ends.second))
        ready.push_back(ends);
    }
    std::shuffle(ready.begin(), ready.end(), random_);
    for (const auto& ends : ready) {
      auto& line = lines_[ends];
      while (!line.empty() && line.front().due <= now_) {
        const auto letter = std::move(line.front());
        line.pop_front();
        if (!goes_on(ends.second)) break;
        auto decoded = decode_council_message(letter.bytes, places(), ranks_);
        ASSERT_TRUE(decoded.ok()) << static_cast<int>(letter.bytes[0]);
        at(ends.second).council.receive(ends.first, *decoded, now_);
      }
    }
  }
  /// Some keeper goes by this roster.
  void note(const Roster& roster) {
    const auto [known, is_new] = rosters_.emplace(std::pair(roster.term, roster.number), roster);
    if (!is_new) {
      ASSERT_TRUE(known->second.says_the_same_as(roster)) << "two rosters of one number";
      return;
    }
    // Each says what those before it have said, and more.
    const Roster* before = nullptr;
    for (const auto& [number, one] : rosters_) {
      if (before != nullptr) {
        for (std::size_t rank = 0; rank < one.seats.size(); ++rank) {
          const auto &was = before->seats[rank], &is = one.seats[rank];
          ASSERT_LE(was.moves, is.moves) << "rank " << rank;
          if (was.moves != is.moves) continue;
          ASSERT_EQ(was.place, is.place) << "two places of rank " << rank;
        }
        ASSERT_TRUE(std::includes(one.lost.begin(), one.lost.end(), before->lost.begin(),
                                  before->lost.end()));
      }
      std::set<int> used;
      for (const auto& seat : one.seats) ASSERT_TRUE(used.insert(seat.place).second);
      before = &one;
    }
  }

  int ranks_, refuges_;
  std::mt19937_64 random_;
  TimePoint now_{milliseconds(1)};
  std::vector<std::unique_ptr<Keeper>> keepers_;
  std::map<int, TimePoint> next_tick_;
  std::map<std::pair<int, int>, std::deque<Letter>> lines_;
  std::deque<std::pair<TimePoint, std::pair<int, int>>> closings_;
  std::set<int> side_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, Roster> rosters_;
};

constexpr auto kSettled = 3 * (kSilence + kWait);

TEST(Council, TheLowestLeads) {
  for (const int ranks : {1, 2, 5}) {
    Job job(ranks, 0, 1);
    job.run(kWait);
    EXPECT_EQ(job.leaders(), std::vector<int>{0});
    EXPECT_TRUE(job.at(0).council.roster().replaceable);
    for (const auto& seat : job.at(0).council.roster().seats) EXPECT_EQ(seat.moves, 0u);
  }
}

TEST(Council, ADeadPlacesRankGoesToASpareOne) {
  for (int dead = 0; dead < 4; ++dead) {
    SCOPED_TRACE(dead);
    Job job(4, 2, 3);
    job.run(kWait);
    job.kill(dead);
    job.run(kSettled);
    EXPECT_EQ(job.newest().lost, std::vector<std::int32_t>{dead});
    EXPECT_EQ(job.newest().seats[static_cast<std::size_t>(dead)], (Seat{4, 1, 1}));
    job.kill(4);
    job.run(kSettled);
    EXPECT_EQ(job.newest().seats[static_cast<std::size_t>(dead)], (Seat{5, 2, 2}));
    for (int place = 0; place < 6; ++place)
      EXPECT_EQ(job.goes_on(place), place != dead && place != 4);
  }
}

TEST(Council, ACutCableIsSilence) {
  Job job(3, 2, 5);
  job.run(kWait);
  job.cut({0});
  job.run(kSilence / 2);
  EXPECT_TRUE(job.newest().lost.empty());
  job.heal();
  job.run(kSettled);
  EXPECT_TRUE(job.newest().lost.empty()) << "the cable was in again in time";
  job.cut({0});
  job.run(kSettled);
  EXPECT_EQ(job.newest().seats[0], (Seat{3, 1, 1}));
  EXPECT_TRUE(job.at(0).ended);
  EXPECT_EQ(job.at(0).status, Council::kExitRequeue);
  job.heal();
  job.run(kSettled);
  EXPECT_EQ(job.leaders(), std::vector<int>{1});
}

TEST(Council, WhereNobodyIsSpareTheJobEnds) {
  Job job(3, 0, 7);
  job.run(kWait);
  job.kill(2);
  job.run(kSettled);
  for (const int place : {0, 1}) {
    EXPECT_TRUE(job.at(place).ended);
    EXPECT_EQ(job.at(place).status, Council::kExitRequeue);
  }
}

TEST(Council, ARankThatIsNotInTheWorldCannotBeReplaced) {
  for (const auto state : {RankState::starting, RankState::irreplaceable}) {
    Job job(3, 1, 9);
    job.at(1).council.set_state(state, 0, job.now());
    job.run(kWait);
    EXPECT_FALSE(job.at(0).council.roster().replaceable);
    job.kill(1);
    job.run(kSettled);
    EXPECT_TRUE(job.at(0).ended && job.at(2).ended && job.at(3).ended);
    EXPECT_EQ(job.at(0).status, Council::kExitRequeue);
  }
}

TEST(Council, OfTwoHalvesThatWithTheFirstPlaceGoesOn) {
  Job job(2, 2, 11);
  job.run(kWait);
  job.cut({0, 2});
  job.run(2 * kSettled);
  EXPECT_TRUE(job.goes_on(0) && job.goes_on(2));
  EXPECT_FALSE(job.goes_on(1) || job.goes_on(3));
  EXPECT_EQ(job.newest().seats[1], (Seat{2, 1, 1}));
}

TEST(Council, ARankWhosePlaceIsOfNoUseMoves) {
  for (const int place : {0, 1}) {
    Job job(2, 1, 13);
    job.run(kWait);
    job.at(place).council.release(job.now());
    job.run(kWait);
    EXPECT_EQ(job.newest().seats[static_cast<std::size_t>(place)], (Seat{2, 1, 1}));
    EXPECT_EQ(job.newest().spent, std::vector<std::int32_t>{place});
    EXPECT_TRUE(job.goes_on(place)) << "its keeper still votes";
    job.at(2).council.release(job.now());
    job.run(kWait);
    EXPECT_EQ(job.at(2).kept, 1) << "there is no other place";
  }
}

/// For a rank that is lost with its node; one whose GPU alone is lost can stay where it is.
TEST(Council, ARefugeIsTheLastResort) {
  Job job(3, 1, 21, 4);
  job.run(kWait);
  job.kill(2), job.kill(6);
  job.run(kSettled);
  EXPECT_EQ(job.newest().seats[2].place, 3) << "a spare place comes first";
  job.at(3).council.release(job.now());
  job.run(kWait);
  EXPECT_EQ(job.at(3).kept, 1);
  job.kill(1), job.kill(5);
  job.run(kSettled);
  EXPECT_EQ(job.newest().seats[1].place, 4);
  EXPECT_EQ(job.at(4).rank, 1);
  EXPECT_TRUE(job.goes_on(0));
}

TEST(Council, TheJobEndsWhenAllRanksHave) {
  Job job(3, 1, 15);
  job.run(kWait);
  const int statuses[] = {0, 3, 5};
  for (const int place : {2, 0, 1}) {
    EXPECT_FALSE(job.at(3).ended);
    job.at(place).council.set_state(RankState::ended, statuses[place], job.now());
    job.run(kWait);
  }
  for (int place = 0; place < 4; ++place) EXPECT_EQ(job.at(place).status, 3);
}

TEST(Council, AnAbortReachesAll) {
  for (const int from : {0, 2}) {
    Job job(3, 1, 17);
    job.run(kWait);
    job.at(from).council.abort(7, "why", job.now());
    job.run(kWait);
    for (int place = 0; place < 4; ++place) EXPECT_EQ(job.at(place).status, 7);
  }
}

/// Kills and cuts at random times. What must never be, Job::note() and its keepers look for; this
/// looks for what must be in the end.
TEST(Council, WhateverHappensOnePartAtMostGoesOn) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 5), spares = static_cast<int>(random() % 4);
    Job job(ranks, spares, seed);
    job.run(milliseconds(random() % 300));
    for (int event = 0; event < 6; ++event) {
      const auto place = static_cast<int>(random() % static_cast<std::uint64_t>(ranks + spares));
      switch (random() % 4) {
        case 0: job.kill(place); break;
        case 1: {
          std::set<int> side;
          for (int one = 0; one < ranks + spares; ++one) {
            if (random() % 2 == 0) side.insert(one);
          }
          job.cut(side);
          break;
        }
        case 2: job.heal(); break;
        default: job.at(place).council.release(job.now()); break;
      }
      job.run(milliseconds(random() % 3000));
      if (::testing::Test::HasFatalFailure()) return;
    }
    job.run(2 * kSettled);
    job.heal();
    job.run(2 * kSettled);
    EXPECT_LE(job.leaders().size(), 1u);
    if (job.leaders().empty()) {
      for (int place = 0; place < ranks + spares; ++place)
        EXPECT_FALSE(job.goes_on(place)) << place;
      continue;
    }
    const auto& roster = job.at(job.leaders().front()).council.roster();
    for (std::size_t rank = 0; rank < roster.seats.size(); ++rank) {
      auto& keeper = job.at(roster.seats[rank].place);
      EXPECT_TRUE(job.goes_on(keeper.place)) << keeper.place;
      EXPECT_EQ(keeper.rank, static_cast<int>(rank)) << "it knows";
    }
    for (int place = 0; place < ranks + spares; ++place)
      EXPECT_NE(job.goes_on(place), roster.is_lost(place)) << place;
  }
}

/// A keeper that was stopped for a while takes nobody for lost because of that.
TEST(Council, WhoWasAwayItselfBlamesNobody) {
  Job job(3, 1, 19);
  job.run(kWait);
  job.at(0).council.tick(job.now() + 10 * kSilence);
  EXPECT_TRUE(job.newest().lost.empty());
  EXPECT_TRUE(job.at(0).council.leads());
}

}  // namespace
}  // namespace troupe::keeper
