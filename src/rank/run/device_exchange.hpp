#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <troupe/device.hpp>

#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Exchanges values between the members of a run through their devices. A fault ends the exchange
/// on all of them, as it ends whatever else they do there. The program's thread.
class DeviceExchange {
 public:
  explicit DeviceExchange(WorldCore& core) : core_(&core), device_(core.shared_device()) {}

  /// The value of every member, in their order. All members call it; none returns before all have
  /// called it. Throws Exception: world_reformed, device_lost, ….
  template <class T>
  [[nodiscard]] std::vector<T> gather(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = all_gather(std::as_bytes(std::span(&value, 1)));
    std::vector<T> all(bytes.size() / sizeof(T));
    std::memcpy(static_cast<void*>(all.data()), bytes.data(), bytes.size());
    return all;
  }
  /// Waits for all members.
  void meet() { (void)gather(std::uint8_t{}); }

 private:
  [[nodiscard]] std::vector<std::uint8_t> all_gather(std::span<const std::byte> mine);

  WorldCore* core_;
  Device device_;
  GpuRef<std::uint8_t> mine_, all_;
};

}  // namespace troupe::rank_process
