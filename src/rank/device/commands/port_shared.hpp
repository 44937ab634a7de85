#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "rank/device/commands/brief_mutex.hpp"
#include "rank/device/commands/buffer_table.hpp"
#include "rank/device/commands/error_ledger.hpp"
#include "rank/device/commands/outcome_log.hpp"
#include "rank/device/commands/resolved.hpp"
#include "rank/device/commands/spare_futures.hpp"
#include "rank/device/commands/ticket_table.hpp"
#include "rank/device/flight/flight_recorder.hpp"
#include "rank/device/host/host_link.hpp"

namespace troupe::rank_process {

/// What the parts of a CommandPort share; outlives them.
///
/// Locks: `submissions` serialises submissions and owns the buffer table and the producing end of
/// the command ring; `replies` owns the consuming end of the reply ring and the resolution of
/// tickets. Taken in that order where both are.
struct PortShared {
  /// How a port behaves.
  struct Options {
    std::chrono::nanoseconds spin{0};  ///< how long waiters spin before they sleep
    bool replay = false;               ///< what was in flight may run again: see Incarnations
    FlightRecorder* flight = nullptr;  ///< records what passes; outlives the port
  };

  explicit PortShared(const Options& how) : options(how) {}
  PortShared(const PortShared&) = delete;
  PortShared& operator=(const PortShared&) = delete;

  /// The command is answered: what it names is free of it. Its future, to be resolved. The lock of
  /// the replies.
  Resolved::State close(std::uint64_t ticket);
  /// Everything that is answered is accounted for: ends the fences that waited for it. Likewise.
  void advance(Resolved& resolved);
  /// What is spoilt goes stale. The lock of the submissions.
  void lose_spoilt(Resolved& resolved);
  /// The error of a command or request, once it has been entered into the log of outcomes.
  [[nodiscard]] std::uint32_t current_epoch() const noexcept {
    return epoch.load(std::memory_order_acquire);
  }

  const Options options;
  mutable BriefMutex submissions;
  BriefMutex replies;
  BufferTable buffers;
  TicketTable tickets;
  SpareFutures spares;
  OutcomeLog outcomes;
  ErrorLedger ledger;
  std::shared_ptr<HostLink> link;  ///< to the current device host; changed under both locks
  std::atomic<std::uint32_t> epoch{0};
  /// The reply ring is corrupt, or the command ring's head is.
  std::atomic<bool> corrupt{false};
  /// Whoever takes replies writes it; see Resolved.
  alignas(64) std::atomic<std::uint32_t> resolving{0};
};

/// Pinned memory and other ranks' slabs are in no table of buffers.
[[nodiscard]] inline bool in_no_table(const Operand& operand) noexcept {
  return (operand.region & (kPinnedRegion | kForeignRegion)) != 0;
}

}  // namespace troupe::rank_process
