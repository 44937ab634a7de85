#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "rank/device/host/host_requests.hpp"

namespace troupe::rank_process {

/// What the first standby takes of the device's memory: what is free less once it is there, beside
/// new slabs. Later ones come up while hosts that have handed over are on their way out.
///
/// `serving`: the host that serves, which is asked; nullptr: none just now. `slabs`: bytes of all
/// slabs. One thread.
class StandbyMemory {
 public:
  explicit StandbyMemory(HostRequests* requests) : requests_(requests) {}

  /// A standby is about to be raised.
  void before(const HostLink* serving, std::uint64_t slabs);
  /// A standby is there, or has its communicator. Calls `then` in the end: with what it takes,
  /// where that is known.
  void after(const HostLink* serving, std::uint64_t slabs,
             const std::function<void(std::optional<std::uint64_t>)>& then);

  /// 0: not known.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  HostRequests* requests_;
  bool asked_ = false;                   ///< of the first one
  std::optional<std::uint64_t> before_;  ///< that nobody but slabs had taken
  std::uint64_t bytes_ = 0;
};

}  // namespace troupe::rank_process
