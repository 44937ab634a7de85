#include "rank/device/commands/port_shared.hpp"

#include <utility>

namespace troupe::rank_process {

Resolved::State PortShared::close(std::uint64_t ticket) {
  tickets.for_each_named(ticket,
                         [&](std::uint32_t buffer, bool) { buffers.at(buffer).uses.lower(); });
  return tickets.close(ticket);
}

void PortShared::advance(Resolved& resolved) {
  tickets.advance();
  for (auto& [state, outcome] : outcomes.ready(tickets.retired()))
    resolved.add(std::move(state), outcome);
}

void PortShared::lose_spoilt(Resolved& resolved) {
  for (const auto& spoilt : resolved.spoilt()) {
    // In another epoch a rollback may have restored it. And once its command is closed, a buffer
    // that nobody refers to may be freed, and its entry be that of another.
    const auto& entry = buffers.at(spoilt.buffer);
    if (spoilt.epoch == current_epoch() && entry.live &&
        entry.first_generation <= spoilt.generation)
      buffers.lose(spoilt.buffer, spoilt.by);
  }
  resolved.spoilt().clear();
}

}  // namespace troupe::rank_process
