#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/recovery.hpp>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// What is reported of a re-formation: a Recovery for each fault, with the times of the phases.
/// Pure.
class RecoveryReports {
 public:
  /// The first formation, which has no fault, begins.
  void start(TimePoint now) { began_ = now; }
  /// Something goes wrong in an active world.
  void begin(TimePoint now);
  /// The echo of another fault counts only if nothing else is reported.
  void add(const from_rank::Fault& fault, bool echo);
  /// This rank is the reason, whatever was reported of it.
  void name(std::int32_t rank, const char* kind);
  /// This rank is a reason, too.
  void add(std::int32_t rank, const char* kind) {
    reports_.push_back({.rank = rank, .kind = kind});
  }
  /// Something has come of which they are the echo.
  void drop_echoes();

  void on(const from_rank::Loss& loss);
  void on(const from_rank::Done& done);
  /// A phase has ended after so long.
  void took(Phase phase, std::chrono::nanoseconds time);
  /// The world is active again: the reports, of which none is left here.
  [[nodiscard]] std::vector<Recovery> take(std::uint32_t epoch, TimePoint now);

  /// The ranks that are reported.
  [[nodiscard]] std::vector<std::int32_t> ranks() const;
  /// Operations past their deadline, and errors that no fault explains, and nothing else: the
  /// device hosts live, and what they have in their contexts is worth more than the time that the
  /// standby world would save.
  [[nodiscard]] bool keeps_device_hosts() const;

 private:
  TimePoint began_{};
  std::vector<Recovery> reports_;  ///< one per fault
  Recovery times_;                 ///< of the phases so far, since began_
  std::uint32_t lost_buffers_ = 0;
};

}  // namespace troupe::rank_process
