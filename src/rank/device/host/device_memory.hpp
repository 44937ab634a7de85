#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/ipc/shared_memory.hpp"
#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/device_settings.hpp"
#include "rank/device/host/host_requests.hpp"

namespace troupe::rank_process {

/// The memory that outlives device hosts: slabs, by their descriptors, pinned segments, and slabs
/// of other ranks of the node. A host gets all of it when it is promoted, and what comes up later
/// at once. One thread.
///
/// `host`: the one that has the memory; nullptr: none just now.
class DeviceMemory {
 public:
  DeviceMemory(HostRequests* requests, const DeviceSettings& settings)
      : requests_(requests), settings_(&settings) {}

  /// `host` serves; without one the slab is made once there is one: make_wanted().
  void make(const device_message::MakeSlab& make, const std::shared_ptr<HostLink>& host);
  void make_wanted(const std::shared_ptr<HostLink>& host);
  void share(const device_message::ShareSlab& share) const;
  void map(const device_message::MapPinned& map, const std::shared_ptr<HostLink>& host);
  void map(const device_message::MapForeign& map, const std::shared_ptr<HostLink>& host);
  void drop(std::uint32_t region, HostLink* host);
  /// The host is promoted.
  void give(const HostLink& host) const;
  /// Slabs that were asked for will not be made.
  void give_up(const Error& error);

  [[nodiscard]] std::uint64_t slab_bytes() const;

 private:
  struct Wanted {
    std::uint64_t bytes;
    std::shared_ptr<Promise<void>> made;
  };
  struct Slab {
    UniqueFd fd;
    std::uint64_t bytes;
    std::uint64_t serial;
  };
  struct ForeignSlab {
    std::shared_ptr<UniqueFd> fd;
    std::uint64_t bytes;
  };
  /// Regions that one host has been given by MapPinned::apart.
  struct Apart {
    std::uint64_t host = 0;
    std::vector<std::uint32_t> regions{};
  };

  HostRequests* requests_;
  const DeviceSettings* settings_;
  std::uint64_t next_serial_ = 1;
  std::map<std::uint32_t, Slab> slabs_;
  std::map<std::uint32_t, ForeignSlab> foreign_;
  std::map<std::uint32_t, std::shared_ptr<ipc::SharedMemory>> pinned_;
  std::map<std::uint32_t, Wanted> wanted_;  ///< slabs that are asked for and not made yet
  Apart apart_;
};

}  // namespace troupe::rank_process
