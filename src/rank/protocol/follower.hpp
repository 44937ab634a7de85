#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/core/one_of.hpp"
#include "rank/device/device_events.hpp"
#include "rank/device/device_order.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// What a member of the world can do: its device, its program, its line to the supervisor. All
/// return at once; what takes time comes back as a call to the member.
class FollowerActions {
 public:
  virtual ~FollowerActions() = default;
  virtual void send(const RankMessage& message) = 0;  ///< up, to the supervisor
  /// The program's collectives fail from now on (its every submission, if it runs under a
  /// checkpoint).
  virtual void close_world() = 0;
  /// What recovery.def orders of a device, with the number of the round, or of the standby's
  /// formation, and for connect the contributions by rank; the rest of the order is filled in by
  /// whoever gives it to the device. -> device_event
  virtual void order(DeviceOrder order) = 0;
  virtual void verify(std::uint32_t round, std::uint32_t epoch) = 0;  ///< -> verified
  /// The members of the next epoch are others than those of the last; comes before restore.
  virtual void regroup(std::uint32_t round) = 0;                     ///< -> regrouped
  virtual void restore(std::uint32_t round, std::int64_t step) = 0;  ///< -> restored
  virtual void activate(const from_supervisor::Activate& activate) = 0;
  /// The run's answers to the order to replace: Done::kept, stable, runs_ended.
  struct Keeping {
    std::int64_t kept = -1;
    std::int64_t stable = -1;
    std::int64_t runs_ended = 0;
  };
  [[nodiscard]] virtual Keeping keeping() const = 0;
  virtual void stable(std::int64_t step) = 0;
  /// The run is to end at the first commit after that of step `since`, -1: at the first one. Comes
  /// before the stable() of that step, on all ranks alike: a rank commits only once it knows its
  /// commit before to be stable, so all decide at the same commit.
  virtual void stopping(std::int64_t since) = 0;
  /// `step`: the last of the run; kAnyStep: it was left.
  virtual void all_finished(std::int64_t step) = 0;
  /// The world goes on without this rank, as it has asked for: its device is given up.
  virtual void retire() = 0;
  /// A fault that was ordered for this phase strikes now, if there is one.
  virtual void strike(Phase phase) = 0;
  /// A message that changes nothing in the protocol: it is for the rank's program.
  virtual void pass_on(const SupervisorMessage& message) = 0;
};

/// A rank's part in the protocol that WorldSupervisor drives. Pure, like it: see there.
class WorldFollower {
 public:
  /// True for messages that it acts on; others it passes on.
  template <class Kind>
  static constexpr bool kHears =
      kIsOneOf<Kind, from_supervisor::Order, from_supervisor::Prepare, from_supervisor::Activate,
               from_supervisor::Stable, from_supervisor::AllFinished>;

  /// `joins`: the rank was started in the place of one that has died; `in_refuge`: where there is
  /// no GPU for it.
  WorldFollower(int rank, FollowerActions* actions, bool joins = false, bool in_refuge = false)
      : rank_(rank), in_refuge_(in_refuge), actions_(actions), newest_(joins ? kAnyStep : -1) {}

  void receive(const SupervisorMessage& message);
  void device_event(const DeviceEvent& event);
  void verified(std::uint32_t round, const Result<void>& outcome);
  /// The group ordered in this round is made. False if another one is wanted by now.
  bool regrouped(std::uint32_t round);
  /// The program is back at the step that was ordered; `iteration` is the one it had been at.
  void restored(std::uint32_t round, const Result<void>& outcome, std::int64_t iteration,
                std::int64_t repeated);
  /// What this rank asked of others before the commit of this step is done.
  void flushed(std::int64_t step);
  /// `pace`: of the window that has ended with this commit, if one has.
  void committed(std::int64_t step, std::optional<RankPace> pace = {});
  /// This rank has ended its run with that step; kAnyStep: it has left it.
  void finished(std::int64_t step);
  void left(std::int64_t run, const Error& error);
  void ask_to_stop();
  /// Asks that the world go on without this rank. It is for the supervisor to grant.
  void withdraw();
  /// There is a group that this rank's standby has not formed; it forms the world's communicator
  /// anew if there is one to do so.
  void groups_changed(bool standby_ready);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::uint32_t round() const noexcept { return round_; }
  /// The spectators, in order, according to the newest order; see WorldSupervisor.
  [[nodiscard]] const std::vector<std::int32_t>& excluded() const noexcept { return excluded_; }
  [[nodiscard]] bool spectator() const noexcept { return spectator_; }

 private:
  /// What a spectator says so that nobody waits for it.
  void assent();
  void on(const from_supervisor::Order& order);
  void on(const from_supervisor::Prepare& order);
  void on(const from_supervisor::Activate& activate);
  void on(const from_supervisor::Stable& stable);
  void on(const from_supervisor::AllFinished& ended);
  /// Has the device carry out an order of this round; or, with a formation, its standby.
  void give(DeviceDone::Order what, std::uint32_t formation = 0,
            std::vector<std::vector<std::byte>> contributions = {});
  void restore();
  void prepared(const DeviceDone& event);
  void done(const DeviceDone& event);
  void report_done(from_rank::Done message = {});
  void report_fault(std::string kind, Error error, std::int64_t detect_us = 0);

  int rank_;
  bool in_refuge_;
  FollowerActions* actions_;
  Phase phase_ = Phase::replace;  ///< not active before the world is formed
  std::uint32_t round_ = 0;
  std::uint32_t epoch_ = 0;
  bool asked_iteration_ = false;    ///< by the order to restore
  std::int64_t restore_step_ = -1;  ///< the order's
  std::vector<std::int32_t> excluded_;
  /// What excluded_ was at the last regroup(); nullopt: of a spectator, which is in no group.
  std::optional<std::vector<std::int32_t>> grouped_ = std::vector<std::int32_t>();
  std::uint32_t regrouping_ = 0;  ///< the round of a regroup() that is not answered; 0: none
  bool spectator_ = false;
  bool stop_asked_ = false;   ///< by this rank: who leads next is to hear of it, too
  bool withdrawing_ = false;  ///< this rank has asked to be a spectator
  std::int64_t newest_;       ///< the newest commit that is complete here
};

}  // namespace troupe::rank_process
