#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"
#include "device_host/intake/outcomes.hpp"
#include "device_host/intake/set_aside.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/memory/mappings.hpp"
#include "device_host/sequences/graphs.hpp"
#include "device_host/sequences/sequences.hpp"

namespace troupe::host {

/// Runs of recorded sequences that are lists: their commands are queued one by one, while the
/// command that runs the sequence stays set aside.
///
/// Between two places of one queue stands all that a run queues, so that one mark behind it answers
/// the command, and its operands are ordered by that queue. A graph works with the handles and the
/// workspaces of the lanes that it was made on: it waits for all that stands there, and they for
/// it. The reactor's thread only.
class SequenceRuns {
 public:
  SequenceRuns(Core& core, Libraries& libraries, Mappings& mappings, Outcomes& outcomes,
               SetAside& set_aside)
      : core_(&core),
        libraries_(&libraries),
        mappings_(&mappings),
        outcomes_(&outcomes),
        set_aside_(&set_aside),
        graphs_(core, libraries, mappings, table_) {}

  /// The sequence that the command runs, as it wants it. Errors: invalid.
  Result<SequenceTable::Known*> find(const wire::Command& command);
  [[nodiscard]] Graphs& graphs() noexcept { return graphs_; }

  /// Whether the entry's command has begun to queue those of its sequence.
  [[nodiscard]] bool has_begun(const SetAside::Entry& entry) const {
    return plays_.contains(entry.number);
  }
  Step begin(SetAside::Entry& entry, const wire::Command& command,
             const SequenceTable::Known& known, Queue queue, const Waits& waits);
  /// `command`: the entry's.
  Step go_on(SetAside::Entry& entry, const wire::Command& command);
  /// Whether a run that waits at a branch can go on.
  [[nodiscard]] bool can_go_on();
  /// The same. If so, its entry is to be offered again.
  [[nodiscard]] bool goes_on() {
    const bool can = can_go_on();
    waits_at_branch_ = waits_at_branch_ && !can;
    return can;
  }
  /// Whether a run waits at a branch.
  [[nodiscard]] bool waits_at_branch() const noexcept { return waits_at_branch_; }
  /// What they have queued is in flight, and nothing else of them will be.
  void abandon();
  void clear() { plays_.clear(); }

  /// Whether the sequence may run again: its last run has been judged, if it is to be.
  [[nodiscard]] bool cells_are_read(std::uint64_t number) const;
  /// The command, which runs the sequence, has been queued. The result cells of its commands are
  /// read when it has ended.
  void add_run(const wire::Command& command, const RecordedSequence& sequence, Queue queue,
               const Waits& waits, Sequence place);

  // Graphs with collectives are void when their communicators go.
  void on(std::uint64_t, const wire::to_host::Contribute&) { table_.drop_collective(); }
  void on(std::uint64_t, const wire::to_host::DropGroup&) { table_.drop_collective(); }
  void on(std::uint64_t, const wire::to_host::Quiesce&) { table_.drop_collective(); }

 private:
  /// A run whose commands are queued one by one. Its entry stays set aside until all are.
  struct Play {
    Playing playing;
    Waits waits;
    Result<void> outcome;  ///< of what a helper did for it
  };

  /// Passes a branch, which is the next step. False: what its flag depends on is still at work.
  Result<bool> pass_branch(Playing& playing);
  Result<void> run_step(const RecordedSequence::Step& step, const Call& call, std::uint64_t ticket);
  /// Has a thread of its library queue the next step, which may block.
  void begin_step(SetAside::Entry& entry, const Play& play, std::uint64_t ticket);
  Step end(SetAside::Entry& entry, const wire::Command& command, Result<void> outcome);
  /// The commands of the sequence have been queued, its run at this place of `queue`.
  Result<void> note_places(const RecordedSequence& sequence, Queue queue, Sequence place);

  Core* core_;
  Libraries* libraries_;
  Mappings* mappings_;
  Outcomes* outcomes_;
  SetAside* set_aside_;
  SequenceTable table_;
  Graphs graphs_;
  std::map<SetAside::Number, Play> plays_;
  bool waits_at_branch_ = false;
  /// By sequence: where its last run stands, whose result cells have yet to be read.
  std::map<std::uint64_t, std::pair<Queue, Sequence>> to_be_judged_;
};

}  // namespace troupe::host
