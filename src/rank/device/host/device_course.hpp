#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "rank/device/device_order.hpp"
#include "rank/device/host/device_actions.hpp"
#include "rank/device/host/host_table.hpp"

namespace troupe::rank_process {

/// The states of a device; see device_transitions.def.
enum class DeviceState : std::uint8_t {
  starting,
  idle,
  quiescing,
  replacing,
  contributing,
  connecting,
  formed,
  promoting,
  failed,
  reviving,
  ended
};

/// How far a device has come: its state, the order that it carries out, why it has failed, and what
/// it knows of the world. Pure: see DeviceProtocol.
class DeviceCourse {
 public:
  using Outcome = Result<std::vector<std::byte>>;
  enum class Event : std::uint8_t {
#define TROUPE_RECOVERY_ORDER(name, phase, message, fault) name,
#include <troupe/recovery.def>
    came_up,
    carried_out,
    refused,
    serves,
    lost,
    lost_alone,
    given_up,
    revive
  };

  DeviceCourse(HostTable& hosts, DeviceActions& actions) : hosts_(hosts), actions_(actions) {}

  [[nodiscard]] DeviceState state() const noexcept {
    return state_;
  }
  [[nodiscard]] bool is(DeviceState state) const noexcept {
    return state_ == state;
  }
  /// Why the device has failed, or has ended.
  [[nodiscard]] const std::optional<Error>& failure() const noexcept {
    return failed_;
  }
  /// True: the order fits the state.
  [[nodiscard]] bool may(DeviceDone::Order order) const;
  /// False: the table has no such transition.
  bool move(Event event);
  bool move(DeviceDone::Order order);

  /// The order that is carried out, unless idle. To start with: to come up, which nobody has
  /// ordered.
  [[nodiscard]] const DeviceOrder& open() const noexcept {
    return open_;
  }
  [[nodiscard]] TimePoint open_since() const noexcept {
    return open_since_;
  }
  void set_open(const DeviceOrder& order) {
    open_ = order;
  }
  void set_open(const DeviceOrder& order, TimePoint now) {
    open_ = order;
    open_since_ = now;
  }
  /// Moves on, and answers the open order.
  void answer(Event event, Outcome outcome = std::vector<std::byte>{});
  /// Answers an order that is carried out once the host serves.
  void answer_if_serving();
  void report_done(const DeviceOrder& order, Outcome outcome);

  void give_up(const Error& error);
  /// A new start has come up.
  void come_back(HostId host);
  void end(const Error& why);

  // The world.

  /// There is one: nothing is replaced without its order.
  void set_governed() noexcept {
    governed_ = true;
  }
  [[nodiscard]] bool governed() const noexcept {
    return governed_;
  }
  /// As far as this rank has heard.
  void set_world_active(bool active) noexcept {
    world_active_ = active;
  }
  [[nodiscard]] bool world_active() const noexcept {
    return world_active_;
  }

 private:
  static std::optional<DeviceState> next(DeviceState from, Event event);
  static Event event_of(DeviceDone::Order order);

  HostTable& hosts_;
  DeviceActions& actions_;
  DeviceState state_ = DeviceState::starting;
  DeviceOrder open_{.what = DeviceDone::Order::replace};
  TimePoint open_since_{};
  std::optional<Error> failed_;  ///< failed, reviving, ended
  bool governed_ = false;
  bool world_active_ = false;
};

/// Starts a host, and notes it.
Result<HostId> start_host(HostTable& hosts, DeviceActions& actions, DeviceActions::Start as,
                          HostState state, TimePoint now);

}  // namespace troupe::rank_process
