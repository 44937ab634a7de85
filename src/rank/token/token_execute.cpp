#include "rank/token/token_execute.hpp"

#include <cstring>
#include <string>

#include <troupe/lib/operation_info.hpp>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

Result<routed::Execute> execute_request(const detail::CommandView& command) {
  routed::Execute request{.operation = std::string(command.info->name)};
  const auto bytes = wire::record_bytes(command);
  if (bytes + request.operation.size() > kLongestRequest) {
    return Error{Errc::invalid, 0,
                 "a command of " + std::to_string(bytes) + " bytes cannot travel"};
  }
  request.record.resize(bytes);
  wire::encode(command, 0, request.record);
  return request;
}

Result<std::span<const std::byte>> record_of(const routed::Execute& request, int rank) {
  const std::span<const std::byte> record(request.record);
  wire::CommandHeader header;
  if (record.size() < sizeof header)
    return Error{Errc::invalid, 0, "a request to execute is too short"};
  std::memcpy(&header, record.data(), sizeof header);
  if (find_operation(header.opcode).info != nullptr) return record;
  const auto& name = request.operation;
  return Error{Errc::unsupported, 0,
               name + " cannot be asked of rank " + std::to_string(rank) +
                   ": its program does not include library " + name.substr(0, name.find('.'))};
}

}  // namespace troupe::rank_process
