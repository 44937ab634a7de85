#include "common/wire/record.hpp"

#include <string>

namespace troupe::wire {
namespace {

struct OperationInfo {
  std::string_view name;
  std::size_t bytes = 0;
  bool tail = false;
};

template <class... Ops>
OperationInfo find_in(OperationList<Ops...>, std::uint32_t opcode) noexcept {
  OperationInfo info;
  (void)(... ||
         (opcode == opcode_of<Ops> && ((info = {Ops::kName, sizeof(Ops), HasTail<Ops>}), true)));
  return info;
}

Error corrupt(std::string what) {
  return {Errc::invalid, 0, "corrupt command record: " + std::move(what)};
}

}  // namespace

void encode(const troupe::detail::CommandView& command, std::uint64_t ticket,
            std::span<std::byte> out) noexcept {
  const CommandHeader header{ticket,
                             command.opcode,
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
  const auto info = find_in(Operations{}, header_.opcode);
  if (info.name.empty()) return corrupt("unknown opcode " + std::to_string(header_.opcode));
  name_ = info.name;
  if (header_.op_bytes != info.bytes) return corrupt(std::string(name_) + " of the wrong size");
  if (header_.tail_count > kMaxTail || (header_.tail_count != 0 && !info.tail)) {
    return corrupt(std::string(name_) + " with a tail of " + std::to_string(header_.tail_count));
  }
  const std::size_t tail_bytes = header_.tail_count * sizeof(PeerTransfer);
  const std::size_t expected = sizeof(CommandHeader) + info.bytes + tail_bytes;
  if (record.size() != expected) {
    return corrupt(std::string(name_) + " of " + std::to_string(record.size()) +
                   " bytes, expected " + std::to_string(expected));
  }
  std::memcpy(storage_.data(), record.data() + sizeof header_, info.bytes);
  tail_.resize(header_.tail_count);
  if (tail_bytes != 0)
    std::memcpy(tail_.data(), record.data() + sizeof header_ + info.bytes, tail_bytes);

  Result<void> outcome;
  visit([&](const auto& op) {
    outcome = op.check();
    if (outcome.ok()) outcome = troupe::detail::check_overlap(op, tail_);
  });
  return outcome;
}

std::string_view operation_name(std::uint32_t opcode) noexcept {
  const auto info = find_in(Operations{}, opcode);
  return info.name.empty() ? "unknown" : info.name;
}

}  // namespace troupe::wire
