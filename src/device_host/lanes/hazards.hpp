#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "device_host/engine/region_table.hpp"
#include "device_host/lanes/waits.hpp"

namespace troupe::host {

/// Keeps what one rank submitted equivalent to running it in order, while queues run concurrently.
///
/// Every operation has a place (queue, sequence number). For each range of memory the tracker
/// remembers the place of the last writer and, per queue, of the last reader since. An operation
/// must wait, on every other queue, for the newest place it conflicts with: read-after-write,
/// write-after-read, write-after-write. Ranges are split where accesses overlap in part, so any mix
/// of ranges works; ranges that nothing tells apart any more are joined. What is known to be
/// complete is forgotten. One thread.
class HazardTracker {
 public:
  /// Adds to `waits` what an access to the operand has to wait for.
  void collect(const Operand& operand, Access access, Waits& waits) const;
  /// Notes the access as made by the operation at (queue, sequence). What is done up to `completed`
  /// no longer keeps ranges apart.
  void record(const Operand& operand, Access access, Queue queue, Sequence sequence,
              const Places& completed = {});
  /// All places up to `completed` are done: their traces may go.
  void forget(const Places& completed);
  void forget_region(std::uint32_t region) {
    recent_ = {};
    regions_[region].clear();
  }
  void clear() {
    recent_ = {};
    regions_.clear();
  }

  [[nodiscard]] std::size_t size() const;

 private:
  struct Segment {
    std::uint64_t end = 0;
    Queue writer_queue;
    Sequence writer = 0;
    Waits readers;

    [[nodiscard]] bool is_like(const Segment& other) const {
      return writer == other.writer && (writer == 0 || writer_queue == other.writer_queue) &&
             readers == other.readers;
    }
  };
  using Segments = std::map<std::uint64_t, Segment>;  ///< by first byte; disjoint
  /// A segment that an access was found to be to, as a whole.
  struct Recent {
    std::uint32_t region = 0;
    std::uint64_t begin = 0;
    Segment* segment = nullptr;
  };

  static void split(Segments& segments, std::uint64_t at);
  /// Joins neighbours from `begin` to `end` that are alike: many small ranges that are read as one
  /// would otherwise cost every later reader as much.
  void join(Segments& segments, std::uint64_t begin, std::uint64_t end);
  static std::size_t place_of(const Operand& operand) noexcept;
  /// The operand's segment, if it is a whole one and was met not long ago; else nullptr.
  [[nodiscard]] Segment* met(const Operand& operand) const noexcept;
  static void note(Segment& segment, Access access, Queue queue, Sequence sequence);

  RegionTable<Segments> regions_;
  /// Most accesses are to the range of some earlier one, again. Emptied where segments go.
  std::array<Recent, 32> recent_{};
};

}  // namespace troupe::host
