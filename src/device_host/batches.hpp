#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "common/ipc/doorbell.hpp"
#include "common/wire/host_options.hpp"
#include "device_host/flight_log.hpp"
#include "device_host/lanes.hpp"
#include "device_host/replies.hpp"

namespace troupe::host {

/// Commands that were issued together and complete together: one mark per lane they touched.
/// Batches are answered in order. The reactor's thread only.
class Batches {
 public:
  static constexpr std::uint32_t kMaxCommands = 64;  ///< in one batch
  static constexpr std::size_t kMaxInFlight = 256;

  Batches(Engine& engine, Lanes& lanes, Replies& replies, FlightLog& flight,
          wire::Completion completion, ipc::Doorbell bell)
      : engine_(&engine),
        lanes_(&lanes),
        replies_(&replies),
        flight_(&flight),
        completion_(completion),
        bell_(std::move(bell)) {}

  [[nodiscard]] bool full() const { return in_flight_.size() >= kMaxInFlight; }
  [[nodiscard]] bool empty() const { return in_flight_.empty(); }
  [[nodiscard]] int fd() const noexcept { return bell_.fd(); }

  /// The command with this ticket was queued on `lane`.
  void add(std::uint64_t ticket, Lane lane) {
    extend(ticket);
    open_.lanes |= 1u << static_cast<unsigned>(lane);
  }
  /// The command with this ticket needs no lane, or was answered already.
  void add(std::uint64_t ticket) { extend(ticket); }
  [[nodiscard]] std::uint32_t open_count() const { return open_.count; }
  /// True if `ticket` cannot join the open batch because it does not follow it.
  [[nodiscard]] bool breaks(std::uint64_t ticket) const {
    return open_.count != 0 && ticket != open_.first + open_.count;
  }

  /// Ends the open batch: marks the lanes it touched. An error is the engine's (device_lost, …).
  Result<void> close();

  /// Answers batches that are done. True if any was. An error of class device_lost, device_failed
  /// or peer_lost is returned and its batch kept unanswered; any other fails its batch alone.
  Result<bool> poll();

  /// Whether all batches are done, well or not. Answers none: what they wrote is not to be trusted.
  /// Errors: device_lost, device_failed.
  Result<bool> drained();
  /// Forgets all batches without answering them.
  void discard();

 private:
  struct Batch {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t lanes = 0;
    std::array<std::shared_ptr<HeldMark>, kLaneCount> marks{};
    std::array<HazardTracker::Sequence, kLaneCount> issued{};
    std::unique_ptr<std::atomic<int>>
        host_fns;  ///< host functions that have yet to run (completion host_fn)
  };
  struct HostFnCall {
    std::atomic<int>* left;
    const ipc::Doorbell* bell;
  };

  void extend(std::uint64_t ticket) {
    if (open_.count == 0) open_.first = ticket;
    ++open_.count;
  }
  Result<bool> done(Batch& batch);

  Engine* engine_;
  Lanes* lanes_;
  Replies* replies_;
  FlightLog* flight_;
  wire::Completion completion_;
  ipc::Doorbell bell_;  ///< rung by host functions
  Batch open_;
  std::deque<Batch> in_flight_;
};

}  // namespace troupe::host
