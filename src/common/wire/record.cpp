#include "common/wire/record.hpp"

#include <new>
#include <string>

namespace troupe::wire {
namespace {

Error corrupt(std::string what) {
  return {Errc::invalid, 0, "corrupt command record: " + std::move(what)};
}

}  // namespace

void encode(const troupe::detail::CommandView& command, std::uint64_t ticket,
            std::span<std::byte> out) noexcept {
  // Made where it is to stand: to copy it at once would wait for the stores of its fields.
  ::new (out.data()) CommandHeader{.ticket = ticket,
                                   .opcode = command.info->opcode,
                                   .epoch = command.scope.epoch,
                                   .op_bytes = static_cast<std::uint16_t>(command.op.size()),
                                   .tail_count = static_cast<std::uint16_t>(command.tail.size()),
                                   .data_bytes = static_cast<std::uint32_t>(command.data.size()),
                                   .communicator = command.scope.group};
  auto* to = out.data() + sizeof(CommandHeader);
  const auto append = [&to](const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    to += bytes;
  };
  append(command.op.data(), command.op.size());
  append(command.tail.data(), command.tail.size_bytes());
  append(command.data.data(), command.data.size());
}

KnownOperation Command::known(std::uint32_t opcode) noexcept {
  auto& recent = recent_[opcode % recent_.size()];
  if (recent.info == nullptr || recent.info->opcode != opcode) recent = find_operation(opcode);
  return recent;
}

Result<void> Command::decode(std::span<const std::byte> record) {
  if (record.size() < sizeof(CommandHeader)) return corrupt("shorter than its header");
  std::memcpy(&header_, record.data(), sizeof header_);
  operation_ = known(header_.opcode);
  if (operation_.info == nullptr)
    return corrupt("unknown opcode " + std::to_string(header_.opcode));
  const auto& info = *operation_.info;
  if (header_.op_bytes != info.bytes) return corrupt(std::string(info.name) + " of the wrong size");
  if (header_.tail_count > kMaxTail || header_.data_bytes > info.max_data) {
    return corrupt(std::string(info.name) + " with a tail of " +
                   std::to_string(header_.tail_count) + " and " +
                   std::to_string(header_.data_bytes) + " inline bytes");
  }
  const std::size_t tail_bytes = header_.tail_count * sizeof(TailOperand);
  const std::size_t expected = sizeof header_ + info.bytes + tail_bytes + header_.data_bytes;
  if (record.size() != expected) {
    return corrupt(std::string(info.name) + " of " + std::to_string(record.size()) +
                   " bytes, expected " + std::to_string(expected));
  }
  const auto* from = record.data() + sizeof header_;
  std::memcpy(storage_.data(), from, info.bytes);
  tail_.resize(header_.tail_count);
  if (tail_bytes != 0) std::memcpy(tail_.data(), from + info.bytes, tail_bytes);
  data_.assign(from + info.bytes + tail_bytes, record.data() + record.size());

  if (auto sound = check_operation(info, op(), parts()); !sound) return sound;
  operands_.clear();
  for (const auto& operand : info.operands) {
    const auto& range = info.operand(op(), operand);
    if (range.present()) operands_.push_back({&range, info.access(op(), operand), operand.name});
  }
  if (auto apart =
          troupe::detail::check_overlap(info.name, info.in_place, operands_, info.tail, tail_);
      !apart)
    return apart;
  for (const auto& part : tail_) {
    operands_.push_back({&part.range, part.access, info.tail});
  }
  return {};
}

}  // namespace troupe::wire
