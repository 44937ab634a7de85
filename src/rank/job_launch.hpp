#pragma once

#include <string>

#include "common/core/settings.hpp"
#include "rank/device/device_core.hpp"
#include "rank/net/session.hpp"

/// What of a device's launch the ranks of a job decide together.
namespace troupe::rank_process {

/// The engine of all ranks: the one that is named, else cuda if all of them can have it. All ranks
/// call it.
std::string common_engine(const Settings& settings, const Session& mpi);
/// How many cores this rank has to itself. All ranks call it.
int own_cores(Session& mpi);
/// The settings of the device of this rank of a job: see launch.hpp.
Result<DeviceCore::Options> device_options(const Settings& settings, const std::string& engine,
                                           const Session& mpi, int cores);

/// In a process that waits to become a rank: starts the device host that the rank will have, unless
/// there shall be no standbys. What keeps it from starting is said again once this is a rank. The
/// main thread, before Session::open().
void start_early_host(const Settings& settings);

/// With on-rank-loss = respawn a keeper takes the place of this process, and starts the program as
/// its child: then this does not return. Success: none is wanted, or there is one. Errors: invalid
/// (the program has initialised MPI), io.
Result<void> become_keeper(const Settings& settings, char** argv);

}  // namespace troupe::rank_process
