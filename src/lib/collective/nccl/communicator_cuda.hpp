#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "lib/collective/peer_memory/direct_cuda.hpp"

namespace troupe::host::cuda {

/// The NCCL communicator of one device, which can be given up at any moment.
///
/// It is a blocking one: with blocking = 0 every small collective costs several times as much. A
/// blocking initialisation, though, cannot be aborted, because its handle is not valid before it
/// ends. It therefore runs on a thread of its own, connect() only waits for it, and abort() lets
/// connect() return while the thread is left behind: it ends when NCCL notices that its peers'
/// sockets are closed, and then frees what it made. A communicator that stands is given up by
/// ncclCommAbort, on a thread of its own too because that takes half a second to return, although
/// it takes effect at once. ncclCommDestroy, which waits for peers, is never called. Left-behind
/// threads are bounded by kMaxBackground.
class Communicator {
 public:
  static constexpr std::size_t kMaxBackground = 8;
  /// NCCL's bootstrap root serves this many ranks well; larger worlds get one root per so many.
  static constexpr int kRanksPerRoot = 128;
  /// How long the destructor waits for threads that are giving communicators up, which a busy GPU
  /// delays. A device host that is a process ends with them; one that is a thread must not leave
  /// them behind, for they crash when the program's process ends.
  static constexpr std::chrono::seconds kEndTimeout{2}, kEndTimeoutInProcess{60};

  /// How many channels NCCL may use.
  struct Channels {
    int least = 0, most = 0;  ///< 0: as it likes
    [[nodiscard]] static constexpr Channels exactly(int count) { return {count, count}; }
  };
  /// Channels of the world's communicator where the order of sums is pinned: the number of channels
  /// decides which of their rings adds an element.
  static constexpr int kPinnedChannels = 16;
  /// Channels of a group's communicator: NCCL takes memory for each, which a standby has little of,
  /// and most groups are small.
  static constexpr int kGroupChannels = 8;

  /// Channels of the communicator of that number; 0 is the world's.
  static Channels channels_of(std::uint32_t number, bool reproducible) {
    const bool world = number == 0;
    const int most = world ? kPinnedChannels : kGroupChannels;
    if (reproducible) return Channels::exactly(most);
    return {.most = world ? 0 : most};
  }

  /// `directs`: where the direct ways of small collectives come from, and outlives this; nullptr:
  /// there are none of them.
  Communicator(int device, Channels channels, bool in_process, Directs* directs = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Forms a communicator of this process alone and drops it: NCCL's kernels are loaded then.
  /// Helper thread.
  static Result<void> rehearse(int device);
  /// This rank's contribution to a communicator of so many: a unique id on every kRanksPerRoot-th
  /// rank, and how to reach its memory for small collectives. Helper thread. Errors: peer_lost if
  /// `given_up` answers true at its end; the driver's, NCCL's.
  Result<std::vector<std::byte>> contribute(int rank, int size,
                                            const std::function<bool()>& given_up = nullptr);
  /// Forms the communicator, connects it with a small all-reduce. A contribution may be empty: then
  /// it has no unique id, and the communicator no direct way. Helper thread; blocks until done or
  /// aborted. Errors: peer_lost if aborted, invalid, device_lost if too many earlier attempts are
  /// still stuck, NCCL's.
  Result<void> connect(int rank, int size,
                       const std::vector<std::vector<std::byte>>& contributions);
  /// Any thread; does not block. After it there is no communicator, and the collective stream
  /// drains within milliseconds.
  void abort();
  /// The same for good: what is connected later is given up too.
  void close();

  /// Calls `work(communicator, rank, ranks)` while no abort frees it. Reactor. Errors:
  /// world_reformed if there is none.
  template <class Work>
  Result<void> use(Work&& work) {
    const std::lock_guard lock(shared_->launching);
    const ncclComm_t handle = shared_->handle.load();
    if (handle == nullptr) return Error{Errc::world_reformed, 0, "there is no communicator"};
    return std::forward<Work>(work)(handle, shared_->rank.load(), shared_->size.load());
  }
  /// Whether the link has been opened on this communicator. Within use() only.
  [[nodiscard]] bool is_open(const Link& link) const;
  /// The way of small collectives, which all ranks have, or none of them; nullptr: none. Within
  /// use() only.
  [[nodiscard]] std::shared_ptr<Direct> direct() const {
    const std::lock_guard lock(shared_->state);
    return shared_->direct;
  }
  /// Opens links by a byte over each of them, in one group on the stream. Helper thread; blocks
  /// until the peers have come or the communicator is given up. Errors: world_reformed if there is
  /// none, or none any more; NCCL's.
  Result<void> open(const std::vector<Link>& links, cudaStream_t stream);
  /// Registers memory with the communicator that stands, if any, unless that has been done. Blocks
  /// while a call on it is under way. What NCCL refuses is left unregistered, with a warning.
  void add_memory(std::byte* base, std::uint64_t bytes);
  /// The converse: the memory is about to go. NCCL asks peers for it, so a thread of its own does
  /// it; add_memory() does not overtake that. NCCL itself does it for a communicator that is given
  /// up, once its kernels have ended. Does not block.
  void remove_memory(std::byte* base);
  /// What NCCL has noticed by itself, such as a connection that broke: whatever it is, peer_lost,
  /// or the sticky error of the context behind it. Reactor.
  Result<void> health();

 private:
  struct Attempt;
  /// Outlives the object as long as a left-behind thread needs it.
  struct Shared {
    Shared(int device_, Channels channels_) : device(device_), channels(channels_) {}
    const int device;
    const Channels channels;
    /// Held while NCCL is called on `handle`. abort() takes the handle away without it, because
    /// that call may be the one that will never return.
    std::timed_mutex launching;
    std::atomic<ncclComm_t> handle{nullptr};
    std::atomic<int> rank{0};
    std::atomic<int> size{0};
    std::atomic<std::uint64_t> formed{0};  ///< which communicator `handle` is
    std::vector<bool> open;                ///< links, two of each rank; guarded by launching
    std::uint64_t open_on = 0;  ///< the communicator on which they are; guarded by launching
    std::map<std::byte*, void*> memory;  ///< registered, with NCCL's handles; guarded by launching
    std::uint64_t memory_on = 0;         ///< likewise the communicator of that
    void drop_leaving(ncclComm_t comm);
    std::mutex state;  ///< guards what follows, and is held while `handle` changes
    std::shared_ptr<Attempt> attempt;
    std::shared_ptr<Direct> offered;  ///< from contribute() until its ranks meet
    std::shared_ptr<Direct> direct;   ///< of `handle`
    bool closed = false;
    std::size_t background = 0;
    std::vector<std::byte*> leaving;  ///< memory that is to be deregistered
    std::condition_variable changed;
  };
  static void form(const std::shared_ptr<Shared>& shared, const std::shared_ptr<Attempt>& attempt);
  static void give_up(const std::shared_ptr<Shared>& shared, ncclComm_t handle);

  const std::chrono::milliseconds end_timeout_;
  Directs* const directs_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace troupe::host::cuda
