#include "rank/device/recording/recorder.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include <troupe/lib/memory.hpp>
#include <troupe/lib/sequence.hpp>

namespace troupe::rank_process {
namespace {

thread_local Recorder* innermost = nullptr;

constexpr std::string_view kOtherRanks =
    "the collectives before it are of another communicator, and a run is one collective";

Error not_recorded(std::string_view name, std::string_view why) {
  return {Errc::unsupported, 0,
          std::string(name) + " cannot be recorded" + (why.empty() ? "" : ": ") + std::string(why)};
}

/// Whether a command has a result cell for more than to say that it has failed.
bool has_value(const OperationInfo& info, const std::byte* op) {
  if (info.cell == nullptr) return false;
  // What only fails does so with any number but 0.
  alignas(8) constexpr std::array<std::byte, 64> kOne{std::byte{1}};
  return info.verdict == nullptr || info.verdict(op, kOne.data()).ok();
}

/// Takes out what a recording has for itself: where result cells are, and the flags of branches.
void blank_cells(wire::SequenceRecord& record) {
  wire::CommandHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  const auto* const info = find_operation(header.opcode).info;
  const bool own = info->library() == "memory" || info->library() == "sequence";
  for (const auto& operand : info->operands) {
    auto* const at = record.data() + sizeof header + operand.offset;
    Operand range;
    std::memcpy(&range, at, sizeof range);
    const bool pinned = (range.region & kPinnedRegion) != 0;
    if (info->cell == &operand || (own && pinned)) std::memset(at, 0, sizeof range);
  }
}

/// Makes a factor one that may be anything: above all not zero, which would mean that what it
/// scales is not read.
void forget_factor(std::span<std::byte> op, std::size_t at) {
  const auto value = op.subspan(at, sizeof(Scalar::value));
  std::fill(value.begin(), value.end(), std::byte{1});
}

/// A command with parameters: what its record is made from, with factors and operands yet to come.
struct Variable {
  std::vector<std::byte> op;  ///< as it is recorded
  std::vector<TailOperand> tail;
  std::vector<std::byte> unknown;  ///< op with factors of which nothing is known
  std::vector<Recording::Place> places;

  Variable(const detail::CommandView& command, std::uint32_t number)
      : op(command.op.begin(), command.op.end()),
        tail(command.tail.begin(), command.tail.end()),
        unknown(op) {
    constexpr std::size_t kOp = sizeof(wire::CommandHeader);
    for (const auto& info : command.info->operands) {
      auto& operand = command.info->operand(op.data(), info);
      const auto parameter = std::exchange(operand.reserved, 0);
      command.info->operand(unknown.data(), info).reserved = 0;
      if (parameter == 0) continue;
      const bool moves = operand.present();
      add(parameter, number,
          kOp + info.offset + (moves ? offsetof(Operand, offset) : sizeof(Operand)), moves);
      if (!moves) forget_factor(unknown, info.offset + sizeof(Operand));
    }
    for (std::size_t i = 0; i < tail.size(); ++i) {
      const auto parameter = std::exchange(tail[i].range.reserved, 0);
      if (parameter == 0) continue;
      add(parameter, number,
          kOp + op.size() + i * sizeof(TailOperand) + offsetof(TailOperand, range) +
              offsetof(Operand, offset),
          true);
    }
  }

