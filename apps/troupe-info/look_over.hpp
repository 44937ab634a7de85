#pragma once

#include <string>
#include <vector>

#include <troupe/config.hpp>

namespace troupe::info {

/// The command line, with what a check is better off with unless it or another source of `config`
/// has it: no standby to wait for, a short deadline, and no other way to a GPU of the same node
/// than through its memory.
std::vector<std::string> arguments_of_check(int argc, char** argv, const Config& config);

/// Looks the job over that this program was launched as, as `config` would have it: one line for
/// each check, from rank 0, and what --json names. The main() of `--check`. The exit status:
/// kExitSuccess, or kExitFailure if a check has failed.
int look_over(int argc, char** argv, const Config& config);

}  // namespace troupe::info
