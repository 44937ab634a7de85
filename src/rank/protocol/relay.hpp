#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/protocol/least_step.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// The tree by which the supervisor's messages fan out to all ranks and the answers come in: the
/// radix-nomial tree over the ranks' numbers, with the supervisor's rank 0 at its root. A rank's
/// parent is the rank without its lowest digit (in base radix) that is not 0.
///
/// Every subtree is a range of ranks that begins with its root, so ranks of one node, which MPI
/// numbers in a row, mostly talk among themselves. Radix 2 is the binomial tree; with a radix of
/// `size` or more rank 0 is everyone's parent.
struct WorldTree {
  int size = 1;
  int radix = 8;  ///< the fastest up to 16,384 ranks, see bench/world_scaling

  [[nodiscard]] int parent(int rank) const;                 ///< -1: it is the root
  [[nodiscard]] std::vector<int> children(int rank) const;  ///< that of the largest subtree first
  /// How many ranks there are below `rank`, itself counted: `rank` … `rank + subtree(rank) - 1`.
  [[nodiscard]] int subtree(int rank) const;
  [[nodiscard]] int height(int rank) const;  ///< of the subtree; 0: a leaf

 private:
  [[nodiscard]] int place_of(int rank) const;
};

/// The part of one rank in the tree. Stands between the protocol (WorldSupervisor, WorldFollower)
/// and the transport, on every rank.
///
/// Downward a message goes to the children first and then to the rank's own member; that the world
/// has ended the root tells everybody itself. Upward, answers
/// that all ranks give are combined: `done`, `flushed`, `committed`, `finished`, `standby` (ready)
/// and `prepared` leave once, when the whole subtree has said them, so that no rank, the
/// supervisor's neither, handles more than one per child. What one rank alone has to say goes up at
/// once: `fault`, `loss` of a device host, `failed`, that a standby is lost or its formation
/// failed. Of the faults that are mostly the echo of another one (is_echo) a relay passes on the
/// first in each phase: it makes the supervisor begin a new round, more would change nothing.
/// Answers to older rounds are dropped.
///
/// The ranks never change and none dies alone (MPI ends the job with it), so the tree needs no
/// repair. A rank that is late shows in time: a relay that has waited for long says once who is
/// missing (`late`), those deeper in the tree earlier than those above, who pass on what they
/// heard.
///
/// Pure, like the protocol: no I/O, no threads, time is passed in. `deliver` may call `up`.
class WorldRelay {
 public:
  struct Options {
    int rank = 0;
    WorldTree tree;
    std::chrono::nanoseconds phase_timeout = std::chrono::seconds(30);  ///< the supervisor's
  };
  static constexpr int kToSupervisor = -1;
  static constexpr std::size_t kMostLate = 16;  ///< ranks that one message names
  static constexpr int kEchoesPerPhase = 1;
  /// To another rank's relay; from rank 0's, kToSupervisor.
  using Send = std::function<void(int to, const WorldMessage& message)>;
  using Deliver = std::function<void(const WorldMessage& message)>;  ///< to this rank's member

  WorldRelay(Options options, Send send, Deliver deliver);

  /// The supervisor's message, from the parent (on rank 0: from the supervisor).
  void down(const WorldMessage& message, TimePoint now);
  /// From this rank's member or a child.
  void up(WorldMessage message);
  /// To be called now and then: says who is late.
  void tick(TimePoint now);

 private:
  /// What has been heard from this rank (slot 0) and its children (from slot 1), combined.
  struct Answers {
    std::vector<bool> heard;
    int missing = 0;
    WorldMessage combined;
  };

  void clear(Answers& answers);
  void order(const WorldMessage& order, TimePoint now);
  void commits_begin(std::int64_t step);
  void combine(Answers& answers, int slot, WorldMessage&& message);
  /// Passes `message` on for the whole subtree, once all of it is that far.
  void progress(LeastStep& steps, int slot, const WorldMessage& message);
  void standby(const WorldMessage& message);
  void prepared(WorldMessage message);
  [[nodiscard]] int slot_of(int rank) const;     ///< -1: neither this rank nor a child
  [[nodiscard]] int slot_above(int rank) const;  ///< the one whose subtree has it; -1: none
  void rise(const WorldMessage& message) { send_(parent_, message); }

  Options options_;
  Send send_;
  Deliver deliver_;
  int parent_;
  std::vector<int> children_;
  int covered_;  ///< ranks of this subtree
  std::chrono::nanoseconds patience_;

  std::uint32_t round_ = 0;
  std::uint32_t epoch_ = 0;
  Phase phase_ = Phase::active;
  TimePoint since_{};
  Answers done_, finished_, prepared_;
  LeastStep flushed_, committed_;    ///< of this rank and its children
  std::vector<bool> standby_ready_;  ///< per slot, of the whole subtree, in this epoch
  std::uint32_t formation_ = 0;
  Phase formation_phase_ = Phase::active;
  bool formation_failed_ = false;
  std::uint32_t lost_buffers_ = 0;  ///< to be told with the next answer
  int echoes_ = 0;                  ///< passed on in this phase
  std::vector<RankPart> late_;      ///< as heard from below, in this phase
  bool said_late_ = false;
  bool stop_asked_ = false;  ///< once is enough
};

}  // namespace troupe::rank_process
