#pragma once

#include <string>

#include <troupe/launched_job.hpp>
#include <troupe/runtime.hpp>

/// What a job tries out before it runs, for `troupe-info --check`. Each answers what is wrong on
/// this rank, or nothing; all ranks call it, and all of them go through it to its end.
namespace troupe::info {

/// Sums up numbers of all ranks by an all_reduce and compares every element of the result.
std::string try_all_reduce(Runtime& runtime, const LaunchedJob& job);
/// Reads a buffer of each other rank of this node. With --token-path peer nothing but a mapping of
/// the other GPU's memory will do.
std::string try_peers(Runtime& runtime, const LaunchedJob& job);
/// What this rank's GPU says of itself that speaks against it; nothing where there is none.
std::string look_at_health(const Device& device);

}  // namespace troupe::info
