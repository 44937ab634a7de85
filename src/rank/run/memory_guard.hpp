#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/device.hpp>

#include "rank/device/commands/buffers.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Finds device memory that has changed though no command was to write it: --check writes.
///
/// Each buffer is divided into pieces. A look takes digests of some pieces, one after another
/// round the rank's memory, as far as the budget of time goes. A piece that has been looked at
/// before, and whose buffer no command was to write since, must have the digest that it had. What a
/// look finds is known at the next one, so that nobody waits for the digests.
///
/// It finds kernels and functions that write where they have not said so, in buffers of their own
/// rank, and memory that rots. The program's thread.
class MemoryGuard {
 public:
  /// `budget`: the share of the time between looks that digests may take of the device's.
  MemoryGuard(WorldCore& core, double budget) : core_(&core), budget_(budget) {}

  /// Behind the commit of `step`. Errors: corrupt, with the buffer and the range that have changed;
  /// those of the device.
  [[nodiscard]] Result<void> look(std::int64_t step);
  /// The same at the end of the run, of the last look too.
  [[nodiscard]] Result<void> look_at_end(std::int64_t step);
  /// A piece of another buffer than those is changed by a command that does not say so, chosen by
  /// the step. False: none is known yet.
  bool stray(std::int64_t step, const std::vector<std::uint32_t>& but);

 private:
  /// A piece: the buffer's place in the table, and the bytes before it there.
  struct Place {
    std::uint32_t buffer;
    std::uint64_t first;
    auto operator<=>(const Place&) const = default;
  };
  /// A piece as it was when its digest was taken.
  struct Seen {
    Buffers::State state;
    std::uint64_t bytes = 0, digest = 0;
    std::int64_t step = -1;
    std::uint64_t commands = 0;  ///< that had been submitted
  };
  struct Asked {
    Place place;
    Seen seen;
  };

  [[nodiscard]] Result<void> take_answers();
  void ask(std::int64_t step, std::uint64_t most_bytes);
  /// The operations that have been submitted since, as far as the flight recorder has them.
  [[nodiscard]] std::string commands_since(std::uint64_t number) const;
  [[nodiscard]] Error changed(const Asked& now, const Seen& before) const;
  /// How many bytes may be looked at now.
  [[nodiscard]] std::uint64_t allowance();

  WorldCore* core_;
  double budget_;
  std::map<Place, Seen> known_;
  Place next_{0, 0};
  std::vector<Asked> asked_;
  GpuRef<std::uint64_t> digests_;
  PinnedBuffer<std::uint64_t> answers_;
  std::optional<Future<void>> answered_;
  double bytes_per_second_ = 0;  ///< of digests, measured once
  std::chrono::steady_clock::time_point last_look_{};
};

}  // namespace troupe::rank_process
