#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/recovery.hpp>

namespace troupe::rank_process {

/// The phases of a re-formation, in order. Forming the world for the first time is a re-formation
/// that starts at `replace`.
enum class Phase : std::uint32_t { active, halt, quiesce, replace, form, verify, restore };
inline constexpr std::size_t kPhaseCount = 7;
std::string_view to_string(Phase phase) noexcept;

/// What one rank alone has to say in an answer that speaks for many.
struct RankPart {
  std::int32_t rank = 0;
  std::int64_t iteration = -1;  ///< done(restore), if asked: the step under way; finished: the last
  std::vector<std::byte> contribution{};  ///< done(replace), prepared: to the communicator

  friend bool operator==(const RankPart&, const RankPart&) = default;
};

/// What ranks and the supervisor say to each other. One struct for all kinds: messages are rare,
/// and an unused field costs nothing.
struct WorldMessage {
  enum class Kind : std::uint32_t {
    // rank to supervisor
    fault,      ///< something died; text: the kind; code, native: the error; detect_us
    loss,       ///< what it cost; text: how the device host died (empty: it lives), lost_buffers
    done,       ///< the phase of this round is carried out here
    failed,     ///< this rank's GPU cannot come back; code, native, text
    flushed,    ///< what this rank asked of others before the commit of step is done
    committed,  ///< step is committed here
    finished,   ///< the program's run has ended here; parts: with which step (iteration), of many
                ///< ranks the first and the last; none: it was left
    left,       ///< its run number step has ended with an error of this rank's own; code, native,
                ///< text
    standby,    ///< this rank's standby is ready (code 0), or lost; stale: it has not formed all
                ///< groups
    prepared,   ///< the step (phase) of formation is done by the standby; code, text
    rejoin,     ///< a spectator's GPU is back
    withdraw,   ///< this rank's GPU says that it is failing: the world is to go on without it
    health,    ///< what its GPU says of its health; code: HealthKind, repeated: 1 if it is failing;
               ///< step: its Xid, or 0; text
    late,      ///< a relay has waited for long for the answers of these ranks: parts
    stalled,   ///< this rank makes no progress
    standing,  ///< where its program is: text, step; detect_us: for how long it has waited;
               ///< repeated: see kEndedRun; formation: of the inquiry
    library,   ///< this rank's device host has opened a library; text: see OpenedLibrary
    stop_asked,      ///< somebody wants the run to end at the commit after the next stable one
    splitting,       ///< its program waits to split a communicator, or for the others to come to
                     ///< another host collective of a run; payload: the call
    split_given_up,  ///< it waits no more, if the others have not come: a fault has met its run
    at_call,  ///< where its program is; repeated: kInHostCall, with payload, kAtTheEnd, with text,
              ///< or 0
    // supervisor to rank
    order,     ///< carry out phase of round; replace: with a formation, every rank promotes its
               ///< standby of it; form: payload holds the contributions; restore: step, and in
               ///< parts the ranks that shall say their iteration
    prepare,   ///< phase replace: the standby contributes to formation; form: it connects (payload)
    activate,  ///< epoch begins; payload: the reports of this recovery
    all_flushed,   ///< all ranks are flushed for the commit of step
    stable,        ///< step is committed everywhere
    inquire,       ///< every rank says where it is; formation: the inquiry's number
    all_finished,  ///< the run has ended everywhere, with step; kAnyStep: it was left
    health_told,   ///< what the GPU of rank has said, as in health
    run_left,      ///< a rank has left its run (as in left); the epoch has ended
    split_agreed,  ///< to one rank: all have come to its call, or it has given up (code);
                   ///< formation, step: communicator and number of the call
    ask_call,      ///< to one rank: where is its program?
    stop           ///< the world ends; code, native, text
  };

  Kind kind{};
  Phase phase{};
  std::uint32_t round = 0;
  std::uint32_t epoch = 0;
  std::int32_t rank = 0;  ///< who sends
  /// done, flushed, committed, finished, standby, prepared: said of the ranks `rank` … `rank +
  /// covered - 1`; of many, step is the least, repeated the greatest and lost_buffers the sum
  std::int32_t covered = 1;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  std::uint32_t lost_buffers = 0;
  std::uint32_t formation = 0;  ///< of a standby world, see StandbyWorld
  std::int64_t step = -1;       ///< done(replace): newest commit here, -1: none
  std::int64_t repeated = 0;    ///< done(restore): steps to be done again
  std::int64_t detect_us = 0;   ///< fault: from the strike to its detection
  std::int64_t end_us = 0;      ///< loss: from there to the end of the device host's process
  std::uint32_t stopping = 0;   ///< stable, activate: 1 once somebody has asked for the run's end
  std::string text{};
  std::vector<std::byte> payload{};
  std::vector<RankPart> parts{};
  std::vector<std::int32_t> excluded{};  ///< order, activate: the ranks that are spectators, sorted
};
/// Whether a fault of this kind (WorldMessage::text) is mostly the echo of another one: a phase
/// that failed, a communicator that broke or a collective that did not end because somebody's
/// device host died. If nothing else comes, it is a fault of its own.
bool is_echo(std::string_view fault_kind) noexcept;

/// WorldMessage::repeated of a rank that waits for the others to end their runs, or in a host
/// collective, or whose program has ended.
inline constexpr std::int64_t kEndedRun = 1, kInHostCall = 2, kAtTheEnd = 3;

/// A host collective of the program's.
struct HostCall {
  std::uint32_t communicator = 0;     ///< the number of a group; 0: the world
  std::uint64_t number = 0;           ///< among those of these ranks of it, from 1
  std::vector<std::int32_t> ranks{};  ///< of the job
  std::string name{};                 ///< "split of group 3 (host collective 7)"
  std::string kind{};                 ///< "split", with what else has to be the same on all ranks

  /// Whether both are one collective, each as a rank sees it.
  [[nodiscard]] bool is_same(const HostCall& other) const {
    return communicator == other.communicator && number == other.number && ranks == other.ranks &&
           kind == other.kind;
  }
};
std::vector<std::byte> encode(const HostCall& call);
Result<HostCall> decode_host_call(std::span<const std::byte> bytes);

/// A step that holds nobody back: of a rank that has no state to roll back, or takes no part.
inline constexpr std::int64_t kAnyStep = std::numeric_limits<std::int64_t>::max();

/// Plain bytes for the network and back; a malformed message is Errc::invalid.
std::vector<std::byte> encode(const WorldMessage& message);
Result<WorldMessage> decode_world_message(std::span<const std::byte> bytes);

/// What Recovery::kind says of a rank that becomes a spectator, also because it has asked for it,
/// of one that rejoins, of one that has left its run by an error of its own, and of one whose step
/// has failed as if by a fault, and nobody knows of one.
inline constexpr const char *kKindFailed = "failed", *kKindWithdrawn = "withdrawn",
                            *kKindRejoins = "rejoin", *kKindLeft = "left", *kKindError = "error";

std::vector<std::byte> encode(const std::vector<Recovery>& reports);
Result<std::vector<Recovery>> decode_reports(std::span<const std::byte> bytes);

/// Byte strings, in order, as one: the contributions to a communicator, one per rank. Empty ones
/// cost nothing: of NCCL's, few are not.
inline constexpr std::uint64_t kMaxRanks = 1u << 20;
std::vector<std::byte> encode(const std::vector<std::vector<std::byte>>& blobs);
Result<std::vector<std::vector<std::byte>>> decode_blobs(std::span<const std::byte> bytes);

}  // namespace troupe::rank_process
