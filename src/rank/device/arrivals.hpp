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
};

/// When this rank came to some of the world's collectives. Bounded: of all, of every second, of
/// every fourth …, so that all ranks keep the same ones without a word between them. The caller
/// serialises.
class Arrivals {
 public:
  static constexpr std::size_t kMost = 2048;

  Arrivals() { kept_.reserve(kMost); }
  void add(std::uint32_t epoch, std::uint32_t number, std::uint64_t ticks) noexcept {
    if ((number & (stride_ - 1)) != 0) return;
    if (kept_.size() == kMost) thin_out();
    if ((number & (stride_ - 1)) == 0)
      kept_.push_back({std::uint64_t{epoch} << 32 | number, ticks});
  }
  [[nodiscard]] std::uint32_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::vector<Arrival> taken(const TickScale::Reading& reading) const;

 private:
  struct Kept {
    std::uint64_t collective, ticks;
  };
  void thin_out() noexcept;

  std::vector<Kept> kept_;
  std::uint32_t stride_ = 1;
};

/// The rank that was last most often, of those that were compared.
struct Slowest {
  std::size_t rank = 0;         ///< its place among them
  std::size_t last = 0;         ///< in how many collectives it was last …
  std::size_t collectives = 0;  ///< … of how many that all ranks have
  double waiting = 0;           ///< seconds in which the others waited for it alone, per second
};

/// Compares arrivals on one clock, by rank; ranks without any do not count. `stride`: of how many
/// collectives one was kept. None: fewer than two ranks, or than `least` collectives that all have.
[[nodiscard]] std::optional<Slowest> find_slowest(const std::vector<std::vector<Arrival>>& ranks,
                                                  std::uint32_t stride, std::size_t least);

}  // namespace troupe::rank_process
