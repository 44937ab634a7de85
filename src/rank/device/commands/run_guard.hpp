#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <troupe/lib/submit.hpp>

#include "common/core/continuations.hpp"
#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// Keeps what is submitted for undone steps of World::run, or for none of its steps, from the
/// buffers of its checkpoint; docs/recovery.md has the rule. Any thread.
class RunGuard {
 public:
  using Standing = detail::TimelineState::Standing;

  explicit RunGuard(PortShared& shared) : shared_(&shared) {}

  /// A run's steps are for this timeline from now on, and the buffers are those of its checkpoint;
  /// the timeline before stands as said. nullptr: no run is under way.
  void turn(detail::TimelineState* next, Standing before, std::span<const std::uint32_t> buffers);
  /// For what is asked of other ranks, once the epoch that it belongs to is known. Errors:
  /// world_reformed (what the calling thread works for is undone), invalid (it works for no step of
  /// the run, and the range is of its checkpoint).
  [[nodiscard]] Result<void> check(std::string_view call, std::string_view name,
                                   const Operand& range) const;
  /// The same without memory of this rank.
  [[nodiscard]] static Result<void> check();
  /// True if the timeline that the calling thread works for is undone: the thread's commands are
  /// refused, and its errors do not count as unread.
  [[nodiscard]] static bool works_for_undone() noexcept;

  // With the lock of the submissions.

  /// Whether the calling thread works for the steps of the run that is under way, if there is one.
  [[nodiscard]] bool works_for_run() const noexcept {
    return detail::bound_timeline() == timeline_;
  }
  /// A command of a thread that does not. Errors: as of check().
  [[nodiscard]] Result<void> check(const detail::CommandView& command) const;

 private:
  [[nodiscard]] std::optional<Error> trespass(std::string_view call, std::string_view name,
                                              const Operand& range) const;

  PortShared* shared_;
  detail::TimelineState* timeline_ = nullptr;  ///< held by the run
  std::vector<std::uint32_t> of_run_;          ///< marked in the table
};

}  // namespace troupe::rank_process
