#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <troupe/lib/collective.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/peer_memory.hpp"
#include "lib/collective/peer_memory/direct_kernels.cuh"

namespace troupe::host::cuda {

/// The way of small all-reduces and barriers of a communicator whose ranks share a host, beside
/// NCCL: one kernel that stores into the memory of the others (see direct_kernels.cuh). NCCL's own
/// take 10 us of the CPU to enqueue; this one is a launch.
///
/// NCCL's communicator stands beside it, with all else. Both are on the same lane.
class Direct {
 public:
  Direct(std::unique_ptr<PeerMemory> memory, std::uint32_t* given_up, int ranks);

  [[nodiscard]] const PeerMemory::Card& card() const noexcept { return memory_->card(); }
  /// Maps the parts of the others: as PeerMemory::meet().
  Result<void> meet(int rank, std::span<const PeerMemory::Card> cards,
                    const std::function<bool()>& given_up);

  /// In place of meet(): nobody shall reach it any more. Does not block.
  void withdraw() noexcept { memory_->close(); }

  /// True for what goes this way. The answer is the same on all ranks.
  [[nodiscard]] static bool takes(const collective::AllReduce& op) noexcept {
    return op.count <= kernels::kDirectBytes / size_of(op.dtype);
  }
  /// Queues it, after meet(). The reactor, or who records, one at a time. One that comes again with
  /// the same operands is launched as a graph, which takes CUDA half as long as to launch a kernel.
  [[nodiscard]] Result<void> reduce(const Services& services, const collective::AllReduce& op,
                                    const Call& call);
  /// Queues a kernel that ends once all ranks have come to it, after meet(): what each has written
  /// before is then seen by all. As reduce() in all else.
  [[nodiscard]] Result<void> meet_on_device(const kernels::Launch& launch) const;
  /// Ends what waits for other ranks on the GPU, now and later. Any thread; does not block.
  void give_up() noexcept;
  [[nodiscard]] std::uint32_t* given_up() const noexcept { return given_up_; }

 private:
  static constexpr std::size_t kKept = 64;
  /// Dtype and reduction, count, and where the operands are.
  using Key = std::array<std::uint64_t, 4>;
  /// A call that has been made before.
  struct Repeated {
    Key key{};
    Handle<GraphTraits> graph;
    Handle<GraphExecTraits> ready;  ///< from the second time on
  };

  [[nodiscard]] Result<void> queue(const kernels::Launch& launch, const collective::AllReduce& op,
                                   const Call& call) const;
  /// The same call of before; nullptr, with the call noted: there was none among the last kKept.
  Repeated* find(const Key& key);
  [[nodiscard]] Result<void> make_graph(Repeated& repeated, const collective::AllReduce& op,
                                        const Call& call);

  std::unique_ptr<PeerMemory> memory_;
  std::uint32_t* given_up_;  ///< a word that kernels read
  kernels::DirectRanks ranks_;
  std::vector<Repeated> repeated_;
  std::size_t next_ = 0;  ///< whose place the next one takes, once there are kKept
  Stream capturing_;
};

/// Makes the direct ways of all communicators of a device host, and keeps those that were given up
/// until their last kernels have ended: to unmap what a kernel uses ends the device host.
class Directs {
 public:
  /// This rank's part for a communicator of so many ranks. Helper thread. With
  /// TESTING_TROUPE_DIRECT_CALLS=N in the environment the first call is number N + 1. Errors: the
  /// driver's, io; unsupported for a single rank and for more than kDirectRanks.
  Result<std::shared_ptr<Direct>> make(int device, int ranks);

  /// Nothing more is queued by it. Any thread; does not block.
  void retire(std::shared_ptr<Direct> direct) {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(direct));
  }
  /// All that was retired has been queued on the stream, if anywhere. The reactor, while nothing is
  /// recorded.
  Result<void> mark(cudaStream_t stream);
  /// Frees those that have ended. Helper thread.
  Result<void> free_ended();

 private:
  static constexpr std::size_t kWords = 1024;  ///< of a page

  /// A word for Direct::give_up(), in memory that is never freed: to free it waits for all that
  /// runs.
  Result<std::uint32_t*> take_word();

  std::mutex mutex_;
  std::vector<HostMemory> pages_;
  std::vector<std::uint32_t*> free_words_;
  std::vector<std::shared_ptr<Direct>> retired_;  ///< not marked yet
  struct Marked {
    Event end;
    std::shared_ptr<Direct> direct;
  };
  std::vector<Marked> marked_;
};

}  // namespace troupe::host::cuda
