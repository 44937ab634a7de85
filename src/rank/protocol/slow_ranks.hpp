#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// The leader's part in finding ranks that are slower than the others.
///
/// Ranks move in step, because collectives make them: an interval between two commits takes all of
/// them as long. Whoever is slow waits least. So each rank measures its *own time*, in which it did
/// not wait for others in collectives, and tells it with a commit once some intervals have passed
/// (a window, see PaceMeter). Windows of different ranks need not be the same: compared is the part
/// of the window that was own time.
///
/// Once all members have told a window, a rank is slow in it if its part is greater than `factor`
/// times that of the median rank, and by more than kLeastShare of the window. One that is slow in
/// kWindows windows in a row is told of, once in the job. Nothing is said of windows in which one
/// rank knows the time of less than half as many collectives as another: they cannot be compared.
///
/// Pure, like the protocol: no I/O, no threads, no clock.
class SlowRanks {
 public:
  static constexpr int kWindows = 3;
  static constexpr int kMostTold = 8;  ///< ranks, in a job
  static constexpr double kLeastShare = 0.05;

  struct Options {
    int size = 1;
    double factor = 1.5;
    /// Ranks that are told of leave the world: one alone is, until the next epoch.
    bool one_in_an_epoch = false;
  };

  explicit SlowRanks(Options options);

  /// A commit of the epoch that is active, with these spectators. The ranks to be told of.
  std::vector<from_supervisor::Slow> receive(const from_rank::Committed& committed,
                                             const std::vector<std::int32_t>& excluded);

 private:
  struct Rank {
    std::optional<RankPace> pace;  ///< since the last windows were compared
    int slow_in_a_row = 0;
    bool told = false;
  };
  void begin_epoch(std::uint32_t epoch);
  std::vector<from_supervisor::Slow> compare(const std::vector<std::int32_t>& members);
  [[nodiscard]] bool may_tell(const Rank& rank) const;

  Options options_;
  std::uint32_t epoch_ = 0;
  std::vector<Rank> ranks_;
  int told_ = 0;
  bool told_in_epoch_ = false;
};

/// This rank's own time as a multiple of the median rank's.
[[nodiscard]] double ratio_of(const from_supervisor::Slow& slow);
/// The known reasons why the rank is slow: "its own work takes 1.8 times as long as the median
/// rank's; …".
[[nodiscard]] std::string in_words(const from_supervisor::Slow& slow, const GpuHealth& health);

}  // namespace troupe::rank_process
