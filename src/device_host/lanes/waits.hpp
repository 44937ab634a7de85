#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "device_host/engine/queue.hpp"

namespace troupe::host {

/// Place in a queue, from 1; 0: none.
using Sequence = std::uint64_t;
/// A place in each queue, by its index.
using Places = std::array<Sequence, kQueueCount>;

/// By index of the queue, the newest place there to wait for. A command waits for few queues, so
/// only these cost anything.
class Waits {
 public:
  Waits() = default;
  Waits(const Waits& other) noexcept { *this = other; }
  Waits& operator=(const Waits& other) noexcept {
    present_ = other.present_;
    other.for_each([this](std::size_t queue, Sequence place) { places_[queue] = place; });
    return *this;
  }

  /// 0: none.
  [[nodiscard]] Sequence operator[](std::size_t queue) const noexcept {
    return has(queue) ? places_[queue] : 0;
  }
  /// This place, or the one that is there if that is newer.
  void raise(std::size_t queue, Sequence place) noexcept {
    if (place == 0) return;
    places_[queue] = has(queue) ? std::max(places_[queue], place) : place;
    present_ |= bit(queue);
  }
  void raise(const Waits& others) noexcept {
    others.for_each([this](std::size_t queue, Sequence place) { raise(queue, place); });
  }
  void drop(std::size_t queue) noexcept { present_ &= ~bit(queue); }
  /// Those that are done.
  void drop(const Places& completed) noexcept {
    for_each([&](std::size_t queue, Sequence place) {
      if (place <= completed[queue]) drop(queue);
    });
  }

  friend bool operator==(const Waits& a, const Waits& b) noexcept {
    return a.present_ == b.present_ &&
           !a.any_of([&b](std::size_t queue, Sequence place) { return place != b.places_[queue]; });
  }

  /// `visit(queue, place)`
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (auto left = present_; left != 0; left &= left - 1) {
      const auto queue = static_cast<std::size_t>(std::countr_zero(left));
      visit(queue, places_[queue]);
    }
  }
  /// Whether `is(queue, place)` holds for one of them.
  template <class Predicate>
  [[nodiscard]] bool any_of(Predicate&& is) const {
    for (auto left = present_; left != 0; left &= left - 1) {
      const auto queue = static_cast<std::size_t>(std::countr_zero(left));
      if (is(queue, places_[queue])) return true;
    }
    return false;
  }

 private:
  static_assert(kQueueCount <= 64);
  static constexpr std::uint64_t bit(std::size_t queue) noexcept {
    return std::uint64_t{1} << queue;
  }
  [[nodiscard]] bool has(std::size_t queue) const noexcept { return (present_ & bit(queue)) != 0; }

  std::uint64_t present_ = 0;
  Places places_;  // of those that are present
};

}  // namespace troupe::host
