#pragma once

#include <chrono>
#include <functional>
#include <optional>
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
  /// To the parent's relay; from rank 0's relay `to` is kToSupervisor.
  using Rise = std::function<void(int to, const RankMessage& message)>;
  /// To another rank's relay.
  using PassOn = std::function<void(int to, const SupervisorMessage& message)>;
  /// To this rank's member.
  using Deliver = std::function<void(const SupervisorMessage& message)>;

  WorldRelay(Options options, Rise rise, PassOn pass_on, Deliver deliver);

  /// The supervisor's message, from the parent (on rank 0: from the supervisor).
  void down(const SupervisorMessage& message, TimePoint now);
  /// From this rank's member or a child.
  void up(RankMessage message);
  /// To be called now and then: says who is late.
  void tick(TimePoint now);

 private:
  /// What has been heard from this rank (slot 0) and its children (from slot 1), combined.
  template <class Message>
  struct Answers {
    std::vector<bool> heard{};
    int missing = 0;
    Message combined{};
  };

  // React to a message of the supervisor; most change nothing here.
  void look_at(const from_supervisor::Order& order, TimePoint now);
  void look_at(const from_supervisor::Activate& activate, TimePoint now);
  void look_at(const from_supervisor::Prepare& prepare, TimePoint now);
  void look_at(const from_supervisor::AllFinished& ended, TimePoint now);
  template <class Other>
  void look_at(const Other&, TimePoint) {}

  // Handle a message from below; most rise at once.
  void hear(from_rank::Done&& done);
  void hear(from_rank::Finished&& finished);
  void hear(from_rank::Flushed&& flushed);
  void hear(from_rank::Committed&& committed);
  void hear(from_rank::Standby&& standby);
  void hear(from_rank::Prepared&& prepared);
  void hear(from_rank::Loss&& loss);
  void hear(from_rank::Fault&& fault);
  void hear(from_rank::Late&& late);
  void hear(from_rank::StopAsked&& asked);
  template <class Other>
  void hear(Other&& other) {
    rise(other);
  }

  template <class Message>
  void clear(Answers<Message>& answers);
  void commits_begin(std::int64_t step);
  template <class Message>
  void combine(Answers<Message>& answers, int slot, Message&& message);
  /// Passes `message` on for the whole subtree, once all of it is that far.
  template <class Message>
  void progress(LeastStep& steps, Message message);
  [[nodiscard]] bool is_active(std::uint32_t epoch) const {
    return phase_ == Phase::active && epoch == epoch_;
  }
  [[nodiscard]] int slot_of(int rank) const;     ///< -1: neither this rank nor a child
  [[nodiscard]] int slot_above(int rank) const;  ///< the one whose subtree has it; -1: none
  void rise(const RankMessage& message) { rise_(parent_, message); }

  Options options_;
  Rise rise_;
  PassOn pass_on_;
  Deliver deliver_;
  int parent_;
  std::vector<int> children_;
  int covered_;  ///< ranks of this subtree
  std::chrono::nanoseconds patience_;

  std::uint32_t round_ = 0;
  std::uint32_t epoch_ = 0;
  Phase phase_ = Phase::active;
  TimePoint since_{};
  Answers<from_rank::Done> done_;
  Answers<from_rank::Finished> finished_;
  Answers<from_rank::Prepared> prepared_;
  LeastStep flushed_, committed_;    ///< of this rank and its children
  std::vector<RankPace> paces_;      ///< heard, and to be told with the next commit
  std::vector<bool> standby_ready_;  ///< per slot, of the whole subtree, in this epoch
  std::uint32_t formation_ = 0;
  std::optional<Preparation> preparation_;  ///< the step of it that is under way
  bool formation_failed_ = false;
  std::uint32_t lost_buffers_ = 0;  ///< to be told with the next answer
  int echoes_ = 0;                  ///< passed on in this phase
  std::vector<std::int32_t> late_;  ///< as heard from below, in this phase
  bool said_late_ = false;
  bool stop_asked_ = false;  ///< once is enough
};

}  // namespace troupe::rank_process
