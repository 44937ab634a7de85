#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "device_host/hazards.hpp"

namespace troupe::host {

/// Commands that have left the ring and are not queued yet: to queue them would block the reactor
/// until other ranks have come, or they depend on one of which that is true. What stands behind
/// them in the ring is not held up by that. The reactor's thread only.
class SetAside {
 public:
  /// Beyond that the next one waits in the ring, and everything behind it.
  static constexpr std::size_t kMax = 1024;
  using Number = std::uint64_t;  ///< from 1, in program order

  struct Entry {
    Number number = 0;
    Number behind = 0;  ///< must not be queued before all up to this one are; 0: needs none
    bool collective = false;
    std::vector<std::byte> record;
    std::vector<std::pair<Operand, Access>> uses;
  };

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] bool full() const noexcept { return entries_.size() >= kMax; }

  /// The newest entry that a command must stay behind: one that it conflicts with, or, among
  /// collectives, any other, because these keep one order. 0: none.
  [[nodiscard]] Number before(std::span<const OperandUse> operands, bool collective) const;

  void add(std::span<const std::byte> record, std::span<const OperandUse> operands,
           bool collective);

  /// Offers those that wait for no other entry to `queue_it(record)`, in order; those for which it
  /// returns true are gone. True if any is.
  template <class QueueIt>
  bool offer(const QueueIt& queue_it) {
    bool any = false, any_behind_others = false;
    for (auto it = entries_.begin(); it != entries_.end();) {
      const bool free = it->behind < entries_.front().number;
      if (free && queue_it(std::span<const std::byte>(it->record))) {
        any_behind_others |= it != entries_.begin();
        it = entries_.erase(it);
        any = true;
      } else {
        ++it;
      }
    }
    // Of those that left from the front the numbers say so.
    if (any_behind_others || (any && entries_.empty())) note_all();
    return any;
  }
  void clear();

 private:
  static constexpr Queue kPlace{};  ///< where the tracker believes all of them to stand

  [[nodiscard]] Number newest_collective() const;
  void note(const Entry& entry);
  void note_all();

  std::deque<Entry> entries_;
  HazardTracker hazards_;
  Number newest_ = 0;
};

}  // namespace troupe::host
