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
    if (list_.empty()) return;
    for (auto& [state, outcome] : list_) state->resolve(std::move(outcome));
    resolving_->fetch_sub(1, std::memory_order_acq_rel);
  }
  Resolved(const Resolved&) = delete;
  Resolved& operator=(const Resolved&) = delete;

  /// With the lock of the replies held.
  void add(State state, const Result<void>& outcome) {
    if (list_.empty()) resolving_->fetch_add(1, std::memory_order_acq_rel);
    list_.emplace_back(std::move(state), outcome);
  }
  [[nodiscard]] std::vector<Spoilt>& spoilt() noexcept { return spoilt_; }

 private:
  std::atomic<std::uint32_t>* resolving_;
  std::vector<Spoilt> spoilt_;
  std::vector<std::pair<State, Result<void>>> list_;
};

}  // namespace troupe::rank_process
