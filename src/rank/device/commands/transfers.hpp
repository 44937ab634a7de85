#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include <troupe/lib/submit.hpp>

#include "rank/device/commands/gate.hpp"
#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// Ranges that transfers between ranks read or write, and what that means for the program's own
/// commands. Any thread.
class Transfers {
 public:
  /// What stands in the way of a command.
  enum class Way { clear, expected, lent };
  struct Hindrance {
    Way way = Way::clear;
    Operand range;  ///< lent: what is about to be written
  };
  enum class Contents { there, to_come };

  Transfers(PortShared& shared, const Gate& gate) : shared_(&shared), gate_(&gate) {}

  /// The range is about to be written by a transfer: until end_write(), submissions that name bytes
  /// of it wait. Holds the buffer. Errors: stale; would_block if a transfer into the range is under
  /// way, or it is lent (the rescue has begun to deal with that: come again).
  Result<void> begin_write(const Operand& range);
  void end_write(const Operand& range);
  /// The range is about to be read by a transfer: until end_read(), the rescue is called ahead of
  /// any command that writes bytes of it. Holds the buffer. Says whether the contents are there, or
  /// a command that is submitted now has to wait for others. Errors: as of begin_write().
  Result<Contents> begin_read(const Operand& range);
  void end_read(const Operand& range);
  /// Called with a range that is lent and about to be written, by the thread that writes it; has to
  /// save the contents elsewhere and take the range back.
  void set_rescue(std::function<void(const Operand& written)> rescue) {
    rescue_ = std::move(rescue);
  }
  void rescue(const Operand& written) const { rescue_(written); }
  /// A transfer of this epoch into the range, which it still expects, has failed midway: the
  /// contents of the buffer are gone, unless they are others than this range's by now, or have been
  /// restored since.
  void lose(const Operand& range, const Error& error, std::uint32_t epoch);
  /// The newest epoch in which a fault elsewhere has ended a transfer in its middle, so that
  /// contents are stale here before this rank knows of the fault; 0: none.
  [[nodiscard]] std::uint32_t spoilt_in() const noexcept {
    return spoilt_in_.load(std::memory_order_acquire);
  }

  /// What stands in the way of the command. With the lock of the submissions.
  [[nodiscard]] Hindrance hindrance(const detail::CommandView& command) const;

 private:
  /// A range that is being read or written from elsewhere.
  struct Transfer {
    Operand range;
    std::uint32_t restores = 0;  ///< of its buffer, when it began
  };
  using List = std::vector<Transfer>;

  [[nodiscard]] Way way(const Operand& range, Access access) const;
  static bool any_overlap(const List& list, const Operand& range);
  static List::iterator find(List& list, const Operand& range);
  Result<void> reserve(List& list, const Operand& range, Access access);
  void give_back(List& list, const Operand& range);

  PortShared* shared_;
  const Gate* gate_;
  std::function<void(const Operand&)> rescue_;
  List expected_, lent_;  ///< few
  std::atomic<std::uint32_t> spoilt_in_{0};
};

}  // namespace troupe::rank_process
