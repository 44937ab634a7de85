#include "device_host/sequences.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/lib/sequence.hpp>

#include "common/wire/sequence_list.hpp"
#include "device_host/hazards.hpp"

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
    step.command = std::make_unique<wire::Command>();
    if (auto decoded = step.command->decode(record); !decoded) return decoded.error();
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

/// A step's place in its lane is its own number, from 1: places only have to grow.
void RecordedSequence::find_order() {
  HazardTracker hazards;
  std::array<HazardTracker::Waits, kLaneCount> waited{};  // by lane, for the others
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    auto& step = steps_[i];
    const Queue own(step.lane);
    auto& has_waited = waited[own.index()];
    HazardTracker::Waits waits{};
    for (const auto& use : step.command->operands()) hazards.collect(*use.range, use.access, waits);
    for (const auto lane : lanes_) {
      const auto place = waits[Queue(lane).index()];
      if (lane == step.lane || place <= has_waited[Queue(lane).index()]) continue;
      has_waited[Queue(lane).index()] = place;
      step.behind.push_back(static_cast<std::uint32_t>(place - 1));
      steps_[place - 1].awaited = true;
    }
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
  if (queue != origin_ &&
      std::find(entered_.begin(), entered_.end(), queue.lane) == entered_.end()) {
    if (auto waits = engine_->wait(queue, start_.get()); !waits) return waits;
    entered_.push_back(queue.lane);
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
  ++next_;
  ordered_ = false;
  touched_ = true;
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

void Playing::go_on(bool jumps) {
  next_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(next_) + (jumps ? next().by : 1));
  started_ = ordered_ = false;
  entered_.clear();
  end_ = HeldMark();
  for (auto& mark : marks_) mark = HeldMark();
}

Result<void> Playing::join() {
  for (const auto lane : entered_) {
    auto end = engine_->mark({lane, origin_.detour});
    if (!end) return end.error();
    const HeldMark held(*engine_, *end);
    if (auto waits = engine_->wait(origin_, held.get()); !waits) return waits;
  }
  return {};
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
    known_.pop_back();
  }
}

void SequenceTable::drop_graph(Known& known) {
  if (known.launches >= kLasting) known.graphs = 0;
  known.launches = 0;
  known.graph = known.in_making = nullptr;
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
