#pragma once

#include <optional>

#include <troupe/actor/actor.hpp>

#include "rank/protocol/follower.hpp"
#include "rank/protocol/inquiry.hpp"
#include "rank/protocol/library_comparison.hpp"
#include "rank/protocol/relay.hpp"
#include "rank/protocol/split_order.hpp"
#include "rank/protocol/supervisor.hpp"
#include "rank/world/recovery_trace.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Messages of the WorldActor.
namespace world_message {
struct FromNetwork {
  std::vector<std::byte> bytes;
};
struct FromDevice {
  DeviceEvent event;
};
struct Begin {};  ///< everything is in place: form the world
struct Verified {
  std::uint32_t round;
  Result<void> outcome;
};
struct Regrouped {
  std::uint32_t round;
  std::shared_ptr<const HostGroup> group;
};
struct Restored {
  std::uint32_t round;
  Result<void> outcome;
  std::int64_t iteration;
  std::int64_t repeated;
};
struct Committed {
  std::uint32_t epoch, run;
  std::int64_t step;
  Result<void> outcome;  ///< success: all before the commit has ended well
};
/// All that was asked of others before the commit of this step is answered.
struct Flushed {
  std::uint32_t epoch, run;
  std::int64_t step;
};
struct Finished {
  std::uint32_t epoch, run;
  std::int64_t step;  ///< that the run has ended with; kAnyStep: it was left
};
/// The program has left its run by an error of its own.
struct Left {
  std::uint32_t run;
  Error error;
};
/// A step has failed in this epoch as if by a fault: the epoch is to end, whatever has failed.
struct EndEpoch {
  std::uint32_t epoch;
  Error error;
};
struct AskToStop {};
/// This rank's GPU is failing, and its state is where others find it.
struct Withdraw {};
/// The program ends: answered when all that came before has been handled. With `all_left`, on rank
/// 0, also what is left to be told of the ranks' libraries.
struct Conclude {
  bool all_left;
  using Reply = bool;
};
/// The program has one group more, or some were freed.
struct GroupsChanged {};
struct VerifyOn {
  std::uint32_t round;
};                   ///< there may be room for the next of its commands
struct Deadline {};  ///< time to look at the deadlines
}  // namespace world_message

