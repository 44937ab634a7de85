#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/device/device_events.hpp"
#include "rank/device/device_order.hpp"

namespace troupe::rank_process {

/// The number of a device host; never used again.
using HostId = std::uint64_t;

/// How far a device host has come; see host_transitions.def.
enum class HostState : std::uint8_t {
  rising,    ///< a standby that starts
  standby,   ///< one that is ready
  coming,    ///< starts, to succeed a faulty host that is not buried yet
  waiting,   ///< the same, and is ready
  starting,  ///< has the commands and starts
  ready,     ///< has the commands, and not the memory
  promoting,
  serving,
  faulty,   ///< lost; its process may live
  gone,     ///< lost, and its process has ended
  retired,  ///< has handed over in good health, or its context is dead and it has a successor
  ended
};

/// A device host, until it is left to be reaped.
struct DeviceHost {
  HostState state{};
  TimePoint since{};            ///< it was started
  std::uint32_t formation = 0;  ///< of the standby world whose communicator it has; 0: none
  std::optional<DeviceOrder> preparing{};  ///< as standby, not answered yet
  std::optional<DeviceFault> fault{};      ///< faulty, gone
};

/// The device hosts of a rank: how far each has come, and which is which. At most one is active, at
/// most one its successor, at most one a standby. Pure.
class HostTable {
 public:
  enum class Event : std::uint8_t {
    ready,
    lost,
    exited,
    chosen,
    inherits,
    promote,
    promoted,
    takes_over,
    hands_over,
    buried,
    outlives
  };

  static constexpr HostId kFirst = 1;
  [[nodiscard]] HostId new_id() noexcept { return next_++; }
  void add(HostId host, HostState state, TimePoint now);
  void erase(HostId host) { hosts_.erase(host); }
  void clear() { hosts_.clear(); }
  /// False, and nothing happens: the host is not known (any more), or host_transitions.def has no
  /// such transition.
  bool move(HostId host, Event event);

  [[nodiscard]] DeviceHost& at(HostId host) { return hosts_.at(host); }
  [[nodiscard]] const DeviceHost& at(HostId host) const { return hosts_.at(host); }
  [[nodiscard]] const std::map<HostId, DeviceHost>& all() const noexcept { return hosts_; }
  /// nullopt: there is no such host (any more).
  [[nodiscard]] std::optional<HostState> state_of(HostId host) const;
  [[nodiscard]] bool has_started(HostId host) const;

  /// Has the commands; nullopt: the device has failed.
  [[nodiscard]] std::optional<HostId> active() const;
  /// The active one, lost.
  [[nodiscard]] std::optional<HostId> faulty() const;
  /// The active one, has started and is not lost: its heartbeat counts.
  [[nodiscard]] std::optional<HostId> beating() const;
  /// Has the memory, or is just given it.
  [[nodiscard]] std::optional<HostId> with_memory() const;
  [[nodiscard]] std::optional<HostId> serving() const;
  /// The host that follows a faulty one.
  [[nodiscard]] std::optional<HostId> successor() const;
  [[nodiscard]] std::optional<HostId> standby() const;
  [[nodiscard]] std::optional<HostId> ready_standby() const;
  /// Orders are carried out by it: the one that serves or will.
  [[nodiscard]] std::optional<HostId> next_in_line() const;
  /// Have started, and may serve one day.
  [[nodiscard]] std::vector<HostId> heirs() const;

 private:
  template <class... States>
  [[nodiscard]] std::optional<HostId> in(States... states) const;

  std::map<HostId, DeviceHost> hosts_;
  HostId next_ = kFirst;
};

}  // namespace troupe::rank_process
