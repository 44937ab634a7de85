#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/future.hpp>

#include "common/ipc/shared_memory.hpp"
#include "common/wire/control.hpp"
#include "rank/device/device_events.hpp"
#include "rank/device/device_order.hpp"

namespace troupe::rank_process {

/// Messages of the DeviceActor, beside DeviceOrder.
namespace device_message {
struct FromHost {
  std::uint64_t link;
  std::shared_ptr<wire::FromDeviceHost> message;
};
struct HostClosed {
  std::uint64_t link;
};
struct HostExited {
  std::uint64_t link;
};
struct Look {};  ///< time to look at heartbeats and deadlines
struct Listen {
  DeviceListener listener;  ///< from now on faults are its business: nothing is replaced unasked
};
struct MakeSlab {
  std::uint32_t region;
  std::uint64_t bytes;
  std::shared_ptr<Promise<void>> made;
};
struct MapPinned {
  std::uint32_t region;
  std::shared_ptr<ipc::SharedMemory> memory;
  std::shared_ptr<Promise<void>> mapped;
  /// Only in the present host, once; a host that follows it is not given the memory. Fails with
  /// device_lost where there is no host just now.
  bool apart = false;
};
struct DropRegion {
  std::uint32_t region;
};
/// A slab of this rank, for another rank of the node to map.
struct SharedSlab {
  std::shared_ptr<UniqueFd> fd;
  std::uint64_t serial = 0;  ///< unlike a region, never used again
  std::uint64_t bytes = 0;
};
struct ShareSlab {
  std::uint32_t region;
  std::shared_ptr<Promise<SharedSlab>> shared;
};
/// Maps a slab of another rank; DropRegion ends it.
struct MapForeign {
  std::uint32_t region;
  std::shared_ptr<UniqueFd> fd;
  std::uint64_t bytes;
  std::shared_ptr<Promise<void>> mapped;
};
/// What has taken how much of the device's memory.
struct AskMemory {
  std::shared_ptr<Promise<std::vector<MemoryUse>>> told;
};
/// The libraries that are open.
struct AskLibraries {
  std::shared_ptr<Promise<std::vector<OpenedLibrary>>> told;
};
/// The program will run such commands again and again: their wire::kind_key() and a record of each.
struct KindsRecur {
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> kinds;
};
/// One group, beside the work of the device host that serves. Always answered; device_lost where
/// there is none just now.
struct ContributeGroup {
  std::uint32_t number;
  std::int32_t rank, size;
  std::shared_ptr<Promise<std::vector<std::byte>>> contributed;
};
struct ConnectGroup {
  std::uint32_t number;
  std::int32_t rank, size;
  std::shared_ptr<const DeviceOrder::Blobs> contributions;
  std::shared_ptr<Promise<void>> connected;
};
/// No rank uses the group any more.
struct DropGroup {
  std::uint32_t number;
};
/// The GPU says something of its health.
struct Health {
  HealthEvent event;
  unsigned processes = 0;                     ///< that compute on the GPU; 0: not known
  std::shared_ptr<Promise<void>> heard = {};  ///< nullptr: nobody waits for it
};
/// A device host was asked for a sign of life, because of what the GPU says, and has had its time.
struct ProbeOver {
  std::uint64_t host;   ///< HostId
  std::uint64_t probe;  ///< its number
  std::string sign;     ///< what the GPU says
};
struct Suffer {
  memory::FaultKind kind;  ///< at once
};
struct WorldActive {};  ///< the world is formed again: time to raise a new standby
/// See DeviceProtocol::progress().
struct RunProgress {
  bool in_run;
};
/// The GPU is left though it works: as if it had failed.
struct GiveUp {
  Error why;
};
struct Revive {};  ///< a device that was given up: try once more; a success is reported
struct ShutDown {
  using Reply = bool;
};
}  // namespace device_message

}  // namespace troupe::rank_process
