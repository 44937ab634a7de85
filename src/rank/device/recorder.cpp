#include "rank/device/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <troupe/lib/memory.hpp>
#include <troupe/lib/sequence.hpp>

namespace troupe::rank {
namespace {

thread_local Recorder* innermost = nullptr;

constexpr std::string_view kOtherRanks =
    "the collectives before it are of another communicator, and a run is one collective";

Error not_recorded(std::string_view name, std::string_view why) {
  return {Errc::unsupported, 0,
          std::string(name) + " cannot be recorded" + (why.empty() ? "" : ": ") + std::string(why)};
}

/// Makes a factor one that may be anything: above all not zero, which would mean that what it
/// scales is not read.
void forget_factor(std::span<std::byte> op, std::size_t at) {
  const auto value = op.subspan(at, sizeof(Scalar::value));
  std::fill(value.begin(), value.end(), std::byte{1});
}

/// Of a command whose record is made from these: factors that are parameters.
struct Factors {
  std::vector<std::byte> op;       ///< as it is recorded
  std::vector<std::byte> unknown;  ///< the same with factors of which nothing is known
  std::vector<Recording::Place> places;

  Factors(const detail::CommandView& command, std::uint32_t number)
      : op(command.op.begin(), command.op.end()), unknown(op) {
    for (const auto& info : command.info->operands) {
      auto& operand = command.info->operand(op.data(), info);
      if (operand.present() || operand.reserved == 0) continue;
      const auto at = info.offset + static_cast<std::uint32_t>(sizeof(Operand));
      places.push_back(
          {operand.reserved, number, static_cast<std::uint32_t>(sizeof(wire::CommandHeader)) + at});
      operand.reserved = 0;
      command.info->operand(unknown.data(), info).reserved = 0;
      forget_factor(unknown, at);
    }
  }
};

}  // namespace

Recorder::Recorder(CommandPort& port) : port_(&port), outer_(std::exchange(innermost, this)) {}

Recorder::~Recorder() {
  innermost = outer_;
  forget();
}

void Recorder::forget() {
  for (const auto buffer : std::exchange(recorded_, {}).held) port_->release(buffer);
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

Result<detail::ResultCell> Recorder::result_cell(std::size_t) {
  return Error{Errc::unsupported, 0,
               "a call with a value cannot be recorded: its value would be that of which run?"};
}

void Recorder::keep(std::shared_ptr<const void> what) {
  recorded_.keeps.push_back(std::move(what));
}

Result<void> Recorder::hold(const Operand& range) {
  if ((range.region & (kPinnedRegion | kForeignRegion)) != 0) return {};
  if (auto held = port_->hold(range); !held) return held;
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

Result<void> Recorder::check_operands(const detail::CommandView& command) {
  const auto& info = *command.info;
  if (!info.traits.capturable) return not_recorded(info.name, "");
  const auto outside = [&](const Operand& range) {
    return is_foreign(range.region) ||
           ((range.region & kPinnedRegion) != 0 && info.library() == "memory");
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
  const Factors factors(command, number);
  const Parts parts(command.tail, command.data);
  if (command.info->traits.collective) {
    if (recorded_.agreed != 0 && recorded_.communicator != command.scope.group)
      return refuse(not_recorded(command.info->name, kOtherRanks));
    recorded_.communicator = command.scope.group;
  }
  // Of any epoch.
  const detail::CommandView recorded(*command.info, factors.op, parts, {0, command.scope.group});
  wire::SequenceRecord record(wire::record_bytes(recorded));
  wire::encode(recorded, 0, record);
  recorded_.access.add(detail::CommandView(*command.info, factors.unknown, parts), depth_ == 0);
  recorded_.places.insert(recorded_.places.end(), factors.places.begin(), factors.places.end());
  const auto data_at =
      static_cast<std::uint32_t>(record.size()) - static_cast<std::uint32_t>(command.data.size());
  for (const auto& one : command.parameters)
    recorded_.places.push_back({one.id, number, data_at + one.offset});
  recorded_.repeatable = recorded_.repeatable && command.info->traits.repeatable;
  agree_on(*command.info, command.op.data());
  recorded_.records.push_back(std::move(record));
  return Future<void>(Result<void>());
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
  wire::Command command;
  std::int64_t surely_from = 0;  // of it: behind what a branch may pass over
  for (std::uint32_t i = 0; i < other.records.size(); ++i) {
    if (auto decoded = command.decode(other.records[i]); !decoded) return refuse(decoded.error());
    for (const auto& use : command.operands()) {
      if (auto held = hold(*use.range); !held) return refuse(held.error());
    }
    std::vector<std::byte> unknown(command.op(), command.op() + command.info().bytes);
    for (const auto& place : other.places) {
      const auto at = place.offset - sizeof(wire::CommandHeader);
      if (place.command == i && at < unknown.size()) forget_factor(unknown, at);
    }
    if (const auto* const branch = command.as<sequence::Branch>(); branch && branch->by > 0)
      surely_from = std::max(surely_from, std::int64_t{i} + branch->by);
    recorded_.access.add(detail::CommandView(command.info(), unknown, command.parts()),
                         depth_ == 0 && std::int64_t{i} >= surely_from);
    agree_on(command.info(), command.op());
    recorded_.records.push_back(other.records[i]);
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
  calls();
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

}  // namespace troupe::rank