 private:
  void add(std::uint32_t parameter, std::uint32_t number, std::size_t at, bool moves) {
    places.push_back({parameter, number, static_cast<std::uint32_t>(at), moves});
  }
};

/// The command with factors of which nothing is known, where a run may change them.
std::vector<std::byte> with_unknown_factors(const wire::Command& command, std::uint32_t number,
                                            const std::vector<Recording::Place>& places) {
  std::vector<std::byte> op(command.op(), command.op() + command.info().bytes);
  for (const auto& place : places) {
    const auto at = place.offset - sizeof(wire::CommandHeader);
    if (place.command == number && !place.moves && at < op.size()) forget_factor(op, at);
  }
  return op;
}

/// Where the commands of a sequence that come in any case begin again, behind this one.
std::size_t behind_branch(const wire::Command& command, std::size_t number) {
  const auto* const branch = command.as<sequence::Branch>();
  return branch != nullptr && branch->by > 0 ? number + static_cast<std::size_t>(branch->by) : 0;
}

}  // namespace

Result<JointAccess> Recording::access_of(
    const std::vector<wire::SequenceRecord>& its_records) const {
  JointAccess all;
  wire::Command command;
  std::size_t surely_from = 0;  // behind what a branch may pass over
  for (std::uint32_t i = 0; i < its_records.size(); ++i) {
    if (auto decoded = command.decode(its_records[i]); !decoded)
      return Error{
          decoded.code(), 0,
          "command " + std::to_string(i + 1) + " of the sequence: " + decoded.error().message};
    surely_from = std::max(surely_from, behind_branch(command, i));
    const auto unknown = with_unknown_factors(command, i, places);
    all.add(detail::CommandView(command.info(), unknown, command.parts()), i >= surely_from);
  }
  return all;
}

bool Recording::does_the_same(const Recording& other) const {
  if (epoch != other.epoch) return false;
  return std::equal(records.begin(), records.end(), other.records.begin(), other.records.end(),
                    [](auto mine, auto theirs) {
                      if (mine == theirs) return true;
                      if (mine.size() != theirs.size()) return false;
                      blank_cells(mine), blank_cells(theirs);
                      return mine == theirs;
                    });
}

Recorder::Recorder(CommandPort& port) : port_(&port), outer_(std::exchange(innermost, this)) {}

Recorder::~Recorder() {
  innermost = outer_;
  forget();
}

void Recorder::forget() {
  for (const auto buffer : std::exchange(recorded_, {}).held) port_->buffers().release(buffer);
}

Recorder* Recorder::of(const CommandPort& port) noexcept {
  for (auto* one = innermost; one != nullptr; one = one->outer_) {
    if (one->port_ == &port) return one;
  }
  return nullptr;
}

Future<void> Recorder::refuse(Error error) {
  if (!failed_) failed_ = error;
  return Future<void>(Result<void>(std::move(error)));
}

Result<detail::ResultCell> Recorder::result_cell(std::size_t bytes) {
  auto cell = port_->result_cell(bytes);
  if (cell.ok()) keep(cell->lease);
  return cell;
}

void Recorder::keep(std::shared_ptr<const void> what) {
  if (recorded_.keeps.empty() || recorded_.keeps.back() != what)
    recorded_.keeps.push_back(std::move(what));
}

Result<void> Recorder::hold(const Operand& range) {
  if ((range.region & (kPinnedRegion | kForeignRegion)) != 0) return {};
  if (auto held = port_->buffers().hold(range); !held) return held;
  recorded_.held.push_back(range.buffer);
  return {};
}

bool Recorder::full(std::size_t more) {
  return recorded_.records.size() + more > sequence::kMaxCommands;
}

/// FNV-1a over what the ranks must do alike. Messages are between some of them, and count for
/// nothing.
void Recorder::agree_on(const OperationInfo& info, const std::byte* op) {
  if (!info.traits.collective) return;
  auto& hash = recorded_.agreed;
  if (hash == 0) hash = 14695981039346656037u;
  const auto add = [&hash](std::uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8)
      hash = (hash ^ (number >> shift & 0xff)) * 1099511628211u;
  };
  if (info.agreement == nullptr) return;
  add(info.opcode);
  const auto call = info.agreement(op);
  for (const std::uint64_t number : {std::uint64_t{call.dtype}, std::uint64_t{call.reduction},
                                     std::uint64_t{call.root}, call.count})
    add(number);
}

