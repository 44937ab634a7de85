#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "rank/device/memory/range_allocator.hpp"

namespace troupe::rank_process {

/// Segments (slabs or pinned ones), grown on demand, and the ranges handed out of them. An
/// allocation needs a round trip to the device host only when a new segment is made. Thread-safe.
class MemoryPool {
 public:
  /// A range of a segment.
  struct Range {
    std::uint32_t region = 0;
    std::uint64_t offset = 0;
  };
  struct Options {
    std::uint64_t segment_bytes = 64u << 20;  ///< of the first ones
    /// The next segment is up to a quarter of what is held, so that much memory takes few of them,
    /// but no larger than this (0: all are as the first ones). Larger requests get one of their
    /// own.
    std::uint64_t largest_segment_bytes = 0;
    std::uint64_t limit = 0;       ///< bytes of all segments, 0: none
    std::uint32_t region_bit = 0;  ///< set in every region id
    std::function<Result<void>(std::uint32_t region, std::uint64_t bytes)> make;  ///< may block
    std::function<void(std::uint32_t region)> drop;
  };
  static constexpr std::uint64_t kGranularity = 2u << 20;

  explicit MemoryPool(Options options) : options_(std::move(options)) {}

  /// Errors: out_of_memory, with the sizes; what `make` answers.
  Result<Range> allocate(std::uint64_t bytes);
  /// Gives a range back. An empty segment goes at once if it was made for one large request, or if
  /// it is larger than the first ones and another such is empty; others go when their memory is
  /// needed.
  void release(Range range);
  /// Bytes of all segments.
  [[nodiscard]] std::uint64_t held() const;

 private:
  struct Segment {
    std::uint64_t bytes;
    bool ordinary;  ///< not made for one large request
    RangeAllocator ranges;
  };
  using Segments = std::map<std::uint32_t, Segment>;

  /// Makes a segment with room for `bytes`, smaller than an ordinary one where the limit or the
  /// device leaves less; its region.
  Result<std::uint32_t> grow(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t ordinary_bytes() const;
  [[nodiscard]] bool is_spare(const Segment& segment) const;
  /// True if there was any.
  bool drop_empty();
  void drop(Segments::iterator it);

  Options options_;
  mutable std::mutex mutex_;
  Segments segments_;
  std::vector<std::uint32_t> free_ids_;
  std::uint32_t next_id_ = 1;
  std::uint64_t held_ = 0;
};

}  // namespace troupe::rank_process
