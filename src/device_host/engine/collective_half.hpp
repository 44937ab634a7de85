#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device_host/engine/library.hpp"

namespace troupe::host {

/// That a rank sends to another, or receives from it.
struct Link {
  std::uint32_t peer = 0;
  bool receive = false;
  friend bool operator==(const Link&, const Link&) = default;
};

/// The collective library's half. It has the communicator, of which there is at most one at a time.
///
/// The engine loads it when it is made and ends it first; until then everything here may be called,
/// also before the collective lane is open. Collectives run on the lane as a library's operations
/// do, and answer world_reformed while there is no communicator. Whether the communicator has
/// failed is told at the marks of the collective lane: see Engine::reached().
class CollectiveHalf : public LibraryHalf {
 public:
  // Forming a communicator. On helper threads; may block.

  /// Does ahead of time whatever of it needs no peer (NCCL: loading its kernels takes longer than
  /// forming a small communicator). What a standby does while it waits.
  virtual Result<void> prepare_connect() { return {}; }
  /// What this rank gives to the forming of a communicator of `size` ranks (NCCL: the unique id
  /// from rank 0, nothing from others; Gloo: this rank's addresses). World gathers all
  /// contributions, in rank order.
  virtual Result<std::vector<std::byte>> contribute(int rank, int size) = 0;
  /// Forms the communicator from all contributions and warms it up. Errors: peer_lost, timeout,
  /// library.
  virtual Result<void> connect(int rank, int size,
                               const std::vector<std::vector<std::byte>>& contributions) = 0;

  /// Ends what is under way on the communicator, at once, from any thread while others use it (also
  /// a connect() under way): queued collectives are given up, their results undefined, and the lane
  /// becomes usable again. What collectives of peers make of it is undefined too: theirs must have
  /// been given up before. What cannot be ended without blocking is left to a background thread.
  /// No-op without one.
  virtual void abort() = 0;

  /// The links that the command is the first to use. NCCL connects two ranks when the first message
  /// between them is queued, and blocks until both have got there: where this is not empty, run()
  /// must not be called before open_links() has ended. Reactor; not during open_links().
  virtual std::vector<Link> new_links(const OperationInfo&, const std::byte*, const Call&) {
    return {};
  }
  /// Connects this rank with its peers, who do the same for their next command. Helper thread;
  /// blocks until they have come or the communicator is aborted; meanwhile nothing may be run on
  /// the collective lane. Errors: world_reformed if it was aborted, NCCL's.
  virtual Result<void> open_links(const std::vector<Link>&) { return {}; }

  /// What the communicator has noticed by itself while something is queued on it, such as a
  /// connection that broke. The reactor's thread, by the engine, for a mark of the collective lane
  /// that is not reached. Errors: peer_lost, or the context's.
  virtual Result<void> health() { return {}; }
};

}  // namespace troupe::host
