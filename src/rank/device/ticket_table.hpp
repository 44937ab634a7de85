#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/future.hpp>

namespace troupe::rank {

/// The commands that a rank has submitted and that are not answered yet, by ticket.
///
/// Tickets are consecutive. A slot is opened by submitters (serialised by their lock) and resolved
/// by whoever reads replies (serialised by theirs); retired() is the ticket up to which all are
/// resolved. Bounded: open() answers 0 while the table is full.
class TicketTable {
 public:
  static constexpr std::uint64_t kSlots = 32768;

  struct Slot {
    detail::StatePtr<detail::State<void>> state;
    std::uint32_t written[3] = {};  ///< buffers the command writes
    std::uint32_t written_count = 0;
    std::vector<std::uint32_t> written_more;
    std::uint64_t position = 0;   ///< of its record in the command ring; the submitters' own
    bool died_in_flight = false;  ///< it was in flight when a device host died; likewise
    bool quiet = false;           ///< nobody but its submitter wants to know of its failure
    std::atomic<bool> open{false};
  };

  TicketTable() : slots_(std::make_unique<Slot[]>(kSlots)) {}

  /// The next ticket, or 0 if the table is full. Not yet visible to resolve().
  [[nodiscard]] std::uint64_t next() const noexcept {
    return next_ - retired_.load(std::memory_order_acquire) > kSlots ? 0 : next_;
  }
  [[nodiscard]] const Slot& slot(std::uint64_t ticket) const noexcept {
    return slots_[ticket % kSlots];
  }
  [[nodiscard]] Slot& slot(std::uint64_t ticket) noexcept { return slots_[ticket % kSlots]; }
  /// Notes one buffer that the command under preparation writes.
  void add_written(Slot& slot, std::uint32_t buffer) {
    if (slot.written_count < 3) {
      slot.written[slot.written_count] = buffer;
    } else {
      slot.written_more.push_back(buffer);
    }
    ++slot.written_count;
  }
  /// The ticket that next() returned is in use from now on.
  void open(Slot& slot, detail::StatePtr<detail::State<void>> state) {
    slot.state = std::move(state);
    slot.open.store(true, std::memory_order_release);
    submitted_.store(next_++, std::memory_order_release);
  }

  /// Whether the ticket is one that was submitted and is unanswered.
  [[nodiscard]] bool pending(std::uint64_t ticket) const noexcept {
    return ticket > retired_.load(std::memory_order_relaxed) &&
           ticket <= submitted_.load(std::memory_order_acquire) &&
           slots_[ticket % kSlots].open.load(std::memory_order_acquire);
  }
  /// Takes the slot's future out, for the caller to resolve; the slot is done. Call advance()
  /// afterwards.
  detail::StatePtr<detail::State<void>> close(std::uint64_t ticket) {
    auto& slot = slots_[ticket % kSlots];
    auto state = std::move(slot.state);
    slot.written_count = 0;
    slot.written_more.clear();
    slot.open.store(false, std::memory_order_release);
    return state;
  }
  template <class Visit>
  void for_each_written(std::uint64_t ticket, Visit&& visit) {
    auto& slot = slots_[ticket % kSlots];
    for (std::uint32_t i = 0; i < slot.written_count && i < 3; ++i) visit(slot.written[i]);
    for (auto buffer : slot.written_more) visit(buffer);
  }
  /// Moves retired() over everything that is closed.
  void advance() noexcept {
    auto retired = retired_.load(std::memory_order_relaxed);
    const auto submitted = submitted_.load(std::memory_order_acquire);
    while (retired < submitted &&
           !slots_[(retired + 1) % kSlots].open.load(std::memory_order_acquire))
      ++retired;
    retired_.store(retired, std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t retired() const noexcept {
    return retired_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t submitted() const noexcept {
    return submitted_.load(std::memory_order_acquire);
  }

 private:
  std::unique_ptr<Slot[]> slots_;
  std::uint64_t next_ = 1;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> retired_{0};
};

}  // namespace troupe::rank
