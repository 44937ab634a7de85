#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::host {

/// A slab: its physical memory lives as long as somebody holds `fd`.
struct Slab {
  UniqueFd fd;
  std::byte* base = nullptr;
};

/// The memory of an engine's device. Any thread; may block.
class EngineMemory {
 public:
  EngineMemory() = default;
  EngineMemory(const EngineMemory&) = delete;
  EngineMemory& operator=(const EngineMemory&) = delete;
  virtual ~EngineMemory() = default;

  /// Bytes of the device's memory that nobody has taken; 0: unknown.
  [[nodiscard]] virtual std::uint64_t free() = 0;
  /// The bytes of the device's memory by who has taken them, as far as this process knows: "slabs",
  /// "context", "communicator", libraries by name.
  virtual std::vector<std::pair<std::string, std::uint64_t>> use() = 0;

  /// Makes a slab of `bytes` (a multiple of 2 MiB), mapped here, zero-filled or not. Errors:
  /// out_of_memory.
  virtual Result<Slab> make_slab(std::uint64_t bytes) = 0;
  /// Maps a slab that another process made; does not take the descriptor.
  virtual Result<std::byte*> map_slab(int fd, std::uint64_t bytes) = 0;
  virtual void unmap_slab(std::byte* base, std::uint64_t bytes) = 0;
  /// Maps a slab of another rank of this node, perhaps on another GPU, for copies by this one; does
  /// not take the descriptor, nor count towards the memory limit. Errors: `unsupported` where one
  /// GPU cannot reach the other.
  virtual Result<std::byte*> map_foreign(int fd, std::uint64_t bytes) = 0;
  virtual void unmap_foreign(std::byte* base, std::uint64_t bytes) = 0;
  /// Maps and registers a memfd for direct copies.
  virtual Result<std::byte*> map_pinned(int fd, std::uint64_t bytes) = 0;
  virtual void unmap_pinned(std::byte* base, std::uint64_t bytes) = 0;
};

}  // namespace troupe::host
