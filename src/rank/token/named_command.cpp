#include "rank/token/named_command.hpp"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

Future<void> Guest::submit(const detail::CommandView& command) {
  auto quiet = command;
  quiet.quiet = true;
  quiet.within = epoch_;
  return port_->try_submit(quiet);
}

Result<Operand> named_here(const Operand& named, int rank, const CommandPort& port) {
  if (named.region != (kTokenRegion | static_cast<std::uint32_t>(rank)))
    return Error{Errc::invalid, 0, "an operand is not a buffer of rank " + std::to_string(rank)};
  return port.buffers().translate(named);
}

Result<Future<void>> submit_named(std::span<const std::byte> record, int rank, DeviceCore& device,
                                  detail::Submitter& submitter) {
  const auto& port = device.port();
  wire::Command command;
  if (auto decoded = command.decode(record); !decoded) return decoded.error();
  const auto& info = command.info();
  if (!info.traits.remote) {
    return Error{Errc::unsupported, 0, std::string(info.name) + " cannot be asked of another rank"};
  }
  alignas(8) std::array<std::byte, OperationInfo::kMaxBytes> here;
  std::memcpy(here.data(), command.op(), info.bytes);
  for (const auto& operand : info.operands) {
    auto& range = info.operand(here.data(), operand);
    if (!range.present()) continue;
    auto named = named_here(range, rank, port);
    if (!named) return named.error();
    range = *named;
  }
  std::vector<TailOperand> tail(command.tail().begin(), command.tail().end());
  for (auto& part : tail) {
    auto named = named_here(part.range, rank, port);
    if (!named) return named.error();
    part.range = *named;
  }
  const Parts parts{tail, command.parts().data};
  // What the program has made itself stands with its owner under other names.
  const bool repeatable = info.opcode == opcode_of<kernel::RepeatableLaunchThere>;
  if (repeatable || info.opcode == opcode_of<kernel::LaunchThere>)
    return device.modules().launch_for_other(
        submitter, *reinterpret_cast<const kernel::Launch*>(here.data()), repeatable, parts);
  if (info.opcode == opcode_of<functions::CallThere>)
    return functions::submit_here(
        submitter, *reinterpret_cast<const functions::CallThere*>(here.data()), parts);
  return detail::submit(submitter, info, std::span(here).first(info.bytes), parts);
}

}  // namespace troupe::rank_process
