#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/protocol/message.hpp"
#include "rank/protocol/newcomers.hpp"
#include "rank/protocol/recovery_reports.hpp"
#include "rank/protocol/roll_call.hpp"
#include "rank/protocol/run_progress.hpp"
#include "rank/protocol/standby_world.hpp"

namespace troupe::rank_process {

/// The coordinator of the world, on the rank that leads: takes all ranks through the phases of a
/// re-formation in step.
///
/// Intuition: a re-formation is a sequence of barriers. The supervisor orders a phase, every rank
/// carries it out and says done, and only then comes the next one: no device host is killed
/// before all have quiesced, no data are rolled back before the new communicator is verified.
/// Whatever goes wrong in any phase begins a new *round*, again with halt; answers to older
/// rounds are ignored. Rounds are bounded, and so is the time of each phase.
///
/// Model: messages between a pair of processes arrive in order and are not lost while both live
/// (MPI, TCP). By MPI a rank process that dies takes the job with it. With keepers another one is
/// started in its place, and says so (Joined): a round begins that ends in an epoch in which the
/// state is dealt out anew. If it was the leader, the lowest rank that has not died leads on
/// (take_over): what it needs to know comes with the answers.
///
///     active --fault--> halt -> quiesce -> replace -> form -> verify -> restore -> active
///                        ^                    '---------------^               |  (epoch + 1)
///                        '-------- fault or deadline in any phase ------------'
///
/// Halt comes before quiesce because a rank that gives up a communicator may send garbage to its
/// peers with its last breath: by then all of them take no result of a collective for good.
///
/// Where there is a standby world (see StandbyWorld), replace promotes it on all ranks, healthy
/// ones too, and form is skipped.
///
/// A rank whose GPU cannot come back ends the world, or (Options::shrink) becomes a *spectator*: it
/// is told of everything and answers every order at once, so that the tree of messages needs no
/// repair, but has no part in the communicator. When its GPU is back it rejoins at the next epoch.
/// An epoch with other members than the one before begins without commits: what was committed
/// belongs to other ranks' shares. A rank whose GPU says that it is failing may *withdraw*: it
/// becomes a spectator too, if it is not the last member.
///
/// Pure: no I/O, no threads; time is passed in, messages leave through `broadcast`. Answers may
/// speak for many ranks (WorldRelay). In parts: RollCall (who has answered), RecoveryReports,
/// RunProgress (commits and ends of runs) and StandbyWorld; here are the rounds, their phases, and
/// who is a member.
class WorldSupervisor {
 public:
  struct Options {
    int size = 1;
    std::chrono::nanoseconds phase_timeout = std::chrono::seconds(30);
    int max_rounds = 16;  ///< in one re-formation
    bool shrink = false;  ///< go on without a rank whose GPU cannot come back
    int leader = 0;       ///< the rank of this
    StandbyWorld::Options standby{};
  };
  /// To all ranks; must not call back.
  using Broadcast = std::function<void(const SupervisorMessage& message)>;

  WorldSupervisor(Options options, Broadcast broadcast);

  /// Forms the world for the first time.
  void start(TimePoint now);
  /// Leads a world that another rank has led, from the round, the epoch and the spectators that
  /// this rank has heard of last.
  struct Heritage {
    std::uint32_t round = 0, epoch = 0;
    std::vector<std::int32_t> excluded{};
    std::vector<Incarnation> incarnations{};  ///< of all ranks that have died once or more
    std::vector<from_rank::Joined> joined{};  ///< of these, those that are not in the world yet
  };
  void take_over(const Heritage& heritage, TimePoint now);
  /// Messages for others on rank 0 (Inquiry, SplitOrder, LibraryComparison) change nothing here.
  void receive(const RankMessage& message, TimePoint now);
  /// Ends the world with what can never go on.
  void end(const Error& error) { stop(error); }
  /// To be called now and then: deadlines.
  void tick(TimePoint now);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::uint32_t round() const noexcept { return round_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  [[nodiscard]] const StandbyWorld& standby_world() const noexcept { return standby_world_; }

 private:
  /// Gives a message to the part that has a function for it.
  template <class Message>
  void hear(const Message& said, TimePoint now);
  void on(const from_rank::Fault& fault, TimePoint now);
  void on(const from_rank::Done& done, TimePoint now);
  void on(const from_rank::Failed& failed, TimePoint now);
  void on(const from_rank::Withdraw& asked, TimePoint now);
  void on(const from_rank::Rejoin& asked, TimePoint now);
  void on(const from_rank::Health& said, TimePoint now);
  void on(const from_rank::Left& left, TimePoint now);
  void on(const from_rank::Late& late, TimePoint now);
  void on(const from_rank::Joined& joined, TimePoint now);
  void tell(RunProgress::News news);
  /// The rank is no member from the next epoch on, which begins now.
  void exclude(std::int32_t rank, const char* kind, const Error& why, TimePoint now);
  void admit(TimePoint now);
  /// If this is the first that goes wrong in an active world.
  void begin_report(TimePoint now);
  [[nodiscard]] bool is_excluded(int rank) const;
  /// `why`: what has ended the round before.
  void begin_round(Phase first, const Error& why, TimePoint now);
  void enter(Phase phase, TimePoint now);
  void advance(TimePoint now);
  void activate(TimePoint now);
  void stop(const Error& error, bool at_once = false);

  Options options_;
  Broadcast broadcast_;
  Phase phase_ = Phase::active;
  std::uint32_t epoch_ = 0;
  std::uint32_t round_ = 0;
  std::uint32_t rounds_apart_ = 1;
  int rounds_ = 0;  ///< of this re-formation
  bool stopped_ = false;
  TimePoint phase_since_{};
  RollCall roll_;
  std::vector<std::vector<std::byte>> contributions_;  ///< by rank
  std::int64_t left_ = -1;                             ///< the newest run that a rank has left
  std::vector<std::int32_t> excluded_;         ///< spectators, in order, from the next epoch on
  std::vector<std::int32_t> excluded_active_;  ///< of the epoch that is or was active
  std::vector<std::int32_t> rejoining_;
  Newcomers newcomers_;
  bool promoting_ = false;  ///< this round's replace promotes the standby world
  RecoveryReports reports_;
  RunProgress progress_;
  StandbyWorld standby_world_;
};

}  // namespace troupe::rank_process
