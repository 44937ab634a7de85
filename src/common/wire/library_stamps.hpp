#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <troupe/error.hpp>

/// What processes that exchange commands tell one another of the operations that they know. Those
/// of a library that both know must be the same; a library that only one knows is no error.
namespace troupe::wire {

/// A LibraryFingerprint.
struct LibraryStamp {
  std::array<char, 24> name{};  ///< ended by 0
  std::uint64_t fingerprint = 0;
  std::uint32_t lane = 0;  ///< its number in the process that says so; 0: it has none of its own
  std::uint32_t reserved = 0;
  /// The content id of the module of a library outside troupe. A device host writes it once it has
  /// loaded the module; the rank passes it on to later hosts, which load no other. Zeros: unknown.
  std::array<std::uint64_t, 2> module{};

  [[nodiscard]] std::string_view library() const noexcept {
    return {name.data(), ::strnlen(name.data(), name.size())};
  }
};

/// Those of all libraries of a process; an empty name ends them.
using LibraryStamps = std::array<LibraryStamp, 32>;

/// This process's. Errors: invalid if there are too many libraries, or a name is too long.
Result<LibraryStamps> library_stamps();

/// Compares those of another process with this one's libraries. `other`: who it is, as in "rank 3
/// and `other` know different operations of library blas". Errors: invalid.
Result<void> compare_stamps(const LibraryStamps& stamps, const std::string& self,
                            const std::string& other);

}  // namespace troupe::wire
