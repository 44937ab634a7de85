#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/gpu_health.hpp>
#include <troupe/loaded_library.hpp>
#include <troupe/recovery.hpp>

#include "rank/protocol/contributions.hpp"
#include "rank/protocol/host_call.hpp"
#include "rank/protocol/phase.hpp"

/// The messages between the ranks and rank 0, one struct for each kind. The bytes on the network
/// are the fields of the struct, in order: see message.cpp.
namespace troupe::rank_process {

/// A step that holds nobody back: of a rank that has no state to roll back, or takes no part.
inline constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

/// Where one rank was, in an answer that speaks for many ranks.
struct RankStep {
  std::int32_t rank = 0;
  std::int64_t step = -1;

  friend bool operator==(const RankStep&, const RankStep&) = default;
};

/// The time of a rank in a window, which is some intervals between commits.
struct RankPace {
  std::int32_t rank = 0;
  std::int64_t wall_us = 0;      ///< the window's length
  std::int64_t own_us = 0;       ///< of that, the rank did not wait for others in collectives
  std::int64_t idle_us = 0;      ///< of that, its device had nothing to do
  std::int64_t collectives = 0;  ///< whose time is known

  friend bool operator==(const RankPace&, const RankPace&) = default;
};

/// The process that a rank is by now: how often it has been started before.
struct Incarnation {
  std::int32_t rank = 0;
  std::uint32_t number = 0;

