#pragma once

#include <cstdint>

#include <troupe/gpu_health.hpp>

namespace troupe::rank_process {

/// The driver has stopped what a program runs on the GPU. After a trap it says so some 0.3 s before
/// any call of CUDA's does.
inline constexpr std::uint64_t kXidChannelReset = 43;

/// What the driver's error report of this number says of the GPU's health. Source: NVIDIA, "GPU
/// Debug Guidelines and Xid Errors", the Xid catalogue
/// (docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html).
///
/// Of the GPU *failing* speak only those after which it is not fit for work in any case. Where the
/// catalogue leaves it to the circumstances, the state that NVML tells decides: rows that wait to
/// be replaced, the recovery action, NVLinks that are down (see HealthChanges).
HealthEvent event_of_xid(std::uint64_t xid);

}  // namespace troupe::rank_process
