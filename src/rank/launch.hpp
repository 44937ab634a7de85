#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/error.hpp>
#include <troupe/saved_state.hpp>

#include "common/core/settings.hpp"
#include "rank/device/device_core.hpp"
#include "rank/world/rehearsal_options.hpp"

namespace troupe::rank_process {

/// Which engine "auto" is on this machine: cuda where its module is installed and the NVIDIA driver
/// is loaded.
bool cuda_is_possible(const Settings& settings);

/// The cores that this process may run on: a '1' or a '0' for each; empty if that is unknown.
std::string core_mask();

/// How many cores a rank of a node has to itself, given the core_mask() of each rank of that node:
/// a core that several ranks may run on is divided among them. So it is right where each rank is
/// bound to cores of its own as well as where all share the node. At least 1.
int core_share(const std::vector<std::string>& masks, std::size_t rank);

/// How a rank's device is to be made. `engine` is "cpu" or "cuda", `cores`
/// the rank's core_share(). Errors: io if the device-host program or the engine module is missing;
/// invalid for a network interface that is not there, and for settings that exclude one another.
Result<DeviceCore::Options> device_options(const Settings& settings, const std::string& engine,
                                           int local_rank, int cores);

/// Settings that contradict one another are Errc::invalid: deadlines of which one would end a job
/// that another is there to save, and what is to be told in a trace that nobody asks for.
Result<void> check_settings(const Settings& settings);

/// True if the first segments of shared memory are within the limit of file sizes. Errors: io, with
/// EFBIG, which names the limit and the option.
Result<void> check_segments(const Settings& settings, const std::string& engine);

/// Where runs keep their state; the configuration tells which of the program's options shape it.
SaveOptions save_options(const Settings& settings, const Config& config);
/// The program that starts ranks with on-rank-loss = respawn.
std::string keeper_program();
/// How runs are rehearsed; nullopt: they are not.
std::optional<RehearsalOptions> rehearsal_options(const Settings& settings);
/// The signal by which a run is asked to stop; 0: none.
int stop_signal(const Settings& settings);

}  // namespace troupe::rank_process
