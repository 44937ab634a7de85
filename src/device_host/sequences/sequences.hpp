#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/wire/record.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/lanes/batches.hpp"

namespace troupe::host {

/// What a command that runs a sequence says of it.
struct SequenceCall {
  std::uint64_t number = 0;
  std::size_t commands = 0;
  const Operand* list = nullptr;       ///< their records
  std::span<const std::byte> patches;  ///< sequence::Patch, one behind another
};
/// number 0: the command runs no sequence.
SequenceCall sequence_call(const wire::Command& command);
/// True for one that itself touches nothing of what it names as written: a barrier, and a run of a
/// sequence, whose commands are looked at one by one.
bool names_for_order(const wire::Command& command);

/// The commands of a sequence, and which of them wait for which.
class RecordedSequence {
 public:
  struct Step {
    std::shared_ptr<const wire::Command> command;
    Lane lane{};
    std::uint8_t side = 0;              ///< which side queue of its lane; 0: the lane's own
    std::vector<std::uint32_t> behind;  ///< steps of other queues that it waits for
    bool awaited = false;               ///< some step waits for it
    std::ptrdiff_t by = 0;              ///< of a sequence::Branch; 0: it is another command
    const Operand* flag = nullptr;      ///< of a branch that has one
    const Operand* watched = nullptr;   ///< what the step before it has copied to the flag

    [[nodiscard]] Queue queue() const noexcept {
      return side != 0 ? Queue::aside(lane, side) : Queue(lane);
    }
  };

  /// Errors: invalid.
  static Result<std::shared_ptr<const RecordedSequence>> make(const SequenceCall& call,
                                                              std::span<const std::byte> list);
  /// The same commands, those of the lane spread over its own queue and its side queues.
  [[nodiscard]] std::shared_ptr<const RecordedSequence> spread(Lane lane) const;
  [[nodiscard]] const std::vector<Step>& steps() const noexcept { return steps_; }
  /// That its commands take, each once.
  [[nodiscard]] const std::vector<Lane>& lanes() const noexcept { return lanes_; }
  [[nodiscard]] bool uses(Lane lane) const;
  /// How many of its commands take the lane.
  [[nodiscard]] std::size_t steps_on(Lane lane) const;
  /// What comes next depends on memory: there is no telling before it runs.
  [[nodiscard]] bool branches() const noexcept { return branches_; }
  /// Those of its commands whose result cells say whether they have failed.
  [[nodiscard]] const std::vector<std::uint32_t>& judged() const noexcept { return judged_; }
  /// Some of its commands wait for other ranks.
  [[nodiscard]] bool collective() const noexcept { return uses(Lane::collective); }

 private:
  /// `sides_of`: the lane whose steps take side queues.
  void find_order(std::optional<Lane> sides_of = std::nullopt);
  void find_watched();

  bool branches_ = false;
  std::vector<Step> steps_;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> judged_;
};

/// The commands of a sequence on their way to the queues of their lanes, between two places of one
/// queue: what stands on it before them ends before they begin, and what comes to stand behind them
/// waits for all of them. The reactor's thread.
class Playing {
 public:
  /// `origin`: if it is a detour, all of them take the detours of their lanes.
  Playing(std::shared_ptr<const RecordedSequence> sequence, Engine& engine, Queue origin)
      : sequence_(std::move(sequence)),
        engine_(&engine),
        origin_(origin),
        marks_(sequence_->steps().size()),
        queued_(sequence_->steps().size()) {}

