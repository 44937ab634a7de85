#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace troupe::net {

/// Memory of one process that another one of the same host reads by itself: one copy, where a
/// connection makes two and more.
struct NearMemory {
  std::int64_t process = 0;  ///< the number of the process that has it
  std::uint64_t address = 0;
  /// The reader finds these bytes at that address if it looks into the right process: in another
  /// namespace of processes the number may mean another one.
  std::uint64_t proof_address = 0;
  std::uint64_t proof[2] = {};
};

/// This process's memory, for others. nullopt: the system has no random numbers for the proof.
[[nodiscard]] std::optional<NearMemory> offer(std::span<const std::byte> memory);
/// Reads all of it. False: this process must not, or cannot; then `to` has anything.
[[nodiscard]] bool read(const NearMemory& from, std::span<std::byte> to);

}  // namespace troupe::net
