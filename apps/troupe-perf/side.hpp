#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "operations.hpp"

namespace troupe::perf {

/// One way to carry out calls between the ranks of a communicator: troupe's, or what it is compared
/// with. Has two buffers of `capacity` bytes, for sources and destinations; a call in place uses
/// the second one alone. All ranks call these functions alike. What fails throws.
class Side {
 public:
  virtual ~Side() = default;
  /// Why it has no such call; empty: it has.
  [[nodiscard]] virtual std::string lacks(const Call& call) const = 0;
  /// Before calls of this dtype, and after a fault. Ranks may exchange host data here.
  virtual void prepare(const Call& call) = 0;
  /// Starts a call; its buffers begin `shift` elements into these two. A call without elements does
  /// nothing.
  virtual void start(const Call& call, std::int64_t shift) = 0;
  /// Waits for all that was started.
  virtual void wait() = 0;
  /// Keeps what `starts` starts as one sequence, which replay() starts each time.
  virtual void record(const std::function<void()>& starts) = 0;
  virtual void replay() = 0;
  /// Sets elements of this rank's source of a call that is not shifted, from `first` on.
  virtual void write(const Call& call, std::int64_t first, std::span<const std::byte> source) = 0;
  /// So many elements of its destination, from `first` on.
  [[nodiscard]] virtual std::vector<std::byte> read(const Call& call, std::int64_t first,
                                                    std::int64_t elements) = 0;
};

/// What a peer needs to know of this rank.
struct PeerSetup {
  using Id = std::array<std::byte, 128>;
  int rank = 0, size = 1;      ///< in its communicator
  int colour = 0;              ///< which communicator, of those that share the ranks
  int local_rank = 0;          ///< among the ranks of this node
  std::uint64_t capacity = 0;  ///< bytes of each buffer
  std::function<Id(const Id&)>
      first_one;  ///< that of the communicator's rank 0; all call it, in prepare()
};

/// The library beneath without troupe, between the same ranks: "nccl" on their GPUs, from this
/// process; "mpi" in host memory. It is a module of its own, so that programs need neither.
/// Throws std::exception. Ranks meet in prepare() only, so one that fails here leaves no other
/// waiting.
std::unique_ptr<Side> load_peer(const std::string& name, const PeerSetup& setup);

}  // namespace troupe::perf

/// What a module has: makes its side, which the caller deletes.
extern "C" troupe::perf::Side* troupe_perf_make_peer(const troupe::perf::PeerSetup& setup);
