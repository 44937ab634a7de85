#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <troupe/actor/restart_budget.hpp>
#include <troupe/clock.hpp>
#include <troupe/error.hpp>

namespace troupe::rank_process {

/// The losses after which a device is given up: so many device hosts, and so many operations that
/// outlast their deadline, within a window of time, and in a run also without a commit in between.
/// Pure.
class RestartLimits {
 public:
  RestartLimits(int most, std::chrono::nanoseconds window)
      : most_(most), window_(window), hosts_(most, window), operations_(most, window) {}

  /// A run has begun, or all ranks have a commit more of it. false: it has ended.
  void progress(bool in_run) { since_commit_ = in_run ? std::optional(Costs()) : std::nullopt; }
  /// A device host is lost. nullopt: within the limits; else why the device is to be given up.
  [[nodiscard]] std::optional<Error> lose_host(const Error& loss, TimePoint now);
  /// An operation has outlasted its deadline. Returns the same.
  [[nodiscard]] std::optional<Error> outlast_deadline(const Error& late, TimePoint now);
  /// The one thing more that a device gets whose run is asked to end. False: it has had it.
  [[nodiscard]] bool take_last() noexcept { return !std::exchange(last_taken_, true); }
  /// The device begins anew.
  void renew();

 private:
  /// The losses of a run since its newest commit.
  struct Costs {
    int hosts = 0;
    int operations = 0;
  };

  int most_;
  std::chrono::nanoseconds window_;
  RestartBudget hosts_;
  RestartBudget operations_;
  std::optional<Costs> since_commit_;  ///< nullopt: no run is under way, and only time counts
  bool last_taken_ = false;
};

}  // namespace troupe::rank_process
