#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace troupe::wire {

/// The commands that a device host has taken out of the ring and given to nobody yet, as the rank
/// sees them after the host's death: they have not begun. Written by the reactor alone; zero-filled
/// memory holds none.
class SetAsideTickets {
 public:
  static constexpr std::size_t kCapacity = 1024;

  void put(std::size_t slot, std::uint64_t ticket) noexcept {
    tickets_[slot].store(ticket, std::memory_order_release);
  }
  /// Before the command is given to anybody.
  void clear(std::size_t slot) noexcept { put(slot, 0); }
  [[nodiscard]] bool contains(std::uint64_t ticket) const noexcept {
    return std::any_of(tickets_.begin(), tickets_.end(), [ticket](const auto& one) {
      return one.load(std::memory_order_acquire) == ticket;
    });
  }

 private:
  std::array<std::atomic<std::uint64_t>, kCapacity> tickets_;
};

}  // namespace troupe::wire
