#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <troupe/troupe.hpp>

#include "options.hpp"
#include "report.hpp"

namespace troupe::drill {

/// Lets the GPUs of ranks change bits in one run, one attack after the other, and watches the run
/// find that and undo it. All ranks call these functions alike.
class SilentAttacks {
 public:
  SilentAttacks(Runtime& runtime, const Options& options);

  /// Throws Exception if a change is not found, or the world computes wrongly.
  std::vector<Series> suffer_all();

 private:
  using Clock = std::chrono::steady_clock;

  /// An attack that has not been undone yet.
  struct Suffered {
    std::int64_t next = 0;  ///< the first step behind its interval
    Clock::time_point since{};
  };

  void make_state(Checkpoint& state);
  Step step(std::int64_t number);
  [[nodiscard]] const Attack& attack(std::size_t number) const;
  [[nodiscard]] bool is_intact();

  World& world_;
  Device& device_;
  const Options& options_;
  const std::size_t attacks_;  ///< with their repetitions
  GpuRef<double> stream_;
  GpuRef<float> kept_, constant_;
  std::size_t suffered_ = 0;
  std::optional<Suffered> under_way_;
  std::vector<double> times_;  ///< until each was undone, ms
};

}  // namespace troupe::drill
