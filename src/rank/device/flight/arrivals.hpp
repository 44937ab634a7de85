#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <troupe/clock.hpp>

#include "common/core/ticks.hpp"

namespace troupe::rank_process {

/// A rank came to one of the world's collectives: its program submitted it.
struct Arrival {
  std::uint64_t collective = 0;  ///< epoch << 32 | its number in that
  std::int64_t time_ns = 0;
  /// The collective before had not ended: the program runs ahead of the device, and nobody waits
  /// for the program.
  std::int64_t ahead = 0;
};

/// When this rank came to some of the world's collectives. Bounded: of all, of every second, of
/// every fourth …, so that all ranks keep the same ones without a word between them. The caller
/// serialises.
class Arrivals {
 public:
  static constexpr std::size_t kMost = 2048;

  Arrivals() { kept_.reserve(kMost); }
  void add(std::uint32_t epoch, std::uint32_t number, std::uint64_t ticks,
           bool ahead = false) noexcept {
    if ((number & (stride_ - 1)) != 0) return;
    if (kept_.size() == kMost) thin_out();
    if ((number & (stride_ - 1)) == 0)
      kept_.push_back({std::uint64_t{epoch} << 32 | number, ticks, ahead});
  }
  [[nodiscard]] std::uint32_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::vector<Arrival> taken(const TickScale::Reading& reading) const;

 private:
  struct Kept {
    std::uint64_t collective, ticks;
    bool ahead;
  };
  void thin_out() noexcept;

  std::vector<Kept> kept_;
  std::uint32_t stride_ = 1;
};

/// The rank for which the others waited, of those that were compared.
struct Slowest {
  std::size_t rank = 0;         ///< its place among them
  std::size_t last = 0;         ///< in how many collectives it was last …
  std::size_t collectives = 0;  ///< … of how many that all ranks have
  double waiting = 0;  ///< seconds in which the others waited for it alone, per second: 0 to 1
};

/// Compares arrivals on one clock, by rank; ranks without any do not count. `stride`: of how many
/// collectives one was kept. The others wait from when the last of them has come, or from the end
/// of the collective before if that is later, which comes after all have come to it: so no time
/// counts twice. None: fewer than two ranks, or than `least` collectives that all have; or no rank
/// stands out, for it was last in more than half of what goes beyond its share, and a hundredth of
/// the time was spent waiting for it.
[[nodiscard]] std::optional<Slowest> find_slowest(const std::vector<std::vector<Arrival>>& ranks,
                                                  std::uint32_t stride, std::size_t least);

}  // namespace troupe::rank_process
