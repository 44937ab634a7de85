#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/protocol/host_call.hpp"

namespace troupe::rank_process {

/// Which host collective; see HostCall.
struct HostTurn {
  std::uint32_t communicator = 0;
  std::uint64_t number = 0;
  const std::vector<int>* ranks = nullptr;  ///< they outlive the wait; nullptr: it is none
};

/// Where a rank's program is, for whoever wonders why nothing goes on. Any thread.
class Whereabouts {
 public:
  struct Standing {
    std::string text{};      ///< "in step 41 of a run"
    TimePoint since{};       ///< when it began to wait; 0: it does not
    std::int64_t step = -1;  ///< of the run; -1: in none
    Awaits awaits{};         ///< the sort of its oldest wait
  };
  struct Entry {
    std::string what;
    TimePoint since;
    Awaits sort;
    HostTurn turn;
  };

  /// The program waits for other ranks while this lives.
  class Wait {
   public:
    Wait(Whereabouts& where, std::string what, Awaits sort = Awaits::other, HostTurn turn = {})
        : where_(&where) {
      const std::lock_guard lock(where_->mutex_);
      entry_ = where_->waits_.insert(where_->waits_.end(),
                                     {std::move(what), SteadyClock::time(), sort, turn});
    }
    ~Wait() {
      const std::lock_guard lock(where_->mutex_);
      where_->waits_.erase(entry_);
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    Whereabouts* where_;
    std::list<Entry>::iterator entry_;
  };

  /// -1: the run has ended, or is left.
  void set_step(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    step_ = step;
  }
  /// The number of the host collective that is about to begin, from 1.
  [[nodiscard]] std::uint64_t next_host_call() const {
    const std::lock_guard lock(mutex_);
    return host_calls_ + 1;
  }
  /// It begins, on all its ranks.
  void count_host_call() {
    const std::lock_guard lock(mutex_);
    ++host_calls_;
  }
  /// The host collective that it waits in.
  [[nodiscard]] std::optional<HostCall> call() const {
    const std::lock_guard lock(mutex_);
    if (waits_.empty() || waits_.front().turn.ranks == nullptr) return std::nullopt;
    const auto& [what, since, sort, turn] = waits_.front();
    return HostCall{turn.communicator, turn.number, *turn.ranks, what, {}};
  }
  [[nodiscard]] bool at_the_end() const {
    const std::lock_guard lock(mutex_);
    return !waits_.empty() && waits_.front().sort == Awaits::end_of_program;
  }
  [[nodiscard]] Standing now() const {
    const std::lock_guard lock(mutex_);
    Standing standing{.step = step_};
    const auto in_run = step_ < 0 ? std::string() : "step " + std::to_string(step_) + " of a run";
    if (waits_.empty()) {
      standing.text = in_run.empty() ? "at work outside of runs and host collectives, after " +
                                           std::to_string(host_calls_) + " of these"
                                     : "at work in " + in_run;
      return standing;
    }
    const auto& oldest = waits_.front();
    standing.text = "waiting in " + oldest.what + (in_run.empty() ? "" : ", in " + in_run);
    standing.since = oldest.since;
    standing.awaits = oldest.sort;
    return standing;
  }

 private:
  mutable std::mutex mutex_;
  std::list<Entry> waits_;  ///< the oldest first
  std::int64_t step_ = -1;
  std::uint64_t host_calls_ = 0;
};

}  // namespace troupe::rank_process
