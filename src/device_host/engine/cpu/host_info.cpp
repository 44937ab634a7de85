#include "device_host/engine/cpu/host_info.hpp"

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <fstream>
#include <string>

#include "common/ipc/pages.hpp"

namespace troupe::host::cpu {
namespace {

/// What follows "key...: " in a file of such lines; empty if there is none.
std::string value_of(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    if (colon != std::string::npos && begin != std::string::npos) return line.substr(begin);
  }
  return {};
}

/// FNV-1a of the host's name and its boot id, in hexadecimal.
std::string host_hash() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : name + boot) hash = (hash ^ static_cast<std::uint8_t>(c)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace

DeviceInfo describe_host(int ordinal) {
  DeviceInfo description;
  description.engine = "cpu";
  description.name = value_of("/proc/cpuinfo", "model name");
  if (description.name.empty()) description.name = "CPU";
  description.uuid = "CPU-" + host_hash() + "-" + std::to_string(ordinal);
  description.memory_bytes = ipc::total_memory();
  return description;
}

}  // namespace troupe::host::cpu
