#pragma once

#include <cstdint>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/recovery.hpp>

#include "rank/device/flight/flight_collector.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// What a rank traces of the recoveries of its world: a span of each phase, and one of the whole
/// from the fault on; likewise of its first formation, which is no recovery.
class RecoveryTrace {
 public:
  /// nullptr: nothing is traced.
  explicit RecoveryTrace(FlightCollector* collector) : collector_(collector) {}

  /// The phase that the protocol is in, which may have changed.
  void at(Phase phase);
  void recovered(std::uint32_t epoch, const std::vector<Recovery>& reports);

 private:
  FlightCollector* collector_;
  Phase phase_ = Phase::active;
  TimePoint phase_since_{}, recovery_since_{}, recovered_{};
};

}  // namespace troupe::rank_process
