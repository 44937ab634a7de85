#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <troupe/lib/submit.hpp>

#include "common/ipc/ring.hpp"
#include "common/wire/record.hpp"
#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// The producing end of the command ring: numbers commands, writes their records, and keeps those
/// of unanswered ones. With the lock of the submissions, unless it says otherwise.
class CommandRing {
 public:
  /// `progress`: what moves the futures of commands on.
  CommandRing(PortShared& shared, detail::Progress& progress)
      : shared_(&shared), progress_(&progress) {}

  /// Errors: unsupported (the device host does not have its library).
  [[nodiscard]] Result<void> takes(const detail::CommandView& command) const;
  /// True if a command with a tail of so many operands, of so many bytes in all, can be submitted.
  [[nodiscard]] bool takes(std::size_t tail, std::size_t bytes) const noexcept {
    return tail <= wire::kMaxTail && bytes <= producer_.max_record();
  }
  /// Writes the command. False: there is no room now.
  [[nodiscard]] bool push(const detail::CommandView& command, Future<void>& future);

  /// Commands go to this host from now on. `producer`: what stands in its ring already is of the
  /// tickets after the last retired one.
  void turn_to(std::shared_ptr<HostLink> link);
  void turn_to(std::shared_ptr<HostLink> link, const ipc::RingProducer& producer);
  /// Its process is known by now: on the board of the flight recorder.
  void show_host() const;

  /// An unanswered command's record, wherever it is now.
  [[nodiscard]] Result<std::span<const std::byte>> record_of(const TicketTable::Slot& slot) const;
  /// Reads it; false if it was spoilt.
  bool read(std::uint64_t ticket, wire::Command& command) const;
  /// The unanswered commands that name bytes of a range of pinned memory.
  [[nodiscard]] std::vector<std::uint64_t> users_of(const Operand& pinned) const;

 private:
  /// Whether the device host lacks the library: see PortHeader::unknown.
  [[nodiscard]] bool is_unknown(const OperationInfo& info, const std::byte* op) const;
  /// Whether its library takes another command: see PortHeader::held_up.
  [[nodiscard]] bool has_credit(const OperationInfo& info, const std::byte* op) const;
  /// Notes what the command with this ticket names, until it is answered.
  void note_use(TicketTable::Slot& slot, std::uint64_t ticket, const Operand& operand,
                Access access);
  /// Tells the flight recorder.
  void note_submitted(std::uint64_t ticket, const detail::CommandView& command);
  /// Takes the records of unanswered commands that the host has taken out of the ring, which has
  /// room again then.
  void save_taken();

  PortShared* shared_;
  detail::Progress* progress_;
  ipc::RingProducer producer_;
  std::uint64_t first_in_ring_ = 1;  ///< tickets below have left the ring; see save_taken()
  /// What commands name of pinned memory, by ticket; some of them may be answered.
  std::vector<std::pair<std::uint64_t, Operand>> pinned_uses_;
  static constexpr std::size_t kPinnedUses = 64;
  std::size_t pinned_uses_limit_ = kPinnedUses;         ///< then those that are answered go
  std::uint32_t counted_in_ = 0;                        ///< the epoch of `collectives_`
  std::map<std::uint32_t, std::uint32_t> collectives_;  ///< of each group, in that epoch
  std::uint64_t last_collective_ = 0;                   ///< of the world: its ticket
};

}  // namespace troupe::rank_process
