#pragma once

#include <cstdint>
#include <memory>

#include <troupe/device.hpp>

namespace troupe::bench {

/// A copy between the memories of two devices of this node by plain calls of one process: what the
/// fetch of a token within a node is measured against.
class RawCopy {
 public:
  virtual ~RawCopy() = default;
  /// Copies all of it once and waits. Throws if that fails.
  virtual void run() = 0;

  /// Null where there is nothing to compare with: fewer than two GPUs in sight.
  static std::unique_ptr<RawCopy> make(const DeviceInfo& device, std::uint64_t bytes);
};

/// By memcpy: what the cpu engine's memory is copied with.
std::unique_ptr<RawCopy> make_host_copy(std::uint64_t bytes);

}  // namespace troupe::bench
