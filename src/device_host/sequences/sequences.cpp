#include "device_host/sequences/sequences.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/lib/collective.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/sequence.hpp>

#include "common/wire/sequence_list.hpp"
#include "device_host/lanes/hazards.hpp"

namespace troupe::host {
namespace {

/// Launches after which a graph has been worth its making.
constexpr int kLasting = 16;

Result<void> put_in(const sequence::Patch& patch, std::vector<wire::SequenceRecord>& records) {
  if (patch.command < records.size() && patch.bytes <= patch.value.size()) {
    auto& record = records[patch.command];
    if (patch.offset >= sizeof(wire::CommandHeader) && patch.bytes <= record.size() &&
        patch.offset <= record.size() - patch.bytes) {
      std::memcpy(record.data() + patch.offset, patch.value.data(), patch.bytes);
      return {};
    }
  }
  return Error{Errc::invalid, 0, "a patch lies outside of its command"};
}

}  // namespace

SequenceCall sequence_call(const wire::Command& command) {
  const auto opcode = command.header().opcode;
  if (opcode != opcode_of<sequence::Run> && opcode != opcode_of<sequence::RepeatableRun> &&
      opcode != opcode_of<sequence::CollectiveRun>)
    return {};
  const auto& op = *reinterpret_cast<const sequence::Run*>(command.op());
  return {op.number, op.commands, &op.list, command.parts().data};
}

bool names_for_order(const wire::Command& command) {
  return command.as<collective::Barrier>() != nullptr || sequence_call(command).number != 0;
}

Result<std::shared_ptr<const RecordedSequence>> RecordedSequence::make(
    const SequenceCall& call, std::span<const std::byte> list) {
  auto records = wire::unpack_records(list, call.commands);
  if (!records) return records.error();
  for (std::size_t at = 0; at + sizeof(sequence::Patch) <= call.patches.size();
       at += sizeof(sequence::Patch)) {
    sequence::Patch patch;
    std::memcpy(&patch, call.patches.data() + at, sizeof patch);
    if (auto applied = put_in(patch, *records); !applied) return applied.error();
  }
  auto made = std::make_shared<RecordedSequence>();
  for (const auto& record : *records) {
    Step step;
    const auto command = std::make_shared<wire::Command>();
    if (auto decoded = command->decode(record); !decoded) return decoded.error();
    step.command = command;
    if (!step.command->info().traits.capturable)
      return Error{Errc::invalid, 0,
                   std::string(step.command->name()) + " cannot be part of a sequence"};
    step.lane = step.command->lane();
    if (const auto* const branch = step.command->as<sequence::Branch>()) {
      const auto at = static_cast<std::ptrdiff_t>(made->steps_.size()), to = at + branch->by;
      if (to < 0 || to > static_cast<std::ptrdiff_t>(records->size()) ||
          (branch->flag.present() && (branch->flag.region & kPinnedRegion) == 0))
        return Error{Errc::invalid, 0, "a branch of a sequence leads out of it"};
      step.by = branch->by;
      if (branch->flag.present()) step.flag = &branch->flag;
      made->branches_ = true;
    }
    if (step.command->info().verdict != nullptr)
      made->judged_.push_back(static_cast<std::uint32_t>(made->steps_.size()));
    if (!made->uses(step.lane)) made->lanes_.push_back(step.lane);
    made->steps_.push_back(std::move(step));
  }
  made->find_watched();
  made->find_order();
  return std::shared_ptr<const RecordedSequence>(std::move(made));
}

bool RecordedSequence::uses(Lane lane) const {
  return std::find(lanes_.begin(), lanes_.end(), lane) != lanes_.end();
}

std::size_t RecordedSequence::steps_on(Lane lane) const {
  return static_cast<std::size_t>(std::count_if(
      steps_.begin(), steps_.end(), [lane](const Step& step) { return step.lane == lane; }));
}

void RecordedSequence::find_watched() {
  for (std::size_t i = 1; i < steps_.size(); ++i) {
    const auto* const flag = steps_[i].flag;
    const auto* const copy = steps_[i - 1].command->as<memory::Copy>();
    if (flag != nullptr && copy != nullptr && copy->destination.region == flag->region &&
        copy->destination.offset == flag->offset && copy->source.bytes == flag->bytes)
      steps_[i].watched = &copy->source;
  }
}

std::shared_ptr<const RecordedSequence> RecordedSequence::spread(Lane lane) const {
  auto made = std::make_shared<RecordedSequence>(*this);
  for (auto& step : made->steps_) {
    step.behind.clear();
    step.awaited = false;
  }
  made->find_order(lane);
  return made;
}

namespace {

/// Spreads the steps of a lane over its queues: one that depends on what stands last on a queue
/// takes that; another one takes the queue that the shortest chain of steps leads to.
class Spreading {
 public:
  explicit Spreading(std::size_t steps) : depth_(steps) {}

  std::uint8_t side_for(Lane lane, const Waits& waits) const {
    std::uint8_t best = 0;
    bool behind = false;
    for (std::uint8_t side = 0; side <= Queue::kSides; ++side) {
      const auto queue = Queue::aside(lane, side);
      const auto newest = newest_[queue.index()];
      const bool depends = newest != 0 && waits[queue.index()] == newest;
      const auto its = depth_of(newest),
                 so_far = depth_of(newest_[Queue::aside(lane, best).index()]);
      if (side == 0 || (depends && (!behind || its > so_far)) ||
          (!depends && !behind && its < so_far)) {
        best = side;
        behind = depends;
      }
    }
    return best;
  }
  void add(std::size_t step, Queue queue, const Waits& waits) {
    auto depth = depth_of(newest_[queue.index()]);
    waits.for_each([&](std::size_t, Sequence place) { depth = std::max(depth, depth_of(place)); });
    depth_[step] = depth + 1;
    newest_[queue.index()] = step + 1;
  }

