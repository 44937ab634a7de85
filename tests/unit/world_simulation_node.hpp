#pragma once

#include <algorithm>
#include <cstdio>
#include <set>

#include "world_simulation.hpp"

namespace troupe::rank_process {

/// One rank: its device host, its program, and the real member of the protocol.
class WorldSimulation::Node final : public FollowerActions {
 public:
  using Order = DeviceDone::Order;

  Node(WorldSimulation* world, int rank)
      : world_(world),
        rank_(rank),
        member_(rank, this),
        relay_(
            {.rank = rank, .tree = {.size = world->options_.ranks, .radix = world->options_.radix}},
            [world, rank](int to, const RankMessage& m) { world->rise(rank, to, m); },
            [world, rank](int to, const SupervisorMessage& m) { world->send(rank, to, m); },
            [this](const SupervisorMessage& m) { member_.receive(m); }) {}

  // What the protocol orders.
  void send(const RankMessage& message) override { relay_.up(message); }
  void close_world() override { accepting_ = false; }
  void order(DeviceOrder order) override;
  void lose_standby();
  void verify(std::uint32_t round, std::uint32_t epoch) override;
  void regroup(std::uint32_t round) override;
  void await_group(std::uint32_t round);
  void restore(std::uint32_t round, std::int64_t step) override;
  void activate(const from_supervisor::Activate& activate) override;
  [[nodiscard]] Keeping keeping() const override { return {}; }
  void stopping(std::int64_t since) override;
  void stable(std::int64_t step) override;
  void all_finished(std::int64_t step) override;
  void retire() override;
  void strike(Phase phase) override;
  void pass_on(const SupervisorMessage& message) override;

  // Faults.
  void die(const char* kind);
  void break_communicator();
  void ask_to_stop() { member_.ask_to_stop(); }
  /// For good, or until revive().
  void fail(const Error& error);
  /// Asks again and again that the world go on without it.
  void withdraw();
  /// Its GPU says so.
  void say(const HealthEvent& event) { member_.device_event(DeviceHealth{event}); }
  /// A spectator's device host is there again; one that is not yet a spectator waits.
  void revive();
  [[nodiscard]] bool missing() const { return !alive_ && !member_.spectator(); }
  void mute() { muted_ = true; }

  [[nodiscard]] bool settled() const;

  WorldSimulation* world_;
  int rank_;
  WorldFollower member_;
  WorldRelay relay_;
  std::optional<Error> stopped_;
  std::optional<Error> failed_;         ///< the device is given up
  std::vector<HealthEvent> told_;       ///< of all ranks
  std::vector<std::int32_t> excluded_;  ///< of the epoch before
  bool alive_ = true, detected_ = false, connected_ = false, broken_ = false, muted_ = false,
       accepting_ = false;
  std::uint32_t incarnation_ = 1;  ///< of the device host
  std::uint64_t device_work_ = 0;  ///< changes when what is under way is dropped
  bool standby_ = false;
  std::uint32_t standby_formation_ = 0;  ///< whose communicator it has
  std::uint64_t standby_work_ = 0;
  std::uint32_t open_order_ = 0;  ///< round of the newest order
  std::uint32_t grouped_in_ = 0;  ///< the round of the newest regroup()
  std::uint32_t replacing_ = 0;   ///< round of an unanswered replace
  std::set<std::uint32_t> halted_, quiesced_, replaced_, formed_, verified_;  ///< in which rounds
  std::uint32_t epoch_ = 0;
  std::int64_t halves_[2] = {-1, -1};  ///< the program's A/B pair
  int current_ = 1;
  std::int64_t complete_ = -1;     ///< its newest commit that is complete
  std::int64_t flushed_ = -1;      ///< the newest commit before which its requests are said done
  std::int64_t all_flushed_ = -1;  ///< … and those of all
  std::int64_t stable_ = -1;
  std::optional<std::int64_t> stopping_since_;
  std::int64_t end_step_ = INT64_MAX;  ///< the commit with which a run ends that was asked to
  bool finishing_ = false;
  int runs_ = 0;

 private:
  template <class Rule>
  void everyone(Rule rule, const char* what) {
    for (const auto& node : world_->nodes_) {
      if (!node->member_.spectator() && !rule(*node))
        world_->violation("rank " + std::to_string(rank_) + ": " + what);
    }
  }
  // What orders are.
  void halt(std::uint32_t round);
  void quiesce(std::uint32_t round);
  void replace(std::uint32_t round);
  void promote(std::uint32_t round, std::uint32_t formation);
  void contribute(std::uint32_t round);
  void connect(std::uint32_t round, const DeviceOrder::Blobs& contributions);
  void prepare_contribute(std::uint32_t formation);
  void prepare_connect(std::uint32_t formation, const DeviceOrder::Blobs& contributions);
  // What is passed on.
  void on(const from_supervisor::AllFlushed& flushed);
  void on(const from_supervisor::Inquire& inquire);
  void on(const from_supervisor::HealthTold& told) { told_.push_back(told.event); }
  void on(const from_supervisor::Stop& stop) { stopped_ = stop.error; }

  /// With other members the program begins its run again.
  void start_anew();
  void begin(std::uint32_t round);
  [[nodiscard]] int first_member() const;
  /// What the device does next, unless it dies or is stopped before.
  void work(std::uint32_t limit_us, std::function<void()> then);
  void standby_work(std::uint32_t limit_us, std::function<void()> then);
  void raise_standby();
  void done(Order what, std::uint32_t round);
  /// What was ordered in an earlier round may still be answered, by a helper that was at it.
  void answer_late(std::uint32_t round);
  /// A new device host takes the place of a dead one.
  void raise();
  void replaced();

  // The program, as World::run and Checkpoint have it.
  void continue_program();
  void roll_back(std::uint32_t round, std::int64_t step);
};

template <class Rule>
bool WorldSimulation::anyone(Rule rule) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return rule(*node); });
}

template <class... Parts>
void WorldSimulation::trace(const char* format, Parts... parts) const {
  if (!options_.trace) return;
  std::printf("%10.3f ms  ", to_ms(now_));
  std::printf(format, parts...);
  std::printf("\n");
}

}  // namespace troupe::rank_process
