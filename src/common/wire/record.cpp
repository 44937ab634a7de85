#include "common/wire/record.hpp"

#include <string>

namespace troupe::wire {
namespace {

Error corrupt(std::string what) {
  return {Errc::invalid, 0, "corrupt command record: " + std::move(what)};
}

}  // namespace

void encode(const troupe::detail::CommandView& command, std::uint64_t ticket,
            std::span<std::byte> out) noexcept {
  const CommandHeader header{ticket,
                             command.info->opcode,
                             command.epoch,
                             static_cast<std::uint16_t>(command.op.size()),
                             static_cast<std::uint16_t>(command.tail.size()),
                             0};
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, command.op.data(), command.op.size());
  if (!command.tail.empty()) {
    std::memcpy(out.data() + sizeof header + command.op.size(), command.tail.data(),
                command.tail.size_bytes());
  }
}

Result<void> Command::decode(std::span<const std::byte> record) {
  if (record.size() < sizeof(CommandHeader)) return corrupt("shorter than its header");
  std::memcpy(&header_, record.data(), sizeof header_);
  info_ = find_operation(header_.opcode);
  if (info_ == nullptr) return corrupt("unknown opcode " + std::to_string(header_.opcode));
  const auto& info = *info_;
  if (header_.op_bytes != info.bytes)
    return corrupt(std::string(info.name) + " of the wrong size");
  if (header_.tail_count > kMaxTail || (header_.tail_count != 0 && info.tail.empty())) {
    return corrupt(std::string(info.name) + " with a tail of " +
                   std::to_string(header_.tail_count));
  }
  const std::size_t tail_bytes = header_.tail_count * sizeof(TailOperand);
  const std::size_t expected = sizeof(CommandHeader) + info.bytes + tail_bytes;
  if (record.size() != expected) {
    return corrupt(std::string(info.name) + " of " + std::to_string(record.size()) +
                   " bytes, expected " + std::to_string(expected));
  }
  std::memcpy(storage_.data(), record.data() + sizeof header_, info.bytes);
  tail_.resize(header_.tail_count);
  if (tail_bytes != 0)
    std::memcpy(tail_.data(), record.data() + sizeof header_ + info.bytes, tail_bytes);

  for (const auto& part : tail_) {
    if (part.access < Access::read || part.access > Access::update)
      return corrupt(std::string(info.name) +
                     ": an operand of its tail is neither read nor written");
  }
  if (auto sound = info.check(op()); !sound) return sound;
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
