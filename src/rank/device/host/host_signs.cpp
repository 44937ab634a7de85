#include "rank/device/host/host_signs.hpp"

#include <troupe/lib/memory.hpp>

namespace troupe::rank_process {

std::string fault_kind_of(const wire::PortHeader& header, const std::string& ending) {
  if (header.fault_ns.load(std::memory_order_acquire) != 0) {
    const auto kind = header.fault_kind.load(std::memory_order_relaxed);
    if (kind < memory::kFaultKindCount)
      return std::string(to_string(static_cast<memory::FaultKind>(kind)));
  }
  if (ending == "killed by signal 6" && !header.last_words.text().empty())
    return std::string(to_string(memory::FaultKind::assertion));
  if (ending == "killed by signal 9") return "kill";
  if (ending == "killed by signal 11") return "segv";
  if (ending.starts_with("exited")) return "exit";
  return ending;
}

TimePoint struck_at(const wire::PortHeader& header, TimePoint now) {
  const TimePoint ordered(header.fault_ns.load(std::memory_order_acquire));
  const TimePoint beat(header.heartbeat_ns.load(std::memory_order_acquire));
  return ordered.count() != 0 ? ordered : beat.count() != 0 ? beat : now;
}

}  // namespace troupe::rank_process
