#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/actor/restart_budget.hpp>
#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "rank/device/device_events.hpp"
#include "rank/device/device_order.hpp"
#include "rank/device/host/device_actions.hpp"
#include "rank/device/host/host_table.hpp"

namespace troupe::rank_process {

/// What a device is at; see device_transitions.def.
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
/// Pure: no I/O, no threads; time is passed in, and what is to be done leaves through `actions`.
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

  /// Starts the first host.
  void start(TimePoint now);
  /// There is a world now: nothing is replaced without its order.
  void listen() { governed_ = true; }

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
  void progress(bool in_run);
  /// A device that has failed: try once more, with a new budget.
  void revive(TimePoint now);
  void give_up(const Error& error);
  void shut_down();

  [[nodiscard]] DeviceState state() const noexcept { return state_; }
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failed_; }
  /// Operations have deadlines: not during a recovery, whose phases have their own.
  [[nodiscard]] bool watches_operations() const;
  [[nodiscard]] const HostTable& hosts() const noexcept { return hosts_; }

 private:
  enum class Event : std::uint8_t;
  /// The faults of a run since its newest commit.
  struct Costs {
    int lost = 0;     ///< device hosts
    int overdue = 0;  ///< operations that outlasted their deadline
  };

  static std::optional<DeviceState> next(DeviceState from, Event event);
  static Event event_of(DeviceDone::Order order);
  /// False: the table has no such transition.
  bool move(Event event);

  Result<HostId> start_host(DeviceActions::Start as, HostState state, TimePoint now);
  void raise_standby(TimePoint now);
  void report_standby();
  void lose_standby(HostId host, const Error& error, TimePoint now);
  void lose_successor(HostId host, const Error& error, TimePoint now);
  void lose_active(HostId host, DeviceFault fault, TimePoint now);
  void after_loss(DeviceFault fault, TimePoint now);
  void drop_all();

  void pass_on(HostId host, const DeviceOrder& order);
  void stop(const DeviceOrder& order, TimePoint now);
  void form(const DeviceOrder& order);
  void prepare(const DeviceOrder& order);
  void promote_standby(const DeviceOrder& order, TimePoint now);
  /// The open order is answered, and the device moves on.
  void answer(Event event, Result<std::vector<std::byte>> outcome = std::vector<std::byte>{});
  void report_done(const DeviceOrder& order, Result<std::vector<std::byte>> outcome);
  void answer_if_serving();

  void advance(TimePoint now);
  bool choose_successor(TimePoint now);
  bool spend_restart(TimePoint now);
  /// Within the budget of the window, and of the run's progress.
  [[nodiscard]] bool spend(RestartBudget& budget, int Costs::*cost, TimePoint now);
  [[nodiscard]] bool stands_still(int Costs::*cost) const;
  bool ask_to_stop();
  void bury();
  void end_retired();

  Options options_;
  DeviceActions* actions_;
  DeviceState state_ = DeviceState::starting;
  /// Unless idle. To start with: to come up, which nobody has ordered.
  DeviceOrder open_{.what = DeviceDone::Order::replace};
  TimePoint open_since_{};
  HostTable hosts_;
  std::optional<Error> failed_;  ///< failed, reviving, ended
  bool governed_ = false;        ///< by a world
  bool world_active_ = false;    ///< as far as this rank has heard
  RestartBudget budget_;
  RestartBudget overdue_;              ///< operations that may outlast their deadline
  std::optional<Costs> since_commit_;  ///< nullopt: no run is under way, and only time counts
  bool asked_to_stop_ = false;  ///< the budget was spent, and what was left for the end is too
  std::optional<TimePoint> standby_not_before_;  ///< one has died, or did not start
};

}  // namespace troupe::rank_process
