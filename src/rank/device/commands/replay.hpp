#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "common/wire/record.hpp"

namespace troupe::rank_process {

/// A set of bytes of device and pinned memory.
class ByteRanges {
 public:
  void add(std::uint32_t region, std::uint64_t first, std::uint64_t bytes);
  [[nodiscard]] bool overlaps(const Operand& range) const { return !within({}, range); }
  /// Whether every byte of the range that is in this set is in `other` too.
  [[nodiscard]] bool within(const ByteRanges& other, const Operand& range) const;

 private:
  using Parts = std::map<std::uint64_t, std::uint64_t>;  ///< first to end; disjoint, not touching

  [[nodiscard]] bool covers(std::uint32_t region, std::uint64_t first, std::uint64_t end) const;

  std::unordered_map<std::uint32_t, Parts> regions_;
};

/// Which of the commands that were in flight when their device host died may run again on the next
/// one, with the result that they would have had.
///
/// A command in flight may have run, in part, in full or not at all. So what any of them writes is
/// *suspect*. Running again in program order, a command finds its inputs as they were unless a byte
/// of them is suspect and has not been *renewed*, written in full by one that ran again before it.
/// An operand that is updated is an input too, and suspect by its own command: y = a x + y runs
/// again only behind what made y. Collectives do not run again, their epoch is over; nor do faults
/// that were ordered, nor reads of other ranks' memory, which may have changed.
class ReplayPlan {
 public:
  /// Names every command that was in flight, in any order, before the first question.
  void add_in_flight(const wire::Command& command);
  /// Whether this one runs again. Asked in program order; the answer yes counts for later ones.
  bool runs_again(const wire::Command& command);

 private:
  ByteRanges suspect_, renewed_;
};

}  // namespace troupe::rank_process