Result<void> Recorder::check_kind(const OperationInfo& info, const std::byte* op) const {
  if (has_value(info, op))
    return Error{Errc::unsupported, 0,
                 std::string(info.name) +
                     ": a call with a value cannot be recorded: its value "
                     "would be that of which run?"};
  if (!info.traits.capturable) return not_recorded(info.name, "");
  if (info.verdict != nullptr && depth_ > 0)
    return not_recorded(info.name, "within if_ and while_ nobody would be told of its failure");
  return {};
}

Result<void> Recorder::check_operands(const detail::CommandView& command) {
  const auto& info = *command.info;
  if (auto kind = check_kind(info, command.op.data()); !kind) return kind;
  const auto outside = [&](const Operand& range) {
    return (range.region & kPinnedRegion) != 0 && info.library() == "memory";
  };
  for (const auto& use : command.uses()) {
    if (outside(*use.range)) return not_recorded(info.name, "what it copies is the host's");
    if (auto held = hold(*use.range); !held)
      return Error{
          held.code(), 0,
          std::string(info.name) + ": " + std::string(use.name) + ": " + held.error().message};
  }
  for (const auto& part : command.tail) {
    if (auto held = hold(part.range); !held)
      return Error{
          held.code(), 0,
          std::string(info.name) + ": " + std::string(info.tail) + ": " + held.error().message};
  }
  return {};
}

Future<void> Recorder::submit(const detail::CommandView& command) {
  if (failed_) return Future<void>(Result<void>(*failed_));
  if (full(1)) return refuse(not_recorded(command.info->name, "the sequence is too long"));
  if (auto fit = check_operands(command); !fit) return refuse(fit.error());
  const auto number = static_cast<std::uint32_t>(recorded_.records.size());
  const Variable own(command, number);
  const Parts parts(own.tail, command.data);
  if (command.info->traits.collective) {
    if (recorded_.agreed != 0 && recorded_.communicator != command.scope.group)
      return refuse(not_recorded(command.info->name, kOtherRanks));
    recorded_.communicator = command.scope.group;
  } else if (command.scope.epoch != 0) {
    recorded_.epoch = command.scope.epoch;
  }
  // It belongs to any epoch, unless it reads other ranks' memory.
  const detail::CommandView recorded(*command.info, own.op, parts, {0, command.scope.group});
  wire::SequenceRecord record(wire::record_bytes(recorded));
  wire::encode(recorded, 0, record);
  recorded_.access.add(detail::CommandView(*command.info, own.unknown, parts), depth_ == 0);
  recorded_.places.insert(recorded_.places.end(), own.places.begin(), own.places.end());
  const auto data_at =
      static_cast<std::uint32_t>(record.size()) - static_cast<std::uint32_t>(command.data.size());
  for (const auto& one : command.parameters)
    recorded_.places.push_back({one.id, number, data_at + one.offset, false});
  recorded_.repeatable = recorded_.repeatable && command.info->traits.repeatable;
  agree_on(*command.info, command.op.data());
  recorded_.records.push_back(std::move(record));
  return Future<void>(Result<void>());
}

Result<wire::SequenceRecord> Recorder::with_own_cell(wire::SequenceRecord record) {
  wire::CommandHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  const auto* const info = find_operation(header.opcode).info;
  if (info->cell == nullptr) return record;
  auto* const at = record.data() + sizeof header + info->cell->offset;
  Operand where;
  std::memcpy(&where, at, sizeof where);
  const auto cell = result_cell(where.bytes);
  if (!cell) return cell.error();
  std::memcpy(at, &cell->where, sizeof cell->where);
  return record;
}

