#pragma once

#include <cstdint>
#include <memory>

#include <troupe/world.hpp>

namespace troupe::bench {

/// The collectives of the library below, without troupe, between the same ranks on the same GPUs.
class RawCollectives {
 public:
  virtual ~RawCollectives() = default;
  /// Queues an in-place sum of `count` doubles over all ranks.
  virtual void all_reduce(std::int64_t count) = 0;
  /// Waits for everything queued. Throws if anything failed.
  virtual void wait() = 0;

  /// All ranks call this. `largest` is the most doubles that will be reduced. Null where there is
  /// nothing to compare with: a build without CUDA, or a device that is no GPU.
  static std::unique_ptr<RawCollectives> make(World& world, const DeviceInfo& device,
                                              std::int64_t largest);
};

}  // namespace troupe::bench
