#pragma once

#include <array>
#include <optional>
#include <span>

#include "device_host/lanes/hazards.hpp"

namespace troupe::host {

/// The queues' side of the order: what stands on them, what a command has to wait for and which
/// queue it takes. The reactor's thread only.
///
/// A collective waits for other ranks, maybe for long, and so does every command that depends on
/// one and every command behind such a command on its queue. No other command may wait with them:
/// while commands of a lane wait for peers, those that do not depend on any collective take the
/// lane's detour, which nothing that waits for peers ever takes.
///
/// The lane that has side queues spreads commands that depend on nothing under way over its own
/// queue and these; one that depends on another stands behind it. Nothing that waits for peers ever
/// takes a side queue.
class Lanes {
 public:
  /// The lane's detour cannot be opened: all of its commands take the lane's own queue.
  void give_up_detour(Lane lane) { at(lane).no_detour = true; }
  /// The lane has the side queues from now on.
  void set_sides(Lane lane) { sides_of_ = lane; }
  [[nodiscard]] std::optional<Lane> sides_of() const noexcept { return sides_of_; }
  [[nodiscard]] bool has_detour(Lane lane) const { return !at(lane).no_detour; }

  /// What a command with these operands has to wait for, by queue, and is not known to be done.
  [[nodiscard]] Waits waits_of(std::span<const OperandUse> operands) const;
  /// The queue of its lane that a command with these waits takes.
  [[nodiscard]] Queue queue_of(Lane lane, const Waits& waits) const;
  /// Whether a command with these waits waits for other ranks on this queue.
  [[nodiscard]] bool waits_for_peers(Queue queue, const Waits& waits) const;
  /// The same of what stands before it, if it is a collective itself.
  [[nodiscard]] bool stands_behind_peers(Queue queue, const Waits& waits) const;
  /// Whether this place is not done and waits for other ranks.
  [[nodiscard]] bool stands_for_peers(Queue queue, Sequence sequence) const;

  /// Notes that the command has been queued; its place there.
  Sequence queued(std::span<const OperandUse> operands, Queue queue, const Waits& waits);
  [[nodiscard]] Sequence issued(Queue queue) const { return at(queue).issued; }
  [[nodiscard]] Sequence completed(Queue queue) const { return completed_[queue.index()]; }

  /// The queue waits for its other one up to there already; 0: not at all.
  [[nodiscard]] Sequence waited(Queue queue, Queue other) const {
    return at(queue).waited[other.index()];
  }
  void set_waited(Queue queue, Queue other, Sequence sequence) {
    at(queue).waited[other.index()] = sequence;
  }
  /// Everything up to `sequence` on the queue is done.
  void complete(Queue queue, Sequence sequence);
  void forget_region(std::uint32_t region) { hazards_.forget_region(region); }
  /// After a drain: nothing is queued anywhere.
  void complete_all();

 private:
  /// One of the lane's own queue and its side queues, for a command that waits for no peers;
  /// nothing where all of them wait for peers.
  [[nodiscard]] std::optional<Queue> spread(Lane lane, const Waits& waits) const;
  [[nodiscard]] bool depends_on_peers(const Waits& waits) const;

  struct QueueState {
    bool no_detour = false;
    Sequence issued = 0;
    Sequence first_for_peers = 0;  ///< of those that wait for peers; 0: none does
    Places waited{};               ///< per other queue, up to where this one waits already
  };
  /// Commands that are done before their traces are dropped.
  static constexpr Sequence kForgetAbove = 4096;

  [[nodiscard]] QueueState& at(Queue queue) { return queues_[queue.index()]; }
  [[nodiscard]] const QueueState& at(Queue queue) const { return queues_[queue.index()]; }

  std::array<QueueState, kQueueCount> queues_;
  Places completed_{};
  std::optional<Lane> sides_of_;
  HazardTracker hazards_;
  Sequence done_since_forget_ = 0;
};

}  // namespace troupe::host
