#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/future.hpp>

namespace troupe::rank_process {

/// Futures to resolve once no lock is held: what waits for them may submit again. Made before the
/// locks are taken.
class Resolved {
 public:
  using State = detail::StatePtr<detail::State<void>>;
  /// A buffer that a command has failed to write after it had begun, to be lost before the futures
  /// tell of it.
  struct Spoilt {
    std::uint32_t buffer;
    Errc by;
    std::uint32_t epoch;
    std::uint32_t generation;  ///< of its contents: the entry may have another buffer by then
  };

  /// `resolving`: counts those that have something to resolve.
  explicit Resolved(std::atomic<std::uint32_t>& resolving) : resolving_(&resolving) {}
  ~Resolved() {
    if (!first_) return;
    first_->resolve(std::move(first_outcome_));
    for (auto& [state, outcome] : more_) state->resolve(std::move(outcome));
    resolving_->fetch_sub(1, std::memory_order_acq_rel);
  }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;

  /// With the lock of the replies held.
  void add(State state, const Result<void>& outcome) {
    if (first_) return (void)more_.emplace_back(std::move(state), outcome);
    resolving_->fetch_add(1, std::memory_order_acq_rel);
    first_ = std::move(state);
    first_outcome_ = outcome;
  }
  [[nodiscard]] std::vector<Spoilt>& spoilt() noexcept { return spoilt_; }

 private:
  std::atomic<std::uint32_t>* resolving_;
  std::vector<Spoilt> spoilt_;
  State first_;  ///< often the only one: it costs no trip to the heap
  Result<void> first_outcome_;
  std::vector<std::pair<State, Result<void>>> more_;
};

}  // namespace troupe::rank_process
