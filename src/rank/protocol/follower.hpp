#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rank/device/device_events.hpp"
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
  virtual void halt(std::uint32_t round) = 0;     ///< -> device_event
  virtual void quiesce(std::uint32_t round) = 0;  ///< -> device_event
  virtual void replace(std::uint32_t round) = 0;  ///< -> device_event
  /// As replace, but with the standby of this formation, also where the device host is healthy.
  virtual void promote(std::uint32_t round, std::uint32_t formation) = 0;  ///< -> device_event
  virtual void contribute(std::uint32_t round) = 0;                        ///< -> device_event
  virtual void connect(std::uint32_t round,
                       std::vector<std::vector<std::byte>> contributions) = 0;  ///< -> device_event
  /// The standby contributes to a formation, and connects.
  virtual void prepare_contribute(std::uint32_t formation) = 0;  ///< -> device_event
  virtual void prepare_connect(std::uint32_t formation,
                               std::vector<std::vector<std::byte>> contributions) = 0;
  virtual void verify(std::uint32_t round, std::uint32_t epoch) = 0;  ///< -> verified
  /// The members of the next epoch are others than those of the last; comes before restore.
  virtual void regroup(std::uint32_t round) = 0;                     ///< -> regrouped
  virtual void restore(std::uint32_t round, std::int64_t step) = 0;  ///< -> restored
  virtual void activate(std::uint32_t epoch, std::int64_t stable,
                        std::vector<Recovery> reports) = 0;
  virtual void all_flushed(std::int64_t step) = 0;
  virtual void stable(std::int64_t step) = 0;
  /// The run is to end at the first commit after that of step `since`, -1: at the first one. Comes
  /// before the stable() of that step, on all ranks alike: a rank commits only once it knows its
  /// commit before to be stable, so all decide at the same commit.
  virtual void stopping(std::int64_t since) = 0;
  /// `step`: the last of the run; kAnyStep: it was left.
  virtual void all_finished(std::int64_t step) = 0;
  /// A rank has left its run of this number by an error of its own, and the epoch has ended. No
  /// epoch begins before it is told.
  virtual void run_left(std::int64_t run, int rank, const Error& error) = 0;
  virtual void stop(const Error& error) = 0;
  /// A GPU of the job has said something of its health.
  virtual void health_told(HealthEvent event) = 0;
  /// The world goes on without this rank, as it has asked for: its device is given up.
  virtual void retire() = 0;
  /// Says where the program is.
  virtual void answer(std::uint32_t inquiry) = 0;
  /// A fault that was ordered for this phase strikes now, if there is one.
  virtual void strike(Phase phase) = 0;
};

/// A rank's part in the protocol that WorldSupervisor drives. Pure, like it: see there.
class WorldFollower {
 public:
  WorldFollower(int rank, FollowerActions* actions) : rank_(rank), actions_(actions) {}

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
  void committed(std::int64_t step);
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
  /// The spectators, in order, according to the newest order; see WorldSupervisor.
  [[nodiscard]] const std::vector<std::int32_t>& excluded() const noexcept { return excluded_; }
  [[nodiscard]] bool spectator() const noexcept { return spectator_; }

 private:
  /// What a spectator says so that nobody waits for it.
  void assent();
  void on(const from_supervisor::Order& order);
  void on(const from_supervisor::Prepare& order);
  void on(const from_supervisor::Activate& activate);
  void on(const from_supervisor::AllFlushed& flushed) { actions_->all_flushed(flushed.step); }
  void on(const from_supervisor::Stable& stable);
  void on(const from_supervisor::Inquire& inquire) { actions_->answer(inquire.inquiry); }
  void on(const from_supervisor::AllFinished& ended);
  void on(const from_supervisor::HealthTold& told) { actions_->health_told(told.event); }
  void on(const from_supervisor::RunLeft& left) {
    actions_->run_left(left.run, left.rank, left.error);
  }
  void on(const from_supervisor::SplitAgreed&) {}  // the program waits for it itself
  void on(const from_supervisor::AskCall&) {}      // the program's place is not known here
  void on(const from_supervisor::Stop& stop) { actions_->stop(stop.error); }
  void restore();
  void prepared(const DeviceDone& event);
  void done(const DeviceDone& event);
  void report_done(from_rank::Done message = {});
  void report_fault(std::string kind, std::int64_t detect_us = 0);

  int rank_;
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
  bool withdrawing_ = false;  ///< this rank has asked to be a spectator
  std::int64_t newest_ = -1;  ///< the newest commit that is complete here
};

}  // namespace troupe::rank_process
