#pragma once

#include <string>

#include <troupe/config.hpp>
#include <troupe/error.hpp>
#include <troupe/saved_state.hpp>

#include "rank/device/device_core.hpp"

namespace troupe::rank {

/// Which engine "auto" is on this machine: cuda where its module is installed and the NVIDIA driver
/// is loaded.
bool cuda_is_possible(const Config& config);

/// The settings of a rank's device from its configuration. `backend` is "cpu" or "cuda". Errors: io
/// if the device-host program or the engine module is missing.
Result<DeviceCore::Options> device_options(const Config& config, const std::string& backend,
                                           int local_rank, int local_size);

/// Where runs keep their state, from the configuration.
SaveOptions save_options(const Config& config);
/// The signal by which a run is asked to stop; 0: none.
int stop_signal(const Config& config);

}  // namespace troupe::rank
