#include <troupe/sequence.hpp>

#include <algorithm>
#include <atomic>
#include <optional>

#include <troupe/lib/sequence.hpp>

#include "common/wire/kind.hpp"
#include "rank/device/device_core.hpp"
#include "rank/device/recording/recorder.hpp"
#include "rank/device/recording/step_recorder.hpp"

// Recorded sequences: the rank keeps their lists of records, in pinned memory, which each device
// host has; what a device host makes of one is its own.

namespace troupe::detail {

/// What the copies of a Sequence share.
struct SequenceState {
  std::shared_ptr<rank_process::DeviceCore> core;
  rank_process::Recording recording;
  PinnedBuffer<std::uint8_t> list;
  std::vector<TailOperand> operands;
  std::uint64_t number = 0;

  SequenceState(std::shared_ptr<rank_process::DeviceCore> its_core,
                rank_process::Recording recorded)
      : core(std::move(its_core)), recording(std::move(recorded)) {}
  ~SequenceState() {
    for (const auto buffer : recording.held) core->port().buffers().release(buffer);
  }
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;
};

}  // namespace troupe::detail

namespace troupe {
namespace {

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> newest{0};
  return ++newest;
}

/// What the calls record; nullptr: they submit nothing. Throws Exception.
std::shared_ptr<detail::SequenceState> recorded(
    const std::shared_ptr<rank_process::DeviceCore>& core, const std::function<void()>& calls) {
  if (rank_process::Recorder::of(core->port()) != nullptr)
    throw Exception({Errc::invalid, 0, "record: this thread records already"});
  rank_process::Recorder recorder(core->port());
  calls();
  auto recording = recorder.take().take();
  if (recording.records.empty()) return nullptr;
  return std::make_shared<detail::SequenceState>(core, std::move(recording));
}

/// A run is one command, which names all that the sequence names. Throws Exception (unsupported).
void check_size(const detail::SequenceState& state) {
  const auto operands = state.operands.size();
  const auto patches = std::min<std::size_t>(
      state.recording.places.size() * sizeof(sequence::Patch), sequence::Run::kData);
  const auto bytes = sizeof(wire::CommandHeader) + sizeof(sequence::Run) +
                     operands * sizeof(TailOperand) + patches;
  if (state.core->port().takes(operands, bytes)) return;
  throw Exception({Errc::unsupported, 0,
                   "record: the sequence names " + std::to_string(operands) +
                       " ranges of memory, more than one command can: at most " +
                       std::to_string(wire::kMaxTail) + ", and as --ring-size allows"});
}

/// The program will run commands with these records again and again: whoever takes over prepares
/// them.
void prepare_others(rank_process::DeviceCore& core,
                    const std::vector<wire::SequenceRecord>& records) {
  rank_process::device_message::KindsRecur message;
  wire::Command command;
  for (const auto& record : records) {
    if (!command.decode(record).ok() || command.lane() < Lane::first_library) continue;
    if (!command.info().traits.not_prepared)
      message.kinds.emplace_back(wire::kind_key(command), record);
  }
  if (!message.kinds.empty()) core.tell(std::move(message));
}

/// Makes it ready to run. Throws Exception: unsupported (see check_size), out_of_memory.
void finish(detail::SequenceState& state) {
  auto operands = state.recording.access.operands(sequence::Run::kOverwritten);
  if (!operands) throw Exception({operands.code(), 0, "record: " + operands.error().message});
  state.operands = std::move(*operands);
  const auto& records = state.recording.records;
  check_size(state);
  const auto packed = wire::pack_records(records);
  state.list = Device(state.core).pinned<std::uint8_t>(packed.size());
  std::memcpy(state.list.data(), packed.data(), packed.size());
  state.number = next_sequence();
  prepare_others(*state.core, records);
}

Result<void> check_move(const ParameterValue::Move& to) {
  if (to.fits()) return {};
  return Error{Errc::invalid, 0,
               to.elsewhere
                   ? "sequence.run: a reference is moved to a part of another buffer, or of "
                     "another length"
                   : "sequence.run: a reference is moved out of its bounds: " +
                         std::to_string(to.length) + " elements from " + std::to_string(to.first) +
                         " on are not all within " + std::to_string(to.within)};
}

/// What takes the place of a recorded offset.
std::array<std::byte, 16> moved_by(const wire::SequenceRecord& record, std::uint32_t at,
                                   const ParameterValue& given) {
  std::uint64_t offset = 0, by = 0;
  std::memcpy(&offset, record.data() + at, sizeof offset);
  std::memcpy(&by, given.value.data(), sizeof by);
  offset += by;
  std::array<std::byte, 16> value{};
  std::memcpy(value.data(), &offset, sizeof offset);
  return value;
}

/// What the values change. Errors: invalid.
Result<std::vector<sequence::Patch>> patches_of(const rank_process::Recording& recording,
                                                std::span<const ParameterValue> values) {
  std::vector<sequence::Patch> patches;
  for (const auto& given : values) {
    if (given.move) {
      if (auto fits = check_move(*given.move); !fits) return fits.error();
    }
    const auto before = patches.size();
    for (const auto& place : recording.places) {
      if (place.parameter != given.id) continue;
      patches.push_back({place.command, place.offset, given.bytes, 0,
                         place.moves
                             ? moved_by(recording.records[place.command], place.offset, given)
                             : given.value});
    }
    if (patches.size() == before)
      return Error{Errc::invalid, 0, "sequence.run: no command of it has the parameter"};
  }
  return patches;
}

std::vector<wire::SequenceRecord> patched(std::vector<wire::SequenceRecord> records,
                                          std::span<const sequence::Patch> patches) {
  for (const auto& patch : patches)
    std::memcpy(records[patch.command].data() + patch.offset, patch.value.data(), patch.bytes);
  return records;
}

/// What the sequence names if operands of it are moved. Errors: invalid (as its commands say, which
/// may not take operands that overlap).
Result<std::vector<TailOperand>> moved_operands(const rank_process::Recording& recording,
                                                std::span<const sequence::Patch> patches) {
  const auto access = recording.access_of(patched(recording.records, patches));
  if (!access) return Error{access.code(), 0, "sequence.run: " + access.error().message};
  auto operands = access->operands(sequence::Run::kOverwritten);
  if (!operands) return Error{operands.code(), 0, "sequence.run: " + operands.error().message};
  return operands;
}

template <class Op>
Future<void> submit_run(detail::Submitter& submitter, const sequence::Run& run, const Parts& parts,
                        const detail::Scope& scope = {}) {
  Op op;
  static_cast<sequence::Run&>(op) = run;
  return detail::submit(submitter, op, parts, scope);
}

/// The refusal of a sequence that reads memory of other ranks, of an epoch that the program has
/// left; nullopt: it may run.
std::optional<Future<void>> end_of_epoch(rank_process::DeviceCore& core,
                                         const rank_process::Recording& recording) {
  if (recording.epoch == 0) return std::nullopt;
  const auto world = core.collectives();
  if (recording.epoch == world.epoch) return std::nullopt;
  const Error stale{Errc::stale, 0,
                    "sequence.run: it reads memory of other ranks, of an epoch that has ended: "
                    "record it again"};
  return recording.agreed == 0
             ? core.port().refuse(stale)
             : world.submitter->refuse_collective(stale, {world.epoch, recording.communicator});
}

/// Submits the commands of a sequence one by one, in its place.
Future<void> run_singly(rank_process::DeviceCore& core, const rank_process::Recording& recording,
                        std::span<const sequence::Patch> patches) {
  std::vector<Future<void>> futures;
  wire::Command command;
  for (const auto& record : patched(recording.records, patches)) {
    if (auto decoded = command.decode(record); !decoded) return core.port().refuse(decoded.error());
    const std::span op(command.op(), command.info().bytes);
    if (!command.info().traits.collective) {
      futures.push_back(core.submitter().submit(
          detail::CommandView(command.info(), op, command.parts(), {recording.epoch})));
      continue;
    }
    const auto world = core.collectives();
    futures.push_back(world.submitter->submit(detail::CommandView(
        command.info(), op, command.parts(), {world.epoch, recording.communicator})));
  }
  return when_all(std::move(futures));
}

void branch(const Device& device, const GpuRef<std::int32_t>& flag, bool again,
            const std::function<void()>& calls) {
  auto* const recorder = rank_process::Recorder::of(device.core().port());
  if (recorder == nullptr)
    throw Exception({Errc::invalid, 0, "if_ and while_ are for recordings: see Device::record"});
  recorder->branch(flag.slice(0, 1).operand(), again, calls);
}

}  // namespace

