#pragma once

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"
#include "common/keeper/job.hpp"

namespace troupe::keeper {

/// A socket that listens on all addresses of this host, on a port of the system's choice. It is not
/// blocking. Errors: io.
Result<UniqueFd> listen_anywhere();

/// The card of this place, but for what MPI knows of it: its name, its addresses (those of networks
/// first, then the loopback's) and the ports of the listeners, the rank's and the keeper's own.
/// Errors: io.
Result<Card> describe_place(int listener, int own);

}  // namespace troupe::keeper
