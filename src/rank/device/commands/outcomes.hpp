#pragma once

#include <cstdint>
#include <optional>

#include <troupe/future.hpp>

#include "common/core/continuations.hpp"
#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// What has failed, as the program and its runs ask for it: errors, fences, requests to other
/// ranks. Any thread.
class Outcomes {
 public:
  /// `progress`: what moves futures of fences on.
  Outcomes(PortShared& shared, detail::Progress& progress)
      : shared_(&shared), progress_(&progress) {}

  /// A request of this rank's program to another rank, from when it is made: as a command, it holds
  /// up the fences behind it, and take_error() tells of its failure.
  class Request {
   public:
    explicit Request(Outcomes& outcomes);
    ~Request() {
      (void)end({});
      told();
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    /// The first call counts. Returns what the request's future shall hold.
    [[nodiscard]] Result<void> end(const Result<void>& outcome);
    /// After end(): the future has it.
    void told();

   private:
    PortShared* shared_;
    OutcomeLog::Request entry_;
    bool ended_ = false, told_ = false;
  };

  /// A submission was refused. Returns what its future shall hold.
  [[nodiscard]] Error refused(Error error);
  /// A request that failed before it was made. Returns what its future shall hold.
  [[nodiscard]] Error report(const Error& error);
  /// An error of the program's own that no command has had, see detail::enter_error().
  [[nodiscard]] Error enter(Error error, detail::Heard heard);

  /// The error that is first in the program among those since the last call, whether somebody looks
  /// at its future or not; losses by a fault, which the world deals with, do not count. All that
  /// has failed so far counts as read.
  std::optional<Error> take_error();
  [[nodiscard]] ErrorLedger& ledger() noexcept { return shared_->ledger; }

  struct Fence {
    ProgramPlace place;
    Future<void> reached;
  };
  /// Everything that was submitted or asked of other ranks so far. `reached` resolves when all of
  /// it has ended: with success, or with an error if anything of it failed or was lost by a fault.
  Fence fence();
  /// The program has gone back to this place: what failed behind it is done again.
  void forget_since(ProgramPlace place);
  /// The program knows of the losses so far, and deals with them.
  void forgive_losses();
  /// Some futures of what has ended, and counts in no fence any more, are about to be resolved.
  [[nodiscard]] bool resolving() const noexcept {
    return shared_->resolving.load(std::memory_order_acquire) != 0;
  }

 private:
  PortShared* shared_;
  detail::Progress* progress_;
};

}  // namespace troupe::rank_process
