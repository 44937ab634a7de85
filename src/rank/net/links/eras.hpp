#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include <troupe/error.hpp>

#include "common/links/peers.hpp"

namespace troupe::rank_process {

/// Exchanges of the program belong to an era: the epoch in which the last ranks that had died were
/// back. Those that began before the newest of so many deaths end. Any thread.
struct Era {
  std::uint32_t epoch = 0;
  std::uint32_t deaths = 0;
};

/// The era of this rank.
class Eras {
 public:
  explicit Eras(const net::Peers& peers) : peers_(&peers) {}

  [[nodiscard]] Era now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void begin(Era era) {
    const std::lock_guard lock(mutex_);
    now_ = era;
  }
  /// A rank has died that this era does not know of.
  [[nodiscard]] bool is_over(const Era& era) const noexcept {
    return peers_->deaths() != era.deaths;
  }
  /// The error that is thrown where an exchange ends so.
  void set_interruption(std::function<Error()> interruption) {
    const std::lock_guard lock(mutex_);
    interruption_ = std::move(interruption);
  }
  [[noreturn]] void interrupt() const;

 private:
  const net::Peers* peers_;
  mutable std::mutex mutex_;
  Era now_;
  std::function<Error()> interruption_;
};

}  // namespace troupe::rank_process
