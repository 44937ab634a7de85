#include "common/core/log.hpp"
#include "rank/device/device_actor.hpp"

// What the world orders: halt, quiesce, replacement, and the end.

namespace troupe::rank_process {

using namespace device_message;
using wire::Control;
using wire::ControlKind;

void DeviceActor::on(Halt order) {
  world_active_ = false;
  replacing_.reset();
  promoting_.reset();
  connected_.reset();
  if (failed_) return report(DeviceFailed{*failed_});
  record_disturbance("the world is re-formed");
  stop(DeviceDone::Order::halt, order.round);
}

void DeviceActor::on(Quiesce order) {
  if (failed_) return report(DeviceFailed{*failed_});
  stop(DeviceDone::Order::quiesce, order.round);
}

void DeviceActor::stop(DeviceDone::Order order, std::uint32_t round) {
  const auto* const host = next_in_line();
  if (host == nullptr || !host->ready) return report_done(order, round);
  stopping_ = {order, round};
  stopping_since_ = context().now();
  const bool drains = order == DeviceDone::Order::quiesce;
  request(*host, {.kind = drains ? ControlKind::quiesce : ControlKind::halt}, -1,
          [this, order, round, drains](Result<wire::ControlMessage> answer) {
            if (!stopping_ || stopping_->order != order || stopping_->round != round)
              return;  // a fault has answered for it
            if (drains && answer.ok() && active_->serving) {
              const auto settled = port_->settle_in_place(
                  {Errc::world_reformed, 0, "the world is re-formed: call World::wait_active()"});
              report(DeviceLoss{"", static_cast<std::uint32_t>(settled.lost_buffers.size())});
            }
            report_stopped();
          });
}

void DeviceActor::report_stopped() {
  if (!stopping_) return;
  const auto stopped = *std::exchange(stopping_, std::nullopt);
  report_done(stopped.order, stopped.round);
}

void DeviceActor::on(Replace order) {
  if (failed_) return report(DeviceFailed{*failed_});
  replacing_ = order.round;
  if (active_->serving)
    (void)wire::send_control(active_->link->socket(), {.kind = ControlKind::resume});
  advance_replacement();
}

void DeviceActor::advance_replacement() {
  if (failed_) return;
  if (fault_) {
    if (!successor_ && (!replacing_ || !choose_successor())) return;
    if (!active_->exited) {
      active_->link->kill();  // HostExited brings us back
    } else {
      bury();
    }
  }
  auto& next = successor_ ? *successor_ : *active_;
  if (!next.ready) return;
  if (replacing_) report_done(DeviceDone::Order::replace, *std::exchange(replacing_, std::nullopt));
  if (!fault_ && !active_->serving && !active_->promoting) promote();
}

/// False, and the device is given up, if too many of its hosts were lost.
bool DeviceActor::spend_restart() {
  if (budget_.spend(context().now()) || ask_to_stop()) return true;
  give_up({Errc::budget_exhausted, fault_->error.native,
           "more than " + std::to_string(budget_.max_restarts()) + " device hosts lost within " +
               std::to_string(
                   std::chrono::duration_cast<std::chrono::seconds>(budget_.window()).count()) +
               " s; the last: " + fault_->error.message});
  return false;
}

/// Once, where that is the policy.
bool DeviceActor::ask_to_stop() {
  if (!settings_.asks_to_stop || !listener_ || std::exchange(asked_to_stop_, true)) return false;
  log::warn("device", "the restart budget is spent: the run ends with the next commit");
  report(DeviceExhausted{});
  return true;
}

bool DeviceActor::choose_successor() {
  if (!spend_restart()) return false;
  if (standby_) {
    successor_ = std::move(*standby_);
    standby_.reset();
    return true;
  }
  auto made = make_incarnation(false);
  const auto spawned = made.ok() ? spawn(*made, false) : Result<void>(made.error());
  if (!spawned.ok()) {
    give_up(spawned.error());
    return false;
  }
  successor_ = std::move(*made);
  return true;
}

void DeviceActor::bury() {
  const auto old = active_->link;
  const auto ending = old->reap();
  watcher_->remove(old->id());
  const auto kind = fault_->kind.empty() ? fault_kind(ending) : fault_->kind;
  const auto settled = port_->move_to(successor_->link, down(fault_->error));
  report(DeviceLoss{kind, static_cast<std::uint32_t>(settled.lost_buffers.size())});
  log::info(
      "device",
      "device host {} ({}): {} commands failed, {} buffers lost, {} commands go on ({} again)",
      old->id(), ending, settled.failed, settled.lost_buffers.size(), settled.resubmitted,
      settled.repeated);
  active_ = std::move(*successor_);
  successor_.reset();
  fault_.reset();
}

void DeviceActor::promote() {
  active_->promoting = true;
  send_memory(*active_);
  request(*active_, {.kind = ControlKind::promote}, -1,
          [this](Result<wire::ControlMessage> answer) {
            if (fault_) return;
            if (!answer.ok()) return fault("promotion", answer.error());
            active_->serving = true;
            serve();
            report_serving();
          });
}

void DeviceActor::send_memory(const Incarnation& incarnation) {
  const auto& socket = incarnation.link->socket();
  for (const auto& [region, slab] : slabs_) {
    (void)wire::send_control(socket,
                             {.kind = ControlKind::map_slab, .region = region, .bytes = slab.bytes},
                             {}, slab.fd.get());
  }
  for (const auto& [region, slab] : foreign_) {
    (void)wire::send_control(
        socket, {.kind = ControlKind::map_foreign, .region = region, .bytes = slab.bytes}, {},
        slab.fd->get());
  }
  for (const auto& [region, memory] : pinned_) {
    (void)wire::send_control(
        socket, {.kind = ControlKind::map_pinned, .region = region, .bytes = memory->size()}, {},
        memory->fd());
  }
}

void DeviceActor::serve() {
  for (const auto& [region, wanted] : wanted_slabs_)
    on(MakeSlab{region, wanted.bytes, wanted.made});
  if (listener_ || settings_.in_world) return;
  disturbed_ = false;
  raise_standby();
}

void DeviceActor::give_up(const Error& error) {
  if (failed_) return;
  failed_ = error;
  log::debug("device", "the device is given up: {}", error.to_string());
  port_->end(error);
  if (described_) described_->resolve(error);
  for (auto& [region, wanted] : wanted_slabs_) wanted.made->resolve(error);
  wanted_slabs_.clear();
  report(DeviceFailed{error});
  std::vector<std::uint64_t> links;
  for (const auto& [number, request] : requests_) links.push_back(request.link);
  for (const auto link : links) fail_requests(link, error);
}

void DeviceActor::on(Suffer suffer) {
  if (!active_) return;
  (void)wire::send_control(active_->link->socket(),
                           {.kind = ControlKind::suffer, .value = suffer.kind});
}

void DeviceActor::on(WorldActive) {
  if (failed_ && !reviving_) {  // the world goes on without this device
    for (auto* host : {&active_, &successor_, &standby_}) {
      if (*host) discard(**host);
      host->reset();
    }
    return;
  }
  disturbed_ = false;
  world_active_ = true;
  for (auto& host : retired_) host.link->kill();  // HostExited takes it out
  raise_standby();
  report_standby();
}

void DeviceActor::on(Revive) {
  if (!failed_ || reviving_ || failed_->code == Errc::stopped) return;
  auto made = make_incarnation(false);
  const auto spawned = made.ok() ? spawn(*made, false) : Result<void>(made.error());
  if (!spawned.ok()) return log::info("device", "no new start: {}", spawned.error().to_string());
  active_ = std::move(*made);
  successor_.reset(), standby_.reset();
  fault_.reset();
  replacing_.reset(), promoting_.reset(), connected_.reset(), stopping_.reset();
  budget_ = RestartBudget(settings_.restart_budget, settings_.restart_window);
  asked_to_stop_ = false;
  reviving_ = true;
}

/// The host of a new start is ready, or has failed like those before.
void DeviceActor::revived(bool ready) {
  reviving_ = false;
  if (!ready) return;
  failed_.reset();
  port_->begin_again(active_->link);
  report(DeviceRevived{});
}

bool DeviceActor::on(ShutDown) {
  for (auto& host : retired_) discard(host);
  retired_.clear();
  failed_ = Error{Errc::stopped, 0, "the device is shut down"};
  std::vector<HostLink*> links;
  for (const auto* incarnation :
       {active_ ? &*active_ : nullptr, successor_ ? &*successor_ : nullptr,
        standby_ ? &*standby_ : nullptr}) {
    if (incarnation != nullptr && incarnation->link->spawned())
      links.push_back(incarnation->link.get());
  }
  for (auto* link : links) {
    fail_requests(link->id(), *failed_);
    watcher_->remove(link->id());
    link->dismiss();
  }
  const auto dismissed = SteadyClock::time();
  for (auto* link : links) link->await_wrapper(dismissed);
  active_.reset();
  successor_.reset();
  standby_.reset();
  port_->end(*failed_);
  return true;
}

}  // namespace troupe::rank_process