  friend bool operator==(const Incarnation&, const Incarnation&) = default;
};

/// Messages of ranks. `rank` is the sender. A message with `covered` speaks for the ranks `rank` …
/// `rank + covered - 1`: a relay has combined their answers.
namespace from_rank {

/// A device host is dead or hangs, a communicator is broken, or a phase has failed here.
struct Fault {
  std::int32_t rank = 0;
  std::uint32_t round = 0;     ///< the newest that the rank has heard of
  std::string kind{};          ///< "kill"; see is_echo()
  std::int64_t detect_us = 0;  ///< from the strike to its detection
  Error error{};
};
/// The cost of a fault on this rank.
struct Loss {
  std::int32_t rank = 0;
  std::string kind{};  ///< how the device host died; empty: it lives
  std::uint32_t lost_buffers = 0;
  std::int64_t end_us = 0;  ///< from the detection to the end of the device host's process
};
/// The ordered phase is carried out.
struct Done {
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t round = 0;
  Phase phase{};
  std::uint32_t lost_buffers = 0;  ///< sum over the ranks
  std::int64_t newest = -1;        ///< replace: the newest commit that all of them have; -1: none
  /// replace: the newest commit of which all of them keep the copies for other ranks; -1: none.
  std::int64_t kept = kAnyStep;
  /// replace: the newest commit that one of them knows all ranks to have; -1: none.
  std::int64_t stable = -1;
  std::int64_t runs_ended = 0;  ///< replace: the most runs that have ended for one of them
  bool stop_asked = false;      ///< replace: see StopAsked
  std::int64_t repeated = 0;    ///< restore: the most steps that one of them has to repeat
  std::vector<RankContribution> contributions{};  ///< replace
  std::vector<RankStep>
      iterations{};  ///< restore: the step under way, of the ranks that were asked
};
/// This rank's GPU cannot come back.
struct Failed {
  std::int32_t rank = 0;
  Error error{};
};
/// All that these ranks asked of others before the commit of this step is done.
struct Flushed {
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t epoch = 0;
  std::int64_t step = -1;
};
/// The step is committed on these ranks.
struct Committed {
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t epoch = 0;
  std::int64_t step = -1;
  std::vector<RankPace> paces{};  ///< of those whose window has ended
};
/// The program's run has ended on these ranks.
struct Finished {
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t epoch = 0;
  /// The last step of one rank, of many ranks the first end and the last. Empty: all have left it.
  std::vector<RankStep> ends{};
};
/// This rank has left its run by an error of its own.
struct Left {
  std::int32_t rank = 0;
  std::int64_t run = 0;  ///< its number
  Error error{};
};
/// The standbys are ready, lost, or out of date.
struct Standby {
  enum class State : std::uint32_t {
    ready,
    lost,
    stale  ///< it lives, but a group was made that it has not formed
  };
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t epoch = 0;
  State state{};
};
/// The standbys have done this step of the formation, or one has failed.
struct Prepared {
  std::int32_t rank = 0;
  std::int32_t covered = 1;
  std::uint32_t epoch = 0;
  std::uint32_t formation = 0;
  Preparation step{};
  Error error{Errc::ok, 0, {}};                   ///< Errc::ok: none has failed
  std::vector<RankContribution> contributions{};  ///< contribute
};
/// A spectator's GPU is back.
struct Rejoin {
  std::int32_t rank = 0;
};
/// This rank's GPU says that it is failing: the world is to go on without it.
struct Withdraw {
  std::int32_t rank = 0;
  std::uint32_t epoch = 0;
};
/// This rank's GPU reports on its health.
struct Health {
  std::int32_t rank = 0;
  HealthEvent event{};  ///< the supervisor enters the rank
};
/// A relay has waited long for the answers of these ranks.
struct Late {
  std::int32_t rank = 0;
  std::uint32_t round = 0;
  Phase phase{};
  std::vector<std::int32_t> ranks{};
};
/// This rank makes no progress.
struct Stalled {
  std::int32_t rank = 0;
};
/// Where this rank's program is: the answer to Inquire.
struct Standing {
  std::int32_t rank = 0;
  std::uint32_t inquiry = 0;
  std::string text{};        ///< "waiting in barrier"
  std::int64_t step = -1;    ///< of its run; -1: it is in none
  std::int64_t waited_us{};  ///< how long it has waited
  Awaits awaits{};
};
/// This rank's device host has opened a library.
struct Library {
  std::int32_t rank = 0;
  OpenedLibrary library{};
};
/// Somebody wants the run to end, at the commit after the next stable one.
struct StopAsked {
  std::int32_t rank = 0;
};
/// The program waits for the other ranks to come to this host collective: a split, or any one of a
/// run.
struct Splitting {
  std::int32_t rank = 0;
  HostCall call{};
};
/// It waits no more, unless the others have come: a fault has met its run.
struct SplitGivenUp {
  std::int32_t rank = 0;
};
/// To all others, not by the tree: this rank's process was started in the place of one that has
/// died. It has nothing of what that had.
struct Joined {
  std::int32_t rank = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t round = 0, epoch = 0;  ///< the newest that it has heard of
};
/// Where the program is: the answer to AskCall.
struct AtCall {
  std::int32_t rank = 0;
  Awaits awaits{};
  HostCall call{};      ///< if it is in a host collective
  std::string place{};  ///< at the end of the program: where it waits
};

}  // namespace from_rank

/// Messages of the rank that leads: to all ranks, unless it says otherwise.
namespace from_supervisor {

/// Carry out this phase of this round.
struct Order {
  std::uint32_t round = 0;
  Phase phase{};
  std::uint32_t epoch = 0;        ///< the one that is to begin
  std::uint32_t formation = 0;    ///< replace: promote its standbys; 0: there are none to promote
  Contributions contributions{};  ///< form
  std::int64_t step = -1;         ///< restore: where to go back to
  std::int32_t leader = 0;        ///< who gives it
  std::vector<Incarnation> incarnations{};  ///< of the ranks that have died once or more
  std::vector<std::int32_t> joined{};       ///< those of them that no epoch has begun with yet
  std::vector<std::int32_t> asked{};        ///< restore: the ranks that say where they were
  std::vector<std::int32_t> excluded{};     ///< the spectators, sorted
};
/// The standbys carry out this step of a formation.
struct Prepare {
  std::uint32_t epoch = 0;
  std::uint32_t formation = 0;
  Preparation step{};
  Contributions contributions{};  ///< connect
};
/// The epoch begins.
struct Activate {
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;
  std::int64_t stable = -1;  ///< the newest step that is committed everywhere; -1: none
  std::vector<Recovery> reports{};
  std::vector<std::int32_t> excluded{};  ///< the spectators, sorted
  bool renewed = false;             ///< ranks that had died are back: the state is to be dealt out
  std::vector<Recovery> history{};  ///< renewed: the recoveries before, for those who know of none
};
/// All ranks are flushed for the commit of this step.
struct AllFlushed {
  std::int64_t step = -1;
};
/// The step is committed everywhere.
struct Stable {
  std::int64_t step = -1;
  bool stopping = false;  ///< somebody has asked for the end of the run
};
/// Every rank is to say where it is.
struct Inquire {
  std::uint32_t inquiry = 0;  ///< its number
};
/// The run has ended everywhere.
struct AllFinished {
  std::int64_t step = -1;  ///< its last; kAnyStep: it was left
};
/// The GPU of a rank has reported on its health.
struct HealthTold {
  HealthEvent event{};
};
/// A rank has left its run by an error of its own, and the epoch has ended.
struct RunLeft {
  std::int32_t rank = 0;  ///< which one
  std::int64_t run = 0;
  Error error{};
};
/// To one rank: all have come to its host collective, or it has given up.
struct SplitAgreed {
  std::uint32_t communicator = 0;
  std::uint64_t number = 0;
  Errc code{};  ///< Errc::world_reformed: it has given up
};
/// To one rank: where is its program?
struct AskCall {};
/// To one rank: it is slower than the others.
struct Slow {
  RankPace pace{};
  std::int64_t median_us = 0;  ///< own time of the median rank, in a window as long as this
};
/// The world ends.
struct Stop {
  Error error{};
  bool at_once = false;  ///< and the job: nothing that ranks could still do is of use
};

}  // namespace from_supervisor

using RankMessage =
    std::variant<from_rank::Fault, from_rank::Loss, from_rank::Done, from_rank::Failed,
                 from_rank::Flushed, from_rank::Committed, from_rank::Finished, from_rank::Left,
                 from_rank::Standby, from_rank::Prepared, from_rank::Rejoin, from_rank::Withdraw,
                 from_rank::Health, from_rank::Late, from_rank::Stalled, from_rank::Standing,
                 from_rank::Library, from_rank::StopAsked, from_rank::Splitting,
                 from_rank::SplitGivenUp, from_rank::Joined, from_rank::AtCall>;
using SupervisorMessage =
    std::variant<from_supervisor::Order, from_supervisor::Prepare, from_supervisor::Activate,
                 from_supervisor::AllFlushed, from_supervisor::Stable, from_supervisor::Inquire,
                 from_supervisor::AllFinished, from_supervisor::HealthTold,
                 from_supervisor::RunLeft, from_supervisor::SplitAgreed, from_supervisor::AskCall,
                 from_supervisor::Slow, from_supervisor::Stop>;
/// A message for the rank that leads: rank 0, at the root of the tree, has heard it from all ranks,
/// or one rank says it alone.
struct ForLeader {
  RankMessage said;
};
using WorldMessage = std::variant<RankMessage, SupervisorMessage, ForLeader>;

/// True if the message speaks only for ranks of a world of this size.
[[nodiscard]] bool is_of_world(const RankMessage& message, int size);

/// Plain bytes for the network and back; a malformed message is Errc::invalid.
std::vector<std::byte> encode(const WorldMessage& message);
Result<WorldMessage> decode_world_message(std::span<const std::byte> bytes);

/// True for a kind of fault that is mostly the echo of another one: a phase that failed, a
/// communicator that broke or a collective that did not end because somebody's device host died. If
/// nothing else comes, it is a fault of its own.
bool is_echo(std::string_view fault_kind) noexcept;

/// What Recovery::kind says of a rank that becomes a spectator, also because it has asked for it,
/// of one that rejoins, of one that has left its run by an error of its own, and of one whose step
/// has failed as if by a fault, and nobody knows of one, of a rank whose process has died, and of
/// one that goes on at another place.
inline constexpr const char *kKindRank = "rank", *kKindNode = "node";
inline constexpr const char *kKindFailed = "failed", *kKindWithdrawn = "withdrawn",
                            *kKindRejoins = "rejoin", *kKindLeft = "left", *kKindError = "error";

}  // namespace troupe::rank_process
