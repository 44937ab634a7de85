#pragma once

#include <netinet/in.h>

#include "common/keeper/job.hpp"

namespace troupe::net {

/// Where `from` reaches the rank that listens at `to`: by the loopback address within a host, else
/// by an address in a network that both are in, else by the first one.
[[nodiscard]] sockaddr_in address_of(const keeper::Card& to, const keeper::Card& from);

}  // namespace troupe::net
