#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::rank_process {

/// Hands out ranges of one slab: best fit, coalescing on release, aligned to kAlignment. Works on
/// offsets only and never touches the memory. One thread.
class RangeAllocator {
 public:
  static constexpr std::uint64_t kAlignment = 512;

  explicit RangeAllocator(std::uint64_t bytes);

  /// Offset of a free range of at least `bytes` (rounded up to kAlignment; 0 counts as 1).
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  /// Gives back what allocate() returned.
  void release(std::uint64_t offset);

  [[nodiscard]] std::uint64_t used() const noexcept { return used_; }
  [[nodiscard]] bool empty() const noexcept { return used_ == 0; }

 private:
  void add_free(std::uint64_t offset, std::uint64_t bytes);
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator it);

  std::map<std::uint64_t, std::uint64_t> free_;                ///< offset -> bytes
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  ///< (bytes, offset)
  std::map<std::uint64_t, std::uint64_t> taken_;               ///< offset -> bytes
  std::uint64_t used_ = 0;
};

}  // namespace troupe::rank_process
