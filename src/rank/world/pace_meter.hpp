#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <troupe/clock.hpp>

#include "common/wire/flight_layout.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// Measures this rank's own time: see SlowRanks. A window is as many intervals between commits as
/// take kLeastTime, kLeastIntervals at least, of one run in one epoch. The clock is passed in.
class PaceMeter {
 public:
  static constexpr int kLeastIntervals = 8;
  static constexpr std::chrono::seconds kLeastTime{2};

  /// The time that the rank's device hosts have spent up to now.
  struct Reading {
    TimePoint time{};
    std::chrono::nanoseconds waited{}, idle{};
    std::uint64_t collectives = 0;
  };
  static Reading read(const wire::HostTimes& times, TimePoint now);

  /// A commit is complete on this rank. The pace of the window that it ends, if it ends one; its
  /// rank is left open.
  std::optional<RankPace> at_commit(std::uint32_t epoch, std::uint32_t run, const Reading& now);

 private:
  std::uint32_t epoch_ = 0, run_ = 0;
  int intervals_ = -1;  ///< -1: there is no window
  Reading begin_;       ///< of the window
};

}  // namespace troupe::rank_process
