#include "common/core/log.hpp"
#include "rank/device/device_actor.hpp"

// The DeviceActor's clock: hosts that do not start, beat or drain, operations that do not end.

namespace troupe::rank_process {

using namespace device_message;

void DeviceActor::on(Look) {
  context().schedule(kLookEvery, Look{});
  if (!active_ || failed_) return;
  look_at_deadlines();
  const bool settled =
      active_->serving && !fault_ && !replacing_ && !promoting_ && !stopping_ && !connected_;
  if (settled && standby_not_before_ != TimePoint{})
    raise_standby();  // one that died is followed by another
}

void DeviceActor::record_disturbance(const std::string& what) {
  if (settings_.flight != nullptr && !std::exchange(disturbed_, true)) settings_.flight->dump(what);
}

void DeviceActor::look_at_deadlines() {
  const auto now = context().now();
  const auto too_slow = [&](const Incarnation& host) {
    return !host.ready && host.link->spawned() && now - host.spawned_at > settings_.start_timeout;
  };
  const Error slow{Errc::timeout, 0, "the device host did not start within its time"};
  const auto stuck = [&] {
    return stopping_ && now - stopping_since_ > settings_.heartbeat_timeout;
  };
  if (successor_ && (too_slow(*successor_) || stuck())) return lose_successor(slow);
  if (fault_) return;
  if (too_slow(*active_)) return first_ready_ ? fault("start", slow) : give_up(slow);
  if (!active_->ready) return;
  const TimePoint beat(active_->link->header().heartbeat_ns.load(std::memory_order_acquire));
  if (now - beat > settings_.heartbeat_timeout) {
    return fault(fault_kind("hang"), {Errc::timeout, 0, "its heartbeat stands still"});
  }
  if (stuck()) return fault("hang", {Errc::timeout, 0, "its lanes do not drain"});
  if (port_->corrupt())
    return fault("corrupt", {Errc::internal, 0, "its shared memory holds nonsense"});
  if (settings_.op_timeout.count() != 0) look_at_operations();
}

void DeviceActor::look_at_operations() {
  // A recovery's phases have deadlines of their own.
  if (!active_->serving || (listener_ && !world_active_)) return;
  const auto now = context().now();
  const auto oldest = port_->retired();
  if (oldest != watched_ticket_ || oldest == port_->submitted()) {
    watched_ticket_ = oldest;
    watched_since_ = now;
  } else if (now - watched_since_ > settings_.op_timeout) {
    watched_since_ = now;
    const auto what =
        settings_.flight != nullptr ? settings_.flight->describe(oldest + 1) : std::string();
    const Error late{Errc::timeout, 0,
                     (what.empty() ? "an operation" : what) + " is past its deadline (op-timeout)"};
    log::warn("device", "{}", late.message);
    if (!listener_) return fault("timeout", late);
    if (!overdue_.spend(now) && !ask_to_stop())
      return give_up({Errc::budget_exhausted, 0, "too many operations past their deadline"});
    // Mostly it is a collective that not all ranks have joined. The world aborts the communicator
    // and lets the lanes drain; the device host is given up only if they do not.
    record_disturbance("fault: " + late.message);
    report(DeviceFault{"timeout", late, now, now});
  }
}

}  // namespace troupe::rank_process
