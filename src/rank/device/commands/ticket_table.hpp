#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/future.hpp>

#include "common/core/prefetch.hpp"
#include "common/core/two_sided_count.hpp"

namespace troupe::rank_process {

/// The commands that a rank has submitted and that are not answered yet, by ticket.
///
/// Answers come in any order. A slot is opened by submitters (serialised by their lock) and closed
/// by whoever reads replies (serialised by theirs). Tickets grow; the number of one whose slot is
/// still taken by an old one is left out, so that a command that is answered late holds up no
/// other. Bounded: next() answers 0 while kMaxOpen commands are unanswered.
class TicketTable {
 public:
  static constexpr std::uint64_t kSlots = 32768;
  static constexpr std::uint64_t kMaxOpen = kSlots / 2;  ///< so a free slot is never far

  /// For the few commands that need more than a line.
  struct More {
    std::vector<std::uint32_t> named;
    std::vector<std::byte> record;
  };
  struct alignas(64) Slot {
    detail::StatePtr<detail::State<void>> state;
    std::uint64_t ticket = 0;    ///< whose slot it is, or was last
    std::uint64_t position = 0;  ///< of its record in the command ring; the submitters' own
    std::unique_ptr<More> more;  ///< kept from use to use
    /// Buffers that the command names, each as often as it does; kWritten is set in those that it
    /// writes.
    std::uint32_t named[4] = {};
    std::uint32_t named_count = 0;
    std::uint32_t bytes = 0;      ///< of its record, as a ring counts them
    std::uint32_t opcode = 0;     ///< the submitters' own
    bool quiet = false;           ///< nobody but its submitter wants to know of its failure
    bool died_in_flight = false;  ///< it was in flight when a device host died; the submitters' own
    bool saved = false;           ///< likewise: its record has left the ring and is in `more`
    std::atomic<bool> open{false};
  };
  static_assert(sizeof(Slot) == 64);
  static constexpr std::uint32_t kWritten = 0x8000'0000u;
  static constexpr std::uint64_t kFetchedAhead = 4;

  TicketTable() : slots_(std::make_unique<Slot[]>(kSlots)) {}

  /// The next ticket, or 0 if the table is full. Not yet visible to pending().
  [[nodiscard]] std::uint64_t next() noexcept {
    if (!open_count_.is_at_most(kMaxOpen - 1)) return 0;
    while (slot(next_).open.load(std::memory_order_acquire)) ++next_;
    // It is used once a round of the table, and then from another core.
    prefetch_to_write(&slot(next_ + kFetchedAhead));
    return next_;
  }
  [[nodiscard]] const Slot& slot(std::uint64_t ticket) const noexcept {
    return slots_[ticket % kSlots];
  }
  [[nodiscard]] Slot& slot(std::uint64_t ticket) noexcept { return slots_[ticket % kSlots]; }
  /// Notes one buffer that the command under preparation names.
  void add_named(Slot& slot, std::uint32_t buffer, bool written) {
    const auto entry = buffer | (written ? kWritten : 0);
    if (slot.named_count < std::size(slot.named)) {
      slot.named[slot.named_count] = entry;
    } else {
      more_of(slot).named.push_back(entry);
    }
    ++slot.named_count;
  }
  [[nodiscard]] static More& more_of(Slot& slot) {
    if (!slot.more) slot.more = std::make_unique<More>();
    return *slot.more;
  }
  /// The ticket that next() returned is in use from now on.
  void open(Slot& slot, detail::StatePtr<detail::State<void>> state) {
    slot.state = std::move(state);
    slot.ticket = next_;
    open_count_.raise();
    open_bytes_.raise(slot.bytes);
    slot.open.store(true, std::memory_order_release);
    submitted_.store(next_++, std::memory_order_release);
  }

  /// Whether the ticket is one that was submitted and is unanswered.
  [[nodiscard]] bool pending(std::uint64_t ticket) const noexcept {
    const auto& at = slot(ticket);
    return at.open.load(std::memory_order_acquire) && at.ticket == ticket;
  }
  /// Every ticket that is unanswered, in order. The submitters' lock and that of those who close.
  [[nodiscard]] std::vector<std::uint64_t> all_pending() const {
    std::vector<std::uint64_t> tickets;
    const auto last = submitted(), oldest = retired();
    if (last - oldest <= kSlots) {
      for (auto ticket = oldest + 1; ticket <= last; ++ticket) {
        if (pending(ticket)) tickets.push_back(ticket);
      }
      return tickets;
    }
    for (std::uint64_t i = 0; i < kSlots; ++i) {
      if (slots_[i].open.load(std::memory_order_acquire)) tickets.push_back(slots_[i].ticket);
    }
    std::sort(tickets.begin(), tickets.end());
    return tickets;
  }
  /// Takes the slot's future out, for the caller to resolve; the slot is done. Call advance()
  /// afterwards.
  detail::StatePtr<detail::State<void>> close(std::uint64_t ticket) {
    auto& at = slot(ticket);
    prefetch_to_write(&slot(ticket + kFetchedAhead));
    auto state = std::move(at.state);
    if (at.named_count > std::size(at.named)) at.more->named.clear();
    at.named_count = 0;
    open_count_.lower();
    open_bytes_.lower(at.bytes);
    at.open.store(false, std::memory_order_release);
    return state;
  }
  /// Calls visit(buffer, written) for each buffer that the command names.
  template <class Visit>
  void for_each_named(std::uint64_t ticket, Visit&& visit) const {
    const auto& at = slot(ticket);
    const auto tell = [&](std::uint32_t entry) {
      visit(entry & ~kWritten, (entry & kWritten) != 0);
    };
    for (std::uint32_t i = 0; i < at.named_count && i < std::size(at.named); ++i) tell(at.named[i]);
    if (at.named_count <= std::size(at.named)) return;
    for (const auto entry : at.more->named) tell(entry);
  }
  /// Moves retired() over everything that is answered.
  void advance() noexcept {
    auto retired = retired_.load(std::memory_order_relaxed);
    const auto submitted = submitted_.load(std::memory_order_acquire);
    while (retired < submitted && !pending(retired + 1)) ++retired;
    retired_.store(retired, std::memory_order_release);
  }

  /// The ticket up to which all are answered.
  [[nodiscard]] std::uint64_t retired() const noexcept {
    return retired_.load(std::memory_order_acquire);
  }
  /// For submitters: whether the records of all that is unanswered have no more bytes than this.
  [[nodiscard]] bool has_at_most(std::uint64_t bytes) noexcept {
    return open_bytes_.is_at_most(bytes);
  }
  [[nodiscard]] std::uint64_t submitted() const noexcept {
    return submitted_.load(std::memory_order_acquire);
  }

 private:
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::uint64_t next_ = 1;  ///< the submitters'
  std::atomic<std::uint64_t> submitted_{0};
  alignas(64) std::atomic<std::uint64_t> retired_{0};  ///< of those who close
  TwoSidedCount open_count_, open_bytes_;  ///< raised by submitters, lowered by those who close
};

}  // namespace troupe::rank_process
