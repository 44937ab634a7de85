#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/wire/flight_layout.hpp"
#include "device_host/engine/library.hpp"

namespace troupe::host {

/// That a rank sends to another, or receives from it.
struct Link {
  std::uint32_t peer = 0;
  bool receive = false;
  friend bool operator==(const Link&, const Link&) = default;
};

/// A rank's place in a communicator. One device host has several: the world's, number 0, and those
/// of the groups that its rank is in, which all of their members know by the same number.
struct Place {
  int rank = 0;
  int size = 1;
  std::uint32_t communicator = 0;
  /// CollectiveHalf::aborts() when its forming began; nothing: it is not given up meanwhile.
  std::optional<std::uint64_t> aborts = std::nullopt;
};

/// One end of a channel (see <troupe/lib/channel.hpp>), on a communicator of two ranks of its own.
/// By one thread at a time, which may block, but for abort().
class ChannelEnd {
 public:
  virtual ~ChannelEnd() = default;
  ChannelEnd() = default;
  ChannelEnd(const ChannelEnd&) = delete;
  ChannelEnd& operator=(const ChannelEnd&) = delete;

  /// What the receiving end joins by. A sending end, ahead of connect().
  virtual Result<std::vector<std::byte>> invite() = 0;
  /// Blocks until both ends are connected. `invitation`: that of the sending end. Errors: as of
  /// transfer().
  virtual Result<void> connect(const std::vector<std::byte>& invitation) = 0;
  /// Sends, or receives; blocks until that has ended and touches the memory no longer. Errors:
  /// peer_lost if the connection broke; world_reformed after abort(); the library's.
  virtual Result<void> transfer(std::byte* data, std::uint64_t bytes) = 0;
  /// Any thread, does not block: ends whatever is under way here, now and later.
  virtual void abort() = 0;
};

/// The collective library's half. It has the communicators, of which there is at most one of each
/// number at a time. All of them run on the collective lane, in the order of the commands, so that
/// those that share ranks never wait for one another crosswise.
///
/// The engine loads it when it is made and ends it first; until then everything here may be called,
/// also before the collective lane is open. Collectives run on the lane as a library's operations
/// do, and answer world_reformed while their communicator is not there. Whether one has failed is
/// told at the marks of the collective lane: see Engine::reached().
class CollectiveHalf : public LibraryHalf {
 public:
  // Forming a communicator. On helper threads; may block.

  /// Does ahead of time whatever of it needs no peer (NCCL: loading its kernels takes longer than
  /// forming a small communicator). What a standby does while it waits.
  virtual Result<void> prepare_connect() { return {}; }
  /// What this rank gives to the forming of a communicator (NCCL: the unique id from rank 0,
  /// nothing from others; Gloo: this rank's addresses). The ranks gather all contributions, in rank
  /// order. Gives up what there was of that number. Errors: peer_lost if abort() was called since
  /// the forming began: nobody connects such a one any more, and nobody drops it.
  virtual Result<std::vector<std::byte>> contribute(const Place& place) = 0;
  /// Forms the communicator from all contributions and warms it up. Errors: peer_lost, timeout,
  /// library.
  virtual Result<void> connect(const Place& place,
                               const std::vector<std::vector<std::byte>>& contributions) = 0;
  /// Gives up one communicator that no rank uses any more, as abort() does. Helper thread; may
  /// block.
  virtual void drop(std::uint32_t communicator) = 0;

  /// Ends what is under way on all communicators, at once, from any thread while others use it
  /// (also a connect() under way): queued collectives are given up, their results undefined, and
  /// the lane becomes usable again. What collectives of peers make of it is undefined too: theirs
  /// must have been given up before. What cannot be ended without blocking is left to a background
  /// thread. No-op without one.
  virtual void abort() = 0;

  /// How often abort() has been called. Any thread.
  [[nodiscard]] std::uint64_t aborts() const noexcept { return aborts_.load(); }

  /// An end of a channel, which belongs to the caller. Does not block. Errors: unsupported.
  virtual Result<std::shared_ptr<ChannelEnd>> make_channel_end(bool /*receives*/) {
    return Error{Errc::unsupported, 0, "this engine has no channels"};
  }

  /// True for a command that ends at once when its communicator is given up, and waits on the
  /// device for ranks of this host alone. Others take long, and are not launched far ahead.
  /// Reactor.
  virtual bool ends_at_once(const OperationInfo&, const std::byte* /*op*/, const Call&) {
    return false;
  }

  /// The links that the command is the first to use. NCCL connects two ranks when the first message
  /// between them is queued, and blocks until both have got there: where this is not empty, run()
  /// must not be called before open_links() has ended. Reactor; not during open_links().
  virtual std::vector<Link> new_links(const OperationInfo&, const std::byte*, const Call&) {
    return {};
  }
  /// Connects this rank with its peers, who do the same for their next command. Helper thread;
  /// blocks until they have come or the communicator is aborted; meanwhile nothing may be run on
  /// the collective lane. Errors: world_reformed if it was aborted, NCCL's.
  virtual Result<void> open_links(std::uint32_t /*communicator*/, const std::vector<Link>&) {
    return {};
  }

  /// A slab is there from now on, in the communicators that are there and in those that will be:
  /// what its buffers gain by being known ahead is to be done for it. By the engine, if
  /// EngineOptions::register_buffers, on all ranks alike. Any thread; may block until a call on a
  /// communicator has returned.
  virtual void slab_mapped(std::byte* /*base*/, std::uint64_t /*bytes*/) {}
  /// It is about to go; nothing uses it any more. Likewise, but does not block.
  virtual void slab_unmapped(std::byte* /*base*/) {}

  /// What the communicators have noticed by themselves while something is queued on the lane, such
  /// as a connection that broke. The reactor's thread, by the engine, for a mark of the collective
  /// lane that is not reached. Errors: peer_lost, or the context's.
  virtual Result<void> health() { return {}; }

  /// From now on adds the time that collectives take to `times`, which outlives this. The reactor's
  /// thread, before the first collective.
  virtual void measure(wire::HostTimes& /*times*/) {}

 protected:
  /// What abort() begins with.
  void note_abort() noexcept { ++aborts_; }
  [[nodiscard]] bool is_given_up(const Place& place) const noexcept {
    return place.aborts && *place.aborts != aborts();
  }

 private:
  std::atomic<std::uint64_t> aborts_{0};
};

}  // namespace troupe::host