  [[nodiscard]] bool done() const noexcept { return next_ == sequence_->steps().size(); }
  /// Nothing of it has been queued.
  [[nodiscard]] bool untouched() const noexcept { return !touched_; }
  [[nodiscard]] std::size_t next_index() const noexcept { return next_; }
  [[nodiscard]] const RecordedSequence::Step& next() const { return sequence_->steps()[next_]; }
  /// The step behind it; nullptr: it is the last.
  [[nodiscard]] const RecordedSequence::Step* following() const {
    return next_ + 1 < sequence_->steps().size() ? &sequence_->steps()[next_ + 1] : nullptr;
  }
  [[nodiscard]] Queue next_queue() const {
    return origin_.detour ? Queue(next().lane, true) : next().queue();
  }
  [[nodiscard]] Queue origin() const noexcept { return origin_; }
  [[nodiscard]] const RecordedSequence& sequence() const noexcept { return *sequence_; }

  /// Lets the queue of the next step wait for what that step waits for.
  Result<void> order_next();
  /// The next step has been queued.
  Result<void> passed();
  /// Lets the origin wait for all that has been queued.
  Result<void> join();

  /// Whether all that has been queued has ended, so that a branch, which is the next step, can read
  /// its flag. Errors: what some of it failed with.
  Result<bool> ended();
  /// Behind a branch.
  Result<void> go_on(bool jumps);
  /// The next step queues nothing.
  void pass() noexcept {
    ++next_;
    ordered_ = false;
  }
  /// All that has been queued ends before what comes next, which join() has seen to.
  void begin_again();
  /// Which steps have been queued, at least once.
  [[nodiscard]] const std::vector<bool>& queued() const noexcept { return queued_; }

 private:
  std::shared_ptr<const RecordedSequence> sequence_;
  Engine* engine_;
  Queue origin_;
  HeldMark start_;
  HeldMark end_;  ///< see ended()
  bool started_ = false, ordered_ = false, touched_ = false;
  std::vector<Queue> entered_;   ///< queues that wait for the start already
  std::vector<HeldMark> marks_;  ///< by step; of those that are awaited
  std::vector<bool> queued_;     ///< by step
  std::size_t next_ = 0;
};

/// The sequences that the rank runs, and what has been made of them; of many the recent ones. The
/// reactor's thread only.
class SequenceTable {
 public:
  static constexpr std::size_t kMost = 64;             ///< sequences
  static constexpr std::size_t kMostCommands = 65536;  ///< in all of them, while there are several

  enum class Form {
    list,    ///< its commands are queued one by one
    making,  ///< the same, while a helper makes the graph ready
    graph,
    only_list  ///< it cannot be a graph
  };
  struct Known {
    std::uint64_t number = 0;
    std::vector<std::byte> patches;  ///< that `sequence` has
    std::shared_ptr<const RecordedSequence> sequence;
    Form form = Form::list;
    std::vector<std::byte> graph_patches;  ///< that the graph has
    std::shared_ptr<Graph> graph;          ///< nullptr: none is ready
    std::shared_ptr<Graph> in_making;      ///< what a helper makes ready
    int graphs = 0;    ///< that were recorded one after another because they did not last
    int launches = 0;  ///< of this one
    std::vector<bool>
        played;  ///< by step: a list has queued it, and its library is prepared for it

    /// These steps have been queued. Whether all have been by now.
    bool note_played(const std::vector<bool>& steps);
  };

  /// The sequence as the call wants it. `list`: its records. Errors: invalid.
  Result<Known*> find(const SequenceCall& call, std::span<const std::byte> list);
  /// nullptr: it is not known any more.
  Known* find(std::uint64_t number);
  /// The graph is void.
  void drop_graph(Known& known);
  /// The graphs with collectives are void: the end of their communicator waits until they are
  /// destroyed.
  void drop_collective();
  /// Graphs that are void since the last call. They may still run, and CUDA destroys none before it
  /// has ended.
  [[nodiscard]] std::vector<std::shared_ptr<Graph>> take_void_graphs() {
    return std::exchange(void_graphs_, {});
  }

 private:
  void make_room();

  std::list<Known> known_;  ///< the last used first
  std::vector<std::shared_ptr<Graph>> void_graphs_;
  std::size_t commands_ = 0;
};

}  // namespace troupe::host
