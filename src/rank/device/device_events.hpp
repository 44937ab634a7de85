#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>
#include <troupe/gpu_health.hpp>
#include <troupe/loaded_library.hpp>

/// What a DeviceActor tells whoever coordinates its GPU with others (the world), and nobody else.
namespace troupe::rank_process {

/// The device host is dead, lost its context, hangs, or found its communicator broken.
struct DeviceFault {
  std::string kind;  ///< "kill", "segv", "hang", "exit", "illegal-address", …; "communicator"; else
                     ///< the error class
  Error error;
  TimePoint struck_at{};  ///< when it happened, as far as can be known
  TimePoint detected_at{};
  bool still = false;  ///< nothing of the host writes any more, although its process may live on
};
/// The error of requests to a device host that has died of this.
inline Error host_died(const Error& cause) {
  return {Errc::device_lost, cause.native, "the device host died: " + cause.message};
}
/// What a fault, or the end of an epoch, cost here.
struct DeviceLoss {
  std::string kind;  ///< how the device host died; empty if it lives on
  std::uint32_t lost_buffers = 0;
  /// From the detection until the device host's process had ended; 0: it was not waited for.
  std::chrono::nanoseconds end{};
};
/// The order of this round is carried out; or, with a formation, by the standby.
struct DeviceDone {
  enum class Order : std::uint8_t {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) name,
#include <troupe/recovery.def>
  };
  Order order{};
  std::uint32_t round = 0;
  std::uint32_t formation = 0;  ///< of contribute and connect: the standby has done it
  Result<std::vector<std::byte>> outcome =
      std::vector<std::byte>{};  ///< contribute: the contribution
};
/// The GPU cannot come back: budget spent, or the hardware failed.
struct DeviceFailed {
  Error error;
};

/// The budget is spent, and the run should end while it still can.
struct DeviceExhausted {};

/// There is a standby, ready to take part in forming a communicator; or there is none any more.
struct DeviceStandby {
  bool ready = false;
};
/// What the first standby, with its communicator where it has one, takes of the device's memory:
/// what is free less than before, beside new slabs.
struct DeviceStandbyMemory {
  std::uint64_t bytes = 0;
};
/// A device host has opened a library, or one that follows it has opened another version of it.
struct DeviceLibrary {
  OpenedLibrary library;
};
/// A GPU that had failed has a device host again.
struct DeviceRevived {};
/// The GPU says something of its health that it has not said before.
struct DeviceHealth {
  HealthEvent event;
};

using DeviceEvent =
    std::variant<DeviceFault, DeviceLoss, DeviceDone, DeviceFailed, DeviceExhausted, DeviceStandby,
                 DeviceStandbyMemory, DeviceLibrary, DeviceRevived, DeviceHealth>;
/// Called on the DeviceActor's thread; must not block.
using DeviceListener = std::function<void(DeviceEvent)>;

}  // namespace troupe::rank_process
