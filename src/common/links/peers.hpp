#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace troupe::net {

/// The newest incarnation of each rank, as far as this rank has heard. Any thread.
///
/// When a rank has died and another process has taken its number, messages between the living and
/// the dead must reach nobody.
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

 private:
  std::atomic<std::uint32_t>& at(int rank) const noexcept {
    return newest_[static_cast<std::size_t>(rank)];
  }

  std::unique_ptr<std::atomic<std::uint32_t>[]> newest_;
  std::atomic<std::uint32_t> deaths_{0};
};

}  // namespace troupe::net