 private:
  /// The depth of the step at this place; 0 without one.
  [[nodiscard]] std::size_t depth_of(Sequence place) const {
    return place == 0 ? 0 : depth_[place - 1];
  }
  std::vector<std::size_t> depth_;  ///< steps of the longest chain that ends with it
  Places newest_{};
};

}  // namespace

/// A step's place on its queue is its own number, from 1: places only have to grow.
void RecordedSequence::find_order(std::optional<Lane> sides_of) {
  HazardTracker hazards;
  Spreading spreading(steps_.size());
  std::array<Places, kQueueCount> waited{};  // by queue, for the others
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& step = steps_[i];
    Waits waits;
    for (const auto& use : step.command->operands()) hazards.collect(*use.range, use.access, waits);
    step.side = step.lane == sides_of ? spreading.side_for(step.lane, waits) : std::uint8_t{0};
    const auto own = step.queue();
    spreading.add(i, own, waits);
    auto& has_waited = waited[own.index()];
    waits.for_each([&](std::size_t other, Sequence place) {
      if (other == own.index() || place <= has_waited[other]) return;
      has_waited[other] = place;
      step.behind.push_back(static_cast<std::uint32_t>(place - 1));
      steps_[place - 1].awaited = true;
    });
    for (const auto& use : step.command->operands())
      hazards.record(*use.range, use.access, own, i + 1);
  }
}

Result<void> Playing::order_next() {
  if (ordered_) return {};
  if (!started_) {
    auto start = engine_->mark(origin_);
    if (!start) return start.error();
    start_ = HeldMark(*engine_, *start);
    started_ = true;
  }
  const auto queue = next_queue();
  if (queue != origin_ && std::find(entered_.begin(), entered_.end(), queue) == entered_.end()) {
    if (auto waits = engine_->wait(queue, start_.get()); !waits) return waits;
    entered_.push_back(queue);
  }
  for (const auto before : next().behind) {
    if (!marks_[before]) continue;  // it was passed over, or has ended before a branch
    if (auto waits = engine_->wait(queue, marks_[before].get()); !waits) return waits;
  }
  ordered_ = true;
  return {};
}

Result<void> Playing::passed() {
  if (next().awaited) {
    auto mark = engine_->mark(next_queue());
    if (!mark) return mark.error();
    marks_[next_] = HeldMark(*engine_, *mark);
  }
  queued_[next_] = true;
  touched_ = true;
  pass();
  return {};
}

Result<bool> Playing::ended() {
  if (!end_) {
    if (auto joined = join(); !joined) return joined.error();
    auto mark = engine_->mark(origin_);
    if (!mark) return mark.error();
    end_ = HeldMark(*engine_, *mark);
  }
  return engine_->reached(end_.get());
}

Result<void> Playing::go_on(bool jumps) {
  // Who has not asked whether all has ended: what comes next is ordered behind the origin alone.
  if (!end_) {
    if (auto joined = join(); !joined) return joined;
  }
  next_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(next_) + (jumps ? next().by : 1));
  begin_again();
  return {};
}

void Playing::begin_again() {
  started_ = ordered_ = false;
  entered_.clear();
  end_ = HeldMark();
  for (auto& mark : marks_) mark = HeldMark();
}

Result<void> Playing::join() {
  for (const auto queue : entered_) {
    auto end = engine_->mark(queue);
    if (!end) return end.error();
    const HeldMark held(*engine_, *end);
    if (auto waits = engine_->wait(origin_, held.get()); !waits) return waits;
  }
  return {};
}

bool SequenceTable::Known::note_played(const std::vector<bool>& steps) {
  played.resize(steps.size());
  bool all = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i]) played[i] = true;
    all = all && (played[i] || sequence->steps()[i].by != 0);
  }
  return all;
}

SequenceTable::Known* SequenceTable::find(std::uint64_t number) {
  const auto it = std::find_if(known_.begin(), known_.end(),
                               [number](const Known& one) { return one.number == number; });
  if (it == known_.end()) return nullptr;
  known_.splice(known_.begin(), known_, it);
  return &known_.front();
}

Result<SequenceTable::Known*> SequenceTable::find(const SequenceCall& call,
                                                  std::span<const std::byte> list) {
  auto* known = find(call.number);
  if (known != nullptr && std::equal(call.patches.begin(), call.patches.end(),
                                     known->patches.begin(), known->patches.end()))
    return known;
  auto made = RecordedSequence::make(call, list);
  if (!made) return made.error();
  if (known == nullptr) {
    commands_ += (*made)->steps().size();
    known = &known_.emplace_front();
    known->number = call.number;
    make_room();
  }
  known->sequence = std::move(*made);
  known->patches.assign(call.patches.begin(), call.patches.end());
  return known;
}

void SequenceTable::make_room() {
  while (known_.size() > kMost || (known_.size() > 1 && commands_ > kMostCommands)) {
    commands_ -= known_.back().sequence->steps().size();
    drop_graph(known_.back());
    known_.pop_back();
  }
}

void SequenceTable::drop_graph(Known& known) {
  if (known.launches >= kLasting) known.graphs = 0;
  known.launches = 0;
  for (auto* graph : {&known.graph, &known.in_making}) {
    if (*graph != nullptr) void_graphs_.push_back(std::exchange(*graph, nullptr));
  }
  known.form = Form::list;
}

void SequenceTable::drop_collective() {
  for (auto& known : known_) {
    if (!known.sequence->collective()) continue;
    drop_graph(known);
    known.graphs = 0;
  }
}

}  // namespace troupe::host
