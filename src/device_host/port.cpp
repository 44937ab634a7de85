#include "device_host/port.hpp"

#include <unistd.h>

namespace troupe::host {

Result<Port> Port::open(UniqueFd segment_fd) {
  auto head = ipc::SharedMemory::map(UniqueFd(::dup(segment_fd.get())), sizeof(wire::PortHeader));
  if (!head) return head.error();
  const auto& header = *reinterpret_cast<const wire::PortHeader*>(head->data());
  if (header.version != wire::kPortVersion) {
    return Error{Errc::invalid, 0,
                 "the rank and troupe-device-host are of different versions of troupe"};
  }
  if (auto same = wire::compare_stamps(header.libraries, "troupe-device-host", "the rank"); !same)
    return same.error();
  auto segment = ipc::SharedMemory::map(
      std::move(segment_fd), wire::port_bytes(header.command_capacity, header.reply_capacity));
  if (!segment) return segment.error();
  return Port(std::move(*segment));
}

}  // namespace troupe::host
