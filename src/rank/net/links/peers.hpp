#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include <troupe/error.hpp>

namespace troupe::rank_process {

/// The newest incarnation of each rank, as far as this rank has heard. Any thread.
///
/// When a rank has died and another process has taken its number, what is on its way between the
/// living and the dead must reach nobody, and exchanges that were waiting for it end.
class Peers {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;

  /// A rank that is started again does not know who else has been.
  Peers(int size, bool knows)
      : newest_(std::make_unique<std::atomic<std::uint32_t>[]>(static_cast<std::size_t>(size))) {
    for (int rank = 0; rank < size; ++rank) at(rank) = knows ? 0 : kUnknown;
  }

  /// kUnknown: nothing is known.
  [[nodiscard]] std::uint32_t incarnation(int rank) const noexcept { return at(rank); }
  /// A process of this incarnation is the rank now. False: it is known.
  bool learn(int rank, std::uint32_t incarnation) noexcept {
    const auto known = at(rank).load();
    if (known != kUnknown && incarnation <= known) return false;
    at(rank) = incarnation;
    if (incarnation > 0) ++deaths_;
    return true;
  }
  [[nodiscard]] bool is_old(int rank, std::uint32_t incarnation) const noexcept {
    const auto known = at(rank).load();
    return known != kUnknown && incarnation < known;
  }
  /// How many deaths this rank has heard of.
  [[nodiscard]] std::uint32_t deaths() const noexcept { return deaths_; }

  /// Exchanges of the program belong to an era: the epoch in which the last ranks that had died
  /// were back. Those that began before the newest of so many deaths end.
  struct Era {
    std::uint32_t epoch = 0;
    std::uint32_t deaths = 0;
  };
  [[nodiscard]] Era era() const {
    const std::lock_guard lock(mutex_);
    return era_;
  }
  void begin_era(Era era) {
    const std::lock_guard lock(mutex_);
    era_ = era;
  }
  /// The error that is thrown where an exchange ends so.
  void set_interruption(std::function<Error()> interruption) {
    const std::lock_guard lock(mutex_);
    interruption_ = std::move(interruption);
  }
  [[noreturn]] void interrupt() const {
    std::function<Error()> interruption;
    {
      const std::lock_guard lock(mutex_);
      interruption = interruption_;
    }
    const auto error =
        interruption ? interruption() : Error{Errc::world_reformed, 0, "a rank has died"};
    if (error.code == Errc::world_reformed) throw Exception(error);
    throw CollectiveException(error);
  }

 private:
  std::atomic<std::uint32_t>& at(int rank) const noexcept {
    return newest_[static_cast<std::size_t>(rank)];
  }

  std::unique_ptr<std::atomic<std::uint32_t>[]> newest_;
  std::atomic<std::uint32_t> deaths_{0};
  mutable std::mutex mutex_;
  Era era_;
  std::function<Error()> interruption_;
};

}  // namespace troupe::rank_process
