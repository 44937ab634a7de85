#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "rank/device/device_order.hpp"
#include "rank/device/host/device_actions.hpp"
#include "rank/device/host/device_course.hpp"
#include "rank/device/host/device_standbys.hpp"
#include "rank/device/host/host_table.hpp"
#include "rank/device/host/succession.hpp"

namespace troupe::rank_process {

/// What becomes of a rank's device hosts: which one serves, who follows it, when a standby is
/// raised, how the world's orders are carried out, and when the device is given up.
///
/// Intuition: one host, the *active* one, has the commands of the rank in its ring; once promoted
/// it has the memory too, and serves. When it is lost a *successor* takes its place: the standby if
/// there is one, else a host that has yet to start. The old host is killed, and has ended, first,
/// unless its context is dead: nothing of that writes any more, and its end follows later. In a
/// world that is the world's business: it is told of the loss and gives the orders of recovery.def,
/// among them promote, by which a standby that belongs to a communicator already takes over, also
/// from a host in good health. Alone, the device replaces its host at once.
///
/// Model: a host that is killed exits some time later; an answer may come late or never, and none
/// comes from a host once it is lost. The world gives orders as WorldSupervisor and WorldFollower
/// do: a round begins with halt (or, the first one, with replace), and each order but halt follows
/// the answer to the one before.
///
/// Rules, which device_protocol_test.cpp checks after every step of random schedules: at
/// most one host serves; no host has the memory while another that had it may write; an order is
/// answered once or superseded; no host is forgotten before it has ended; when nothing goes wrong
/// any more, the device serves or has failed.
///
/// Pure: no I/O, no threads; time is passed in, and what is to be done leaves through `actions`. In
/// parts: DeviceCourse (the state and the order under way), HostTable (how far each host has come),
/// DeviceStandbys, and Succession (what follows a loss); here is what happens to hosts, and what
/// the world orders.
class DeviceProtocol {
 public:
  struct Options {
    bool standby = true;
    /// There will be a world: no standby is raised before it is active.
    bool in_world = false;
    std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
    std::chrono::nanoseconds drain_timeout = std::chrono::seconds(3);  ///< of quiesce
    int restart_budget = 3;
    std::chrono::nanoseconds restart_window = std::chrono::seconds(60);
    /// When the budget is spent the world is asked to end the run, and gets one host more to do it
    /// with.
    bool asks_to_stop = false;
  };

  DeviceProtocol(Options options, DeviceActions* actions);
  DeviceProtocol(const DeviceProtocol&) = delete;  // its parts refer to one another
  DeviceProtocol& operator=(const DeviceProtocol&) = delete;

  /// Starts the first host.
  void start(TimePoint now);
  /// There is a world now: nothing is replaced without its order.
  void listen() { course_.set_governed(); }

  // What happens to hosts. Those that are not known (any more) are ignored.

  void ready(HostId host, TimePoint now);
  void promoted(HostId host, const Result<void>& outcome, TimePoint now);
  void answered(HostId host, const DeviceOrder& order, Result<std::vector<std::byte>> outcome);
  /// Its own last word. `kind`, `still`: see DeviceFault.
  void fatal(HostId host, const std::string& kind, const Error& error, bool still, TimePoint now);
  /// Its socket has ended, or its process is about to. `words`: the reason that it has left behind;
  /// mostly empty.
  void closed(HostId host, TimePoint now, const std::string& words = {});
  /// The process has ended and can be reaped.
  void exited(HostId host, TimePoint now, const std::string& words = {});
  /// It can be relied on no more: its heartbeat stands still, its shared memory holds nonsense.
  void lost(HostId host, const std::string& kind, const Error& error, TimePoint now,
            bool still = false);
  void communicator_broken(HostId host, const std::string& text, TimePoint now);
  /// An operation of the host that serves is past its deadline.
  void overdue(const Error& late, TimePoint now);
  /// To be called now and then: deadlines, and a standby in place of one that died.
  void tick(TimePoint now);

  // What the world wants, and the end.

  /// False: the order does not fit what the device is at, and is ignored.
  [[nodiscard]] bool order(const DeviceOrder& order, TimePoint now);
  /// The world is formed: time for a new standby, and for the end of hosts that handed over. Where
  /// the device has failed the world goes on without it.
  void world_active(TimePoint now);
  /// A run has begun, or all ranks have a commit more of it: from here on what it costs is counted,
  /// whatever the time. false: it has ended.
  void progress(bool in_run) { succession_.limits().progress(in_run); }
  /// A device that has failed: try once more, with a new budget.
  void revive(TimePoint now);
  void give_up(const Error& error) { course_.give_up(error); }
  void shut_down();

  [[nodiscard]] DeviceState state() const noexcept { return course_.state(); }
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return course_.failure(); }
  /// Operations have deadlines: not during a recovery, whose phases have their own.
  [[nodiscard]] bool watches_operations() const;
  [[nodiscard]] const HostTable& hosts() const noexcept { return hosts_; }

 private:
  using Event = DeviceCourse::Event;

  void lose_successor(HostId host, const Error& error, TimePoint now);
  void lose_active(HostId host, DeviceFault fault, TimePoint now);
  void after_loss(DeviceFault fault, TimePoint now);

  void pass_on(HostId host, const DeviceOrder& order);
  void stop(const DeviceOrder& order, TimePoint now);
  void form(const DeviceOrder& order);
  void promote_standby(const DeviceOrder& order, TimePoint now);

  Options options_;
  DeviceActions* actions_;
  HostTable hosts_;
  DeviceCourse course_;
  DeviceStandbys standbys_;
  Succession succession_;
};

}  // namespace troupe::rank_process
