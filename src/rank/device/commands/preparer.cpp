#include "rank/device/commands/preparer.hpp"

#include <troupe/lib/memory.hpp>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

Future<void> Preparer::submit(const detail::CommandView& command) {
  const auto bytes = wire::record_bytes(command);
  std::vector<std::uint64_t> record((bytes + 7) / 8);  // for its alignment
  const auto data = std::as_writable_bytes(std::span(record)).first(bytes);
  wire::encode(command, 0, data);
  return detail::submit(port_, memory::Prepare{}, Parts(std::span<const TailOperand>(), data));
}

}  // namespace troupe::rank_process
