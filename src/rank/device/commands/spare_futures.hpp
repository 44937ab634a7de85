#pragma once

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include <troupe/future.hpp>

#include "common/core/prefetch.hpp"

namespace troupe::rank_process {

/// Futures that nobody has any more when their commands are answered, for later commands: most
/// callers drop theirs at once, and nobody would see them resolved.
///
/// Who answers gives (the lock of the replies), who submits takes (the lock of the submissions).
/// Many change hands at a time, so that the two seldom touch the same line.
class SpareFutures {
 public:
  using State = detail::StatePtr<detail::State<void>>;

  /// True if nobody else had the future; it is kept here or gone then.
  bool give(State& state) {
    if (!state->unshared()) return false;
    if (given_.size() < kMost) given_.push_back(std::move(state));
    if (given_.size() >= kMany && !has_more_.load(std::memory_order_acquire)) {
      given_.swap(more_);
      has_more_.store(true, std::memory_order_release);
    }
    state = State();
    return true;
  }
  /// A future that is pending, with its only reference; empty: none is left.
  [[nodiscard]] State take() {
    if (taken_from_.empty()) {
      if (!has_more_.load(std::memory_order_acquire)) return State();
      taken_from_.swap(more_);
      has_more_.store(false, std::memory_order_release);
    }
    auto one = std::move(taken_from_.back());
    taken_from_.pop_back();
    if (taken_from_.size() > kFetchedAhead)
      prefetch_to_write(taken_from_[taken_from_.size() - 1 - kFetchedAhead].operator->());
    return one;
  }

 private:
  static constexpr std::size_t kMany = 64, kMost = 16384, kFetchedAhead = 4;

  alignas(64) std::vector<State> given_;
  alignas(64) std::vector<State> taken_from_;
  /// Between the two sides: the givers' while it is false, the takers' while it is true.
  alignas(64) std::atomic<bool> has_more_{false};
  std::vector<State> more_;
};

}  // namespace troupe::rank_process