std::size_t Sequence::commands() const {
  return state_ == nullptr ? 0 : state_->recording.records.size();
}

Future<void> Sequence::run(std::span<const ParameterValue> values) const {
  detail::require(state_ != nullptr, "run of an empty Sequence");
  auto& port = state_->core->port();
  const auto& recording = state_->recording;
  auto* const recorder = rank_process::Recorder::of(port);
  const auto patches = patches_of(recording, values);
  if (!patches.ok())
    return recorder != nullptr ? recorder->refuse(patches.error()) : port.refuse(patches.error());
  if (recorder != nullptr) {
    auto part = recording;
    part.records = patched(std::move(part.records), *patches);
    std::erase_if(part.places, [&](const rank_process::Recording::Place& place) {
      return std::any_of(values.begin(), values.end(),
                         [&](const ParameterValue& given) { return given.id == place.parameter; });
    });
    return recorder->add(part);
  }
  if (auto ended = end_of_epoch(*state_->core, recording)) return *ended;
  if (state_->core->runs_singly() && !recording.branches)
    return run_singly(*state_->core, recording, *patches);
  sequence::Run op;
  op.number = state_->number;
  op.commands = recording.records.size();
  op.list = state_->list.operand();
  op.agreed = recording.agreed;
  const bool moves =
      std::any_of(values.begin(), values.end(), [](const auto& given) { return given.move; });
  Result<std::vector<TailOperand>> moved = std::vector<TailOperand>();
  if (moves) moved = moved_operands(recording, *patches);
  if (!moved) return port.refuse(moved.error());
  const Parts parts(moves ? *moved : state_->operands, std::as_bytes(std::span(*patches)));
  if (op.agreed != 0) {
    const auto world = state_->core->collectives();
    return submit_run<sequence::CollectiveRun>(*world.submitter, op, parts,
                                               {world.epoch, recording.communicator});
  }
  return recording.repeatable
             ? submit_run<sequence::RepeatableRun>(port, op, parts, {recording.epoch})
             : submit_run<sequence::Run>(port, op, parts, {recording.epoch});
}

void if_(const Device& device, const GpuRef<std::int32_t>& flag,
         const std::function<void()>& calls) {
  branch(device, flag, false, calls);
}
void while_(const Device& device, const GpuRef<std::int32_t>& flag,
            const std::function<void()>& calls) {
  branch(device, flag, true, calls);
}

Sequence Device::record(const std::function<void()>& calls) const {
  auto state = recorded(core_, calls);
  if (state == nullptr)
    throw Exception({Errc::invalid, 0, "record: nothing was submitted to the device"});
  finish(*state);
  return Sequence(std::move(state));
}

}  // namespace troupe

namespace troupe::rank_process {

void StepRecorder::run(const std::function<void()>& calls) {
  auto fresh = recorded(core_, calls);
  if (fresh == nullptr) return;
  const auto same = std::find_if(known_.begin(), known_.end(), [&](const auto& one) {
    return one->recording.does_the_same(fresh->recording);
  });
  if (same != known_.end()) {
    known_.splice(known_.begin(), known_, same);
  } else {
    finish(*fresh);
    known_.push_front(std::move(fresh));
    if (known_.size() > kMost) known_.pop_back();
  }
  (void)Sequence(known_.front()).run();
}

}  // namespace troupe::rank_process
