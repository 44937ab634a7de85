#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/ipc/ring.hpp"
#include "common/wire/record.hpp"
#include "device_host/core.hpp"
#include "device_host/formation/formation.hpp"
#include "device_host/intake/admission.hpp"
#include "device_host/intake/outcomes.hpp"
#include "device_host/intake/own_operations.hpp"
#include "device_host/intake/set_aside.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/libraries/preparations.hpp"
#include "device_host/memory/mappings.hpp"
#include "device_host/sequences/runs.hpp"

namespace troupe::host {

/// Takes commands from the ring and queues them on the engine's queues in program order; what would
/// make the reactor wait is set aside, and what stands behind it passes. The reactor's thread only.
class Intake {
 public:
  struct Parts {
    Core& core;
    Libraries& libraries;
    Preparations& preparations;
    Mappings& mappings;
    Formation& formation;
    Outcomes& outcomes;
    SetAside& set_aside;
    SequenceRuns& runs;
    OwnOperations& own;
  };
  /// `more_is_known`: looks for messages of the rank, which may bring the mapping of an operand;
  /// true if any came.
  Intake(const Parts& parts, std::function<bool()> more_is_known);

  /// Queues what was set aside and can be queued now, then what stands in the ring. True if
  /// anything was.
  bool issue();
  /// Whether there is a command in the ring that need not wait for anything else.
  [[nodiscard]] bool has_more() const { return !blocked_ && !commands_.empty(); }
  void announce_sleep() { commands_.announce_sleep(); }
  void cancel_sleep() { commands_.cancel_sleep(); }

 private:
  class SingleCommand;
  class SequenceRun;

  /// `entry`: that of a command which is set aside; nullptr: it comes from the ring.
  Step issue_one(std::span<const std::byte> record, SetAside::Entry* entry);
  /// What to do with the command if not all of its operands are mapped; nothing: they are.
  std::optional<Step> check_mapped();
  /// The command takes its lane.
  Step issue_on_lane(std::span<const std::byte> record, SetAside::Entry* entry);
  /// The same by what it is: a single command, or one that runs a sequence.
  template <class What>
  Step issue_as(What what, std::span<const std::byte> record, SetAside::Entry* entry);
  /// Whether nothing keeps the command. Errors: it fails.
  template <class What>
  Result<bool> is_clear(What& what, Queue queue, const Waits& waits, const Call& call,
                        bool from_ring);
  /// Collectives on their lane that take long to end when they are given up.
  [[nodiscard]] std::uint64_t slow_ahead();
  /// Queues it on the engine.
  template <class What>
  Step queue(What& what, Queue queue, Waits waits, const Call& call,
             std::span<const std::byte> record, SetAside::Entry* entry);
  Step put_aside(std::span<const std::byte> record, const Waits& waits);
  /// Has a thread of its library carry out the entry's command.
  Step begin_work(SetAside::Entry& entry, Queue queue, const Waits& waits);

  Parts parts_;
  std::function<bool()> more_is_known_;
  ipc::RingConsumer commands_;
  wire::Command command_;      ///< the one that is being issued
  std::deque<Sequence> slow_;  ///< places of collectives on their lane; some of them may have ended
  bool alone_ = false;         ///< the command issued last wants to be alone
  /// The oldest command waits for its library, a mapping, or room in the engine.
  bool blocked_ = false;
};

}  // namespace troupe::host
