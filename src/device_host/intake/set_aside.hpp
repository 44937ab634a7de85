#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "common/wire/set_aside_tickets.hpp"
#include "device_host/lanes/hazards.hpp"

namespace troupe::host {

/// Commands that have left the ring and are not queued yet: to queue them would block the reactor
/// until other ranks have come, their library is being opened or at work, or they depend on a
/// command of which that is true. What stands behind them in the ring is not held up by that. The
/// reactor's thread only.
class SetAside {
 public:
  /// Beyond that the next one waits in the ring, and everything behind it.
  static constexpr std::size_t kMax = wire::SetAsideTickets::kCapacity;
  using Number = std::uint64_t;  ///< from 1, in program order

  struct Entry {
    Number number = 0;
    /// Must not be queued before these are, nor before those that these are behind.
    std::vector<Number> behind;
    std::size_t waits_for = 0;           ///< how many of `behind` are still there
    std::vector<Number> followers = {};  ///< that have this one in `behind`
    bool collective = false;
    bool held = false;     ///< its library's thread carries it out: it is not offered
    std::size_t slot = 0;  ///< in the list that the rank sees
    std::vector<std::byte> record;
    std::vector<std::pair<Operand, Access>> uses;
  };

  /// `seen`: the list that the rank sees, if there is one; outlives this.
  explicit SetAside(wire::SetAsideTickets* seen = nullptr);

  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  [[nodiscard]] bool full() const noexcept { return entries_.size() >= kMax; }

  /// Whether a command must stay behind any of them: it conflicts with one, or both are
  /// collectives, because these keep one order.
  [[nodiscard]] bool holds_up(std::span<const OperandUse> operands, bool collective) const;

  void add(std::uint64_t ticket, std::span<const std::byte> record,
           std::span<const OperandUse> operands, bool collective);

  /// Offers those that wait for no other entry to `queue_it(entry)`, in order; those for which it
  /// returns true are gone. True if any is.
  template <class QueueIt>
  bool offer(const QueueIt& queue_it) {
    std::size_t gone = 0;
    // One that goes may free others, which come later.
    for (auto next = free_.begin(); next != free_.end();) {
      const auto entry = find(*next);
      if (!entry->held && queue_it(*entry)) {
        remove(entry);
        next = free_.erase(next);
        ++gone;
      } else {
        ++next;
      }
    }
    note_gone(gone);
    return gone != 0;
  }
  /// How many numbers its entries remember: what tests bound.
  [[nodiscard]] std::size_t remembered() const noexcept {
    std::size_t count = 0;
    for (const auto& entry : entries_) count += entry.behind.size();
    return count;
  }
  /// The entry's command is about to be given to somebody: from now on it may have begun.
  void begin(const Entry& entry);
  /// An entry that was held has ended, or is to be offered again.
  void erase(Number number);
  void release(Number number);
  void clear();

 private:
  static constexpr Queue kPlace{};  ///< where the tracker believes all of them to stand

  [[nodiscard]] Number newest_collective() const;
  /// False: conflicts() has none. Quick, however many are set aside.
  [[nodiscard]] bool may_conflict(std::span<const OperandUse> operands, bool collective) const;
  /// Those that a command must stay behind.
  [[nodiscard]] std::vector<Number> conflicts(std::span<const OperandUse> operands,
                                              bool collective) const;
  [[nodiscard]] std::deque<Entry>::iterator find(Number number);
  /// Takes it out; those that waited for it alone become free.
  void remove(std::deque<Entry>::iterator entry);
  void free_slot(const Entry& entry);
  void note(const Entry& entry);
  /// Entries have left. Their traces stay until there are more of them than entries.
  void note_gone(std::size_t count);

  wire::SetAsideTickets* seen_;
  std::vector<std::size_t> free_slots_;
  std::deque<Entry> entries_;
  std::set<Number> free_;        ///< entries that wait for no other, those that are held among them
  std::size_t collectives_ = 0;  ///< entries that are
  HazardTracker hazards_;
  std::size_t gone_ = 0;  ///< entries that have left traces there
  Number newest_ = 0;
};

}  // namespace troupe::host
