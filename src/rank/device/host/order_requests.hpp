#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "rank/device/device_order.hpp"
#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/host_requests.hpp"

/// What orders, and the groups of a program, mean to a device host.
namespace troupe::rank_process {

/// quiesce, contribute or connect. `then` is called with the answer, unless the host is lost
/// before. Errors: the host cannot be asked.
Result<void> ask_for(HostRequests& requests, const HostLink& host, const DeviceOrder& order,
                     std::function<void(Result<std::vector<std::byte>>)> then);

/// Groups are formed beside the work of the host that serves; nullptr: there is none.
void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ContributeGroup& order);
void ask_for(HostRequests& requests, const HostLink* host,
             const device_message::ConnectGroup& order);

}  // namespace troupe::rank_process