Future<void> Recorder::add(const Recording& other) {
  if (failed_) return Future<void>(Result<void>(*failed_));
  if (full(other.records.size()))
    return refuse(not_recorded("sequence.run", "the sequence is too long"));
  const auto first = static_cast<std::uint32_t>(recorded_.records.size());
  if (other.agreed != 0) {
    if (recorded_.agreed != 0 && recorded_.communicator != other.communicator)
      return refuse(not_recorded("sequence.run", kOtherRanks));
    recorded_.communicator = other.communicator;
  }
  if (other.epoch != 0) recorded_.epoch = other.epoch;
  wire::Command command;
  std::size_t surely_from = 0;  // of it: behind what a branch may pass over
  for (std::uint32_t i = 0; i < other.records.size(); ++i) {
    auto record = with_own_cell(other.records[i]);
    if (!record) return refuse(record.error());
    if (auto decoded = command.decode(*record); !decoded) return refuse(decoded.error());
    if (auto kind = check_kind(command.info(), command.op()); !kind) return refuse(kind.error());
    for (const auto& use : command.operands()) {
      if (auto held = hold(*use.range); !held) return refuse(held.error());
    }
    const auto unknown = with_unknown_factors(command, i, other.places);
    surely_from = std::max(surely_from, behind_branch(command, i));
    recorded_.access.add(detail::CommandView(command.info(), unknown, command.parts()),
                         depth_ == 0 && i >= surely_from);
    agree_on(command.info(), command.op());
    recorded_.records.push_back(std::move(*record));
  }
  for (auto place : other.places) {
    place.command += first;
    recorded_.places.push_back(place);
  }
  recorded_.repeatable = recorded_.repeatable && other.repeatable;
  recorded_.branches = recorded_.branches || other.branches;
  recorded_.keeps.insert(recorded_.keeps.end(), other.keeps.begin(), other.keeps.end());
  return Future<void>(Result<void>());
}

template <Operation Op>
void Recorder::append(const Op& op) {
  const detail::CommandView view(info_of<Op>, std::as_bytes(std::span(&op, 1)));
  wire::SequenceRecord record(wire::record_bytes(view));
  wire::encode(view, 0, record);
  recorded_.access.add(view, depth_ == 0);
  recorded_.records.push_back(std::move(record));
}

void Recorder::branch(const Operand& flag, bool again, const std::function<void()>& calls) {
  if (failed_) return;
  auto cell = port_->result_cell(sizeof(std::int32_t));
  auto held = cell.ok() ? hold(flag) : Result<void>(cell.error());
  if (held.ok() && full(3)) held = not_recorded("a branch", "the sequence is too long");
  if (!held.ok()) return (void)refuse(held.error());
  keep(cell->lease);
  const auto first = static_cast<std::int64_t>(recorded_.records.size());
  append(memory::Copy{DType::i32, flag, cell->where});
  sequence::Branch test;
  test.flag = cell->where;
  ++depth_;
  append(test);
  try {
    calls();
  } catch (...) {  // the branch has no end: whoever catches this must not have a sequence
    --depth_;
    (void)refuse({Errc::invalid, 0, "record: an exception has left the calls of if_ or while_"});
    throw;
  }
  --depth_;
  const auto end = static_cast<std::int64_t>(recorded_.records.size()) + (again ? 1 : 0);
  test.by = end - (first + 1);
  std::memcpy(
      recorded_.records[static_cast<std::size_t>(first) + 1].data() + sizeof(wire::CommandHeader),
      &test, sizeof test);
  sequence::Branch back;
  back.by = first - (end - 1);
  if (again) append(back);
  recorded_.branches = true;
}

Result<Recording> Recorder::take() {
  if (failed_) return *failed_;
  if (recorded_.branches && recorded_.agreed != 0)
    return Error{Errc::unsupported, 0,
                 "record: in a sequence with collectives nothing can depend on a flag"};
  if (recorded_.agreed != 0 && recorded_.records.size() > sequence::kMaxCollectiveCommands)
    return Error{Errc::unsupported, 0,
                 "record: a sequence with collectives has at most " +
                     std::to_string(sequence::kMaxCollectiveCommands) + " commands, this one has " +
                     std::to_string(recorded_.records.size())};
  return std::exchange(recorded_, {});
}

}  // namespace troupe::rank_process
