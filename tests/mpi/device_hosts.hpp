#pragma once

#include <signal.h>
#include <unistd.h>

#include "device_rig.hpp"

/// The device hosts of this rank, seen from outside.
namespace troupe::test {

inline bool kill_active_host() { return kill_active(); }
inline std::size_t device_host_count() { return hosts().size(); }

/// CPU time that this rank's device hosts have used.
inline double device_host_cpu_seconds() {
  double seconds = 0;
  for (const auto& host : hosts()) {
    std::ifstream file("/proc/" + std::to_string(host.pid) + "/stat");
    std::string line;
    std::getline(file, line);
    std::istringstream rest(line.substr(line.rfind(')') + 2));
    std::string field;
    for (int i = 3; i < 14; ++i) rest >> field;
    double user = 0, system = 0;
    rest >> user >> system;
    seconds += (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  return seconds;
}

}  // namespace troupe::test
