#include "rank/token/token_execute.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <troupe/lib/operation_info.hpp>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

Result<TokenPacket> execute_request(const detail::CommandView& command) {
  const auto name = std::as_bytes(std::span(command.info->name));
  const auto bytes = wire::record_bytes(command);
  if (bytes + name.size() > kMaxTokenPayload) {
    return Error{Errc::invalid, 0,
                 "a command of " + std::to_string(bytes) + " bytes cannot travel"};
  }
  TokenPacket request{.head = {.kind = TokenMessage::Kind::execute,
                               .value = static_cast<std::uint32_t>(name.size()),
                               .payload_bytes = static_cast<std::uint32_t>(bytes + name.size())},
                      .payload = std::vector<std::byte>(bytes + name.size())};
  wire::encode(command, 0, std::span(request.payload).first(bytes));
  std::copy(name.begin(), name.end(), request.payload.end() - std::ssize(name));
  return request;
}

Result<std::span<const std::byte>> record_of(const TokenPacket& request, int rank) {
  const std::span<const std::byte> payload(request.payload);
  wire::CommandHeader header;
  if (payload.size() < sizeof header || payload.size() - sizeof header < request.head.value)
    return Error{Errc::invalid, 0, "a request to execute is too short"};
  const auto record = payload.first(payload.size() - request.head.value);
  std::memcpy(&header, record.data(), sizeof header);
  if (find_operation(header.opcode).info != nullptr) return record;
  const std::string name(reinterpret_cast<const char*>(payload.last(request.head.value).data()),
                         request.head.value);
  return Error{Errc::unsupported, 0,
               name + " cannot be asked of rank " + std::to_string(rank) +
                   ": its program does not include library " + name.substr(0, name.find('.'))};
}

}  // namespace troupe::rank_process
