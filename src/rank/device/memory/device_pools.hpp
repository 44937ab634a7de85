#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/future.hpp>

#include "common/ipc/shared_memory.hpp"
#include "rank/device/memory/memory_pool.hpp"

namespace troupe::rank_process {

class DeviceCore;

/// The memory of a rank's device that its program, and troupe itself, take and give back: buffers
/// in slabs, and pinned host memory. What is handed out keeps the DeviceCore alive. Any thread.
class DevicePools {
 public:
  struct Options {
    int rank = 0;    ///< what tokens say, with …
    int device = 0;  ///< … this
    std::uint64_t slab_bytes = 64u << 20;
    std::uint64_t pinned_bytes = 64u << 20;
    std::uint64_t memory_limit = 0;
  };

  DevicePools(DeviceCore& core, const Options& options);

  Result<detail::Allocation> allocate(std::uint64_t length, DType dtype);
  Result<detail::PinnedAllocation> allocate_pinned(std::uint64_t length, std::size_t element);
  /// Pinned memory that no device host has until map_apart(): for large pieces, whose mapping takes
  /// seconds and must be no part of a recovery. All commands that name it must have completed when
  /// it is let go.
  Result<detail::PinnedAllocation> allocate_apart(std::uint64_t bytes);
  /// Maps it in the present device host, beside its work. Errors: device_lost (there is none just
  /// now), out_of_memory, …
  Future<void> map_apart(const Operand& memory);

  [[nodiscard]] std::uint64_t bytes_held() const { return slabs_.held(); }
  /// True: other ranks may name a buffer of this device, because a token was made of one.
  [[nodiscard]] bool has_tokens() const noexcept { return has_tokens_.load(); }
  /// Called with the region of a slab that is no more, by whatever thread dropped it; must not
  /// block. Set before there are transfers.
  void on_slab_dropped(std::function<void(std::uint32_t region)> listener);

 private:
  class Lease;
  struct Resting {
    std::vector<std::uint64_t> users;  ///< once these are answered nothing names the range
    MemoryPool::Range range;
  };

  Result<void> make_slab(std::uint32_t region, std::uint64_t bytes);
  Result<void> make_pinned(std::uint32_t region, std::uint64_t bytes);
  void drop_slab(std::uint32_t region);
  void drop_pinned(std::uint32_t region);
  void reclaim();

  DeviceCore& core_;
  Options options_;
  std::atomic<bool> has_tokens_{false};
  std::mutex dropped_mutex_;
  std::function<void(std::uint32_t)> slab_dropped_;
  std::map<std::uint32_t, std::uint64_t> slab_bytes_;  ///< by region
  MemoryPool slabs_;
  MemoryPool pinned_;
  std::mutex pinned_mutex_;
  std::map<std::uint32_t, std::shared_ptr<ipc::SharedMemory>> pinned_memory_;
  std::uint32_t next_apart_ = 0;
  std::vector<Resting> resting_;  ///< pinned ranges that were given back
};

}  // namespace troupe::rank_process
