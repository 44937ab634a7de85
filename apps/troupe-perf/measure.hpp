#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <troupe/troupe.hpp>

#include "options.hpp"
#include "report.hpp"
#include "side.hpp"

namespace troupe::perf {

/// Measures calls among all ranks. All ranks call these functions alike.
///
/// A fault spoils the measurement that it comes in. The world is waited for, then the measurement
/// is done again, from its beginning.
class Measurement {
 public:
  /// `size` ranks are in each communicator, `rank` is this rank's number in its own.
  Measurement(Runtime& runtime, const Options& options, int rank, int size);

  /// Until the world is ready for a fault, and nothing runs beside what is measured. Throws
  /// Exception (timeout).
  void settle();
  /// Calls of this kind before the first row that has them.
  void warm_up(Side& side, const Call& call, std::int64_t largest);
  /// The row's calls; `faults`: those that are ordered strike meanwhile.
  Measured measure(Side& side, const Call& call, std::int64_t largest, bool faults, Row& row);
  /// Timed calls so far, in which faults may strike.
  [[nodiscard]] std::int64_t iterations() const noexcept { return iteration_; }

 private:
  class Attempt;
  struct Times {
    double seconds = 0;  ///< of one call on this rank
    std::int64_t wrong = 0;
  };

  Times once(Side& side, const Call& call, std::int64_t largest, bool faults, Attempt& attempt);
  double timed(Side& side, const Call& call, std::int64_t largest, bool faults, Attempt& attempt);
  std::int64_t checked(Side& side, const Call& call, Attempt& attempt);
  void recover(Epoch before);

  Runtime& runtime_;
  World& world_;
  const Options& options_;
  const int rank_, size_;
  const std::chrono::nanoseconds limit_;  ///< for a fault to be noticed and overcome
  FaultsOfRank faults_;
  bool struck_ = false;           ///< in this attempt, here
  std::int64_t iteration_ = 0;    ///< the first one of the measurement under way
  std::uint64_t repetition_ = 0;  ///< of checks
};

}  // namespace troupe::perf
