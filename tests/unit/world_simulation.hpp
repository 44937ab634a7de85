#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rank/protocol/follower.hpp"
#include "rank/protocol/inquiry.hpp"
#include "rank/protocol/relay.hpp"
#include "rank/protocol/supervisor.hpp"
#include "simulated_network.hpp"

/// A seeded world in one thread: the real protocol, simulated devices and programs, random delays,
/// faults where chance or the test has them. What must hold at every moment is checked at every
/// moment.
///
/// Model: a device dies and its death is detected a while later; its peers may notice broken
/// communicators. Messages of a pair of ranks keep their order. A program commits step after step
/// as World::run does, in the halves of an A/B pair, and its commits are told to the member late.
namespace troupe::rank_process {

using Micros = std::chrono::microseconds;

class WorldSimulation {
 public:
  struct Options {
    std::uint32_t seed = 1;
    int ranks = 4;
    int radix = 2;                           ///< of the tree
    SimulatedNetwork::Conditions network{};  ///< the devices of slow ranks are slow too
    bool trace = false;
    int max_rounds = 1000;
    bool shrink = false;
    bool one_root = false;  ///< only the first member contributes to a communicator, as NCCL has it
    std::int64_t last_step = 6;  ///< each run ends with the commit of this step
  };

  explicit WorldSimulation(const Options& options);
  ~WorldSimulation();

  // Faults. Times from now.
  void kill_at(Micros when, int rank);
  void break_communicator_at(Micros when, int rank);
  void lose_standby_at(Micros when, int rank);
  void kill_in_phase(int rank, Phase phase) { struck_.emplace_back(rank, phase); }
  void fail_at(Micros when, int rank, const Error& error);
  void revive_at(Micros when, int rank);
  /// From then on the rank asks that the world go on without it.
  void withdraw_at(Micros when, int rank);
  void say_at(Micros when, int rank, const HealthEvent& event);
  /// What this rank has been told of the health of all.
  [[nodiscard]] const std::vector<HealthEvent>& told(int rank) const;
  [[nodiscard]] int spectators() const;
  /// The rank asks for the end of the run.
  void ask_to_stop_at(Micros when, int rank);
  /// From now on the rank's device answers no order.
  void mute(int rank);
  /// The rank makes no progress, and says so.
  void stall_at(Micros when, int rank);
  [[nodiscard]] const std::vector<Inquiry::Finding>& findings() const { return findings_; }

  /// Lets time pass until `until` holds; false if the world did not get there within bounds or
  /// broke a rule.
  bool run(const std::function<bool()>& until);
  /// Every rank is active in one epoch with a live device and an unbroken communicator, and no
  /// order is open.
  [[nodiscard]] bool settled() const;
  [[nodiscard]] bool all_stopped() const;
  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] int runs_finished() const { return runs_finished_; }
  /// The step with which the run before ended.
  [[nodiscard]] std::int64_t last_end() const { return last_end_; }
  [[nodiscard]] Error stop_of(int rank) const;
  [[nodiscard]] const SimulatedNetwork& network() const { return network_; }
  [[nodiscard]] const WorldSupervisor& supervisor() const { return *supervisor_; }
  [[nodiscard]] const std::vector<Recovery>& reports() const { return reports_; }

 private:
  class Node;
  struct Event {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> run;
    friend bool operator>(const Event& a, const Event& b) {
      return std::pair(a.at, a.order) > std::pair(b.at, b.order);
    }
  };

  void after(std::chrono::nanoseconds delay, std::function<void()> run);
  Micros some_time(std::uint32_t limit_us) { return Micros(1 + random_() % limit_us); }
  bool chance(std::uint32_t percent) { return random_() % 100 < percent; }
  void announce(const SupervisorMessage& message);
  // Check a message of the supervisor that must hold for every rank.
  void judge(const from_supervisor::AllFlushed& flushed);
  void judge(const from_supervisor::Stable& stable);
  void judge(const from_supervisor::AllFinished& ended);
  void judge(const from_supervisor::Activate& activate);
  template <class Other>
  void judge(const Other&) {}
  void rise(int from, int to, const RankMessage& message);
  void send(int from, int to, const WorldMessage& message);
  void violation(const std::string& what);
  template <class Rule>
  bool anyone(Rule rule) const;
  void tick();
  template <class... Parts>
  void trace(const char* format, Parts... parts) const;

  Options options_;
  std::mt19937 random_;
  TimePoint now_{};
  std::uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::unique_ptr<WorldSupervisor> supervisor_;
  std::unique_ptr<Inquiry> inquiry_;
  std::vector<Inquiry::Finding> findings_;
  SimulatedNetwork network_;
  std::vector<std::pair<int, Phase>> struck_;
  std::uint32_t last_epoch_ = 0;
  int runs_finished_ = 0;
  std::int64_t last_end_ = -1;
  bool broken_ = false;
  std::vector<Recovery> reports_;
};

}  // namespace troupe::rank_process
