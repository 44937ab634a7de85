#pragma once

#include <string>

#include <troupe/clock.hpp>

#include "common/wire/port_layout.hpp"

/// What the shared memory of a device host tells of its end.
namespace troupe::rank_process {

/// What to call a loss: the fault that was ordered, else what the ending of the process says.
std::string fault_kind_of(const wire::PortHeader& header, const std::string& ending);
/// When a fault struck that is noticed now, as far as can be known.
TimePoint struck_at(const wire::PortHeader& header, TimePoint now);

}  // namespace troupe::rank_process