/// A rank's place in the world: carries messages between the network, the device, the program and
/// the protocol, which is in WorldFollower, WorldRelay and, on rank 0, WorldSupervisor.
class WorldActor
    : public Actor<WorldActor, world_message::FromNetwork, world_message::FromDevice,
                   world_message::Begin, world_message::Verified, world_message::Regrouped,
                   world_message::Restored, world_message::Flushed, world_message::Committed,
                   world_message::Finished, world_message::Left, world_message::EndEpoch,
                   world_message::AskToStop, world_message::Withdraw, world_message::Conclude,
                   world_message::GroupsChanged, world_message::VerifyOn, world_message::Deadline>,
      private FollowerActions {
 public:
  /// For the verification of a new communicator.
  struct Probe {
    GpuRef<std::int64_t> on_device;
    PinnedBuffer<std::int64_t> on_host;
  };
  /// One element each. The core outlives the actor.
  WorldActor(WorldCore* core, std::shared_ptr<Probe> probe);

  void on(world_message::FromNetwork message);
  void on(world_message::FromDevice event);
  void on(world_message::Begin);
  void on(world_message::Verified done);
  void on(world_message::Regrouped done);
  void on(world_message::Restored done) {
    member_.restored(done.round, done.outcome, done.iteration, done.repeated);
  }
  void on(world_message::Flushed done);
  void on(world_message::Committed done);
  void on(world_message::Finished done);
  void on(world_message::Left run) { member_.left(run.run, run.error); }
  void on(world_message::EndEpoch end);
  void on(world_message::AskToStop) { member_.ask_to_stop(); }
  void on(world_message::Withdraw) { member_.withdraw(); }
  bool on(world_message::Conclude conclude);
  void on(world_message::GroupsChanged);
  void on(world_message::VerifyOn next);
  void on(world_message::Deadline);

 private:
  // FollowerActions
  void send(const RankMessage& message) override { relay_.up(message); }
  void close_world() override;
  void halt(std::uint32_t round) override;
  void quiesce(std::uint32_t round) override;
  void replace(std::uint32_t round) override;
  void promote(std::uint32_t round, std::uint32_t formation) override;
  void contribute(std::uint32_t round) override;
  void prepare_contribute(std::uint32_t formation) override;
  void prepare_connect(std::uint32_t formation,
                       std::vector<std::vector<std::byte>> contributions) override;
  void connect(std::uint32_t round, std::vector<std::vector<std::byte>> contributions) override;
  void verify(std::uint32_t round, std::uint32_t epoch) override;
  void regroup(std::uint32_t round) override;
  void restore(std::uint32_t round, std::int64_t step) override;
  void activate(std::uint32_t epoch, std::int64_t stable, std::vector<Recovery> reports) override;
  void all_flushed(std::int64_t step) override { core_->status().run().set_all_flushed(step); }
  void stable(std::int64_t step) override {
    core_->device().tell(device_message::RunProgress{true});
    core_->status().run().set_stable(step);
  }
  void stopping(std::int64_t since) override { core_->status().run().set_stopping(since); }
  void all_finished(std::int64_t step) override { core_->status().run().set_finished(step); }
  void run_left(std::int64_t run, int rank, const Error& error) override {
    core_->status().run().set_left(run, rank, error);
  }
  void stop(const Error& error) override { core_->stop(error); }
  void health_told(HealthEvent event) override { core_->status().health().add(std::move(event)); }
  void retire() override;
  void answer(std::uint32_t inquiry) override;
  void strike(Phase phase) override;
  /// This rank's place among the members of the world that is being formed, and their number.
  [[nodiscard]] std::int32_t place() const;
  [[nodiscard]] std::int32_t members() const;
  /// What the device is to form from all ranks' contributions: the world, and of `listed` the
  /// groups that live. Errors: internal.
  [[nodiscard]] Result<DeviceOrder> connect_order(
      std::uint32_t round, std::uint32_t formation, const std::vector<wire::FormingGroup>& listed,
      std::vector<std::vector<std::byte>> contributions) const;

  /// This rank's GPU says that it is failing.
  void consider_leaving(const std::string& text);
  void look_at_progress();
  /// A program that does not turn to a recovery is named: nothing else of the rank can tell.
  void look_at_program();
  /// How long the program has waited, or its oldest command.
  [[nodiscard]] std::chrono::nanoseconds waited() const;
  void report_inquiry();
  void answer_call();
  /// On rank 0.
  void report_disagreement(const std::optional<SplitOrder::Finding>& finding);
  void tell_library(const OpenedLibrary& library);
  static void warn(const std::vector<std::string>& lines);
  /// A message for rank 0 itself, to the one there that it is for.
  void hear(const RankMessage& message);
  void tell_of_standby_world();
  /// Whether word from this run, in this epoch, still counts.
  [[nodiscard]] bool counts(std::uint32_t epoch, std::uint32_t run) const;

  WorldCore* core_;
  std::shared_ptr<Probe> probe_;
  TimePoint revived_at_{};       ///< when a spectator's device was last tried, or its epoch began
  std::optional<Error> failed_;  ///< why the device was given up, until an epoch begins
  bool left_gpu_ =
      false;  ///< the device was given up because the GPU is failing: it is not tried again
  std::chrono::nanoseconds look_every_;
  struct Verification {
    std::uint32_t round = 0, epoch = 0;
    std::vector<Future<void>> commands;  ///< that are submitted
  };
  Verification verification_;
  RecoveryTrace trace_;
  std::vector<wire::FormingGroup> contributed_;  ///< the groups of the device's last contribution
  std::vector<wire::FormingGroup> prepared_;     ///< of the standby's, and that it has formed since
  std::optional<world_message::Finished> finished_;  ///< the newest
  WorldFollower member_;
  WorldRelay relay_;
  std::optional<WorldSupervisor> supervisor_;
  std::optional<Inquiry> inquiry_;              ///< on rank 0
  std::optional<LibraryComparison> libraries_;  ///< on rank 0
  std::optional<SplitOrder> splits_;            ///< on rank 0
  std::uint64_t retired_ = 0;                   ///< commands, …
  TimePoint retired_since_{};                 ///< … not more since then while some were under way
  std::chrono::nanoseconds report_at_;        ///< the wait after which the next report is due
  std::chrono::nanoseconds late_program_at_;  ///< the same of look_at_program()
};

}  // namespace troupe::rank_process
