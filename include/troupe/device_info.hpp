#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/loaded_library.hpp>

namespace troupe {

/// What is known of a rank's device; what `troupe-info` prints.
struct DeviceInfo {
  std::string engine;  ///< "cuda" or "cpu"
  std::string name;    ///< "NVIDIA H200"
  std::string uuid;    ///< "GPU-xxxxxxxx-…"; cpu engine: derived from host and ordinal
  std::string bus_id;  ///< PCI bus id, empty for the cpu engine
  std::uint64_t memory_bytes = 0;
  int numa_node = -1;  ///< -1: unknown
  /// What the engine itself stands on and what is loaded with it, in a fixed order. That of other
  /// libraries is told when these are opened.
  std::vector<LoadedLibrary> libraries;
  int compute_capability = 0;  ///< 90 of 9.0; 0: the cpu engine
};

}  // namespace troupe
