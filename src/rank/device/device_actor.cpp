#include "rank/device/device_actor.hpp"

#include <algorithm>

#include <troupe/actor/patient_tell.hpp>
#include <troupe/lib/memory.hpp>

#include "common/core/log.hpp"

namespace troupe::rank_process {

using namespace device_message;
using wire::Control;
using wire::ControlKind;

namespace {

constexpr auto kStandbyPause =
    std::chrono::seconds(1);  ///< before a new standby follows one that died

/// What to call a loss: the fault that was ordered, else what the ending of the process says.
std::string fault_kind_of(const wire::PortHeader& header, const std::string& ending) {
  if (header.fault_ns.load(std::memory_order_acquire) != 0) {
    const auto kind = header.fault_kind.load(std::memory_order_relaxed);
    if (kind < memory::kFaultKindCount)
      return std::string(to_string(static_cast<memory::FaultKind>(kind)));
  }
  if (ending == "killed by signal 9") return "kill";
  if (ending == "killed by signal 11") return "segv";
  if (ending.starts_with("exited")) return "exit";
  return ending;
}

}  // namespace

DeviceActor::DeviceActor(DeviceSettings settings, CommandPort* port,
                         std::shared_ptr<Promise<std::string>> described)
    : settings_(std::move(settings)),
      port_(port),
      described_(std::move(described)),
      tunings_(settings_.tuning_file),
      budget_(settings_.restart_budget, settings_.restart_window),
      overdue_(settings_.restart_budget, settings_.restart_window) {}

void DeviceActor::on_start() {
  const auto kept = tunings_.load();
  for (auto one = kept.rbegin(); one != kept.rend(); ++one) warm_.add_plan(one->library, one->plan);
  const auto self = context().self();
  // A full mailbox is only a matter of time: the watcher may wait for it.
  const auto tell = [self](const auto& message) { (void)tell_patiently(self, message); };
  auto watcher = Watcher::start(
      *port_,
      {.message =
           [tell](std::uint64_t link, wire::ControlMessage message) {
             tell(FromHost{link, std::make_shared<wire::ControlMessage>(std::move(message))});
           },
       .closed = [tell](std::uint64_t link) { tell(HostClosed{link}); },
       .exited = [tell](std::uint64_t link) { tell(HostExited{link}); }});
  if (!watcher) return give_up(watcher.error());
  watcher_ = std::move(*watcher);
  auto first = make_incarnation(false);
  if (!first) return give_up(first.error());
  active_ = std::move(*first);
  port_->attach(active_->link);
  if (auto spawned = spawn(*active_, false); !spawned) return give_up(spawned.error());
  context().schedule(kLookEvery, Look{});
}

void DeviceActor::on_stop(const Error&) noexcept {
  watcher_.reset();
  requests_.clear();
  retired_.clear();
  active_.reset();
  successor_.reset();
  standby_.reset();
}

// Incarnations

Result<DeviceActor::Incarnation> DeviceActor::make_incarnation(bool spawn_as_standby) {
  auto link = HostLink::create(settings_.launch, next_link_++);
  if (!link) return link.error();
  Incarnation incarnation{.link = std::move(*link)};
  if (spawn_as_standby) {
    if (auto spawned = spawn(incarnation, true); !spawned) return spawned.error();
  }
  return incarnation;
}

Result<void> DeviceActor::spawn(Incarnation& incarnation, bool standby) {
  if (auto spawned = incarnation.link->spawn(standby); !spawned) return spawned;
  incarnation.spawned_at = context().now();
  watcher_->add(incarnation.link);
  log::debug("device", "device host {} started as {} (pid {})", incarnation.link->id(),
             standby ? "standby" : "active", incarnation.link->pid());
  return {};
}

void DeviceActor::raise_standby() {
  if (!settings_.standby || standby_ || failed_ || context().now() < standby_not_before_) return;
  measure_standby(false, [] {});
  auto made = make_incarnation(true);
  if (!made) {
    log::warn("device", "no standby: {}", made.error().to_string());
    standby_not_before_ = context().now() + kStandbyPause;
    return;
  }
  standby_ = std::move(*made);
}

/// Whatever still waits for this host to answer is told that it will not.
void DeviceActor::discard(Incarnation& incarnation) {
  fail_requests(incarnation.link->id(), {Errc::device_lost, 0, "the device host is given up"});
  watcher_->remove(incarnation.link->id());
  incarnation.link->kill();
  incarnation.link->reap();
}

DeviceActor::Incarnation* DeviceActor::find(std::uint64_t link) {
  for (auto* incarnation : {&active_, &successor_, &standby_}) {
    if (*incarnation && (*incarnation)->link->id() == link) return &**incarnation;
  }
  return nullptr;
}

DeviceActor::Incarnation* DeviceActor::next_in_line() {
  if (successor_) return &*successor_;
  return active_ && !fault_ ? &*active_ : nullptr;
}

void DeviceActor::lose_standby(const Error& error) {
  log::warn("device", "the standby died: {}", error.to_string());
  forget_warm_set(*standby_);
  discard(*standby_);
  standby_.reset();
  standby_not_before_ = context().now() + kStandbyPause;
  if (world_active_) report(DeviceStandby{false});
}

// What hosts say

void DeviceActor::on(FromHost from) {
  const auto& head = from.message->head;
  auto* const incarnation = find(from.link);
  if (incarnation == nullptr) return;
  const bool is_standby = standby_ && incarnation == &*standby_;
  const bool is_successor = successor_ && incarnation == &*successor_;
  switch (head.kind) {
    case ControlKind::ready:
      incarnation->ready = true;
      incarnation->link->watch_life([self = context().self(), link = from.link] {
        (void)self.tell(HostClosed{link});  // the socket's end says it again
      });
      warm_up(*incarnation, warm_);
      if (is_standby) report_standby();
      if (reviving_) return revived(true);
      if (!first_ready_) {
        first_ready_ = true;
        described_->resolve(std::move(from.message->text));
        if (!replacing_) replacing_ = 0;  // the first one needs nobody's order to serve
      }
      return advance_replacement();
    case ControlKind::library_opened: return library_opened(from.message->text);
    case ControlKind::kind_recurs: return kind_recurs(*from.message);
    case ControlKind::plans_made: return plans_made(*from.message);
    case ControlKind::fatal:
      if (reviving_) return revived(false);
      if (is_standby) return lose_standby(from.message->error());
      if (!first_ready_ || from.message->error().code == Errc::device_failed)
        return give_up(from.message->error());
      if (is_successor) return lose_successor(from.message->error());
      return fault(fault_kind(std::string(to_string(from.message->error().code))),
                   from.message->error());
    case ControlKind::communicator_broken:
      if (fault_ || is_standby) return;  // a loss that is known already
      record_disturbance("fault: the communicator is broken");
      return report(DeviceFault{"communicator", Error{Errc::peer_lost, 0, from.message->text},
                                context().now(), context().now()});
    default: break;
  }
  const auto it = requests_.find(head.request);
  if (it == requests_.end() || it->second.link != from.link) return;
  const auto answer = std::move(it->second.answer);
  requests_.erase(it);
  if (head.kind == ControlKind::failed) {
    answer(from.message->error());
  } else if (const auto whole = from.message->check_descriptor(); !whole.ok()) {
    answer(whole.error());
  } else {
    answer(std::move(*from.message));
  }
}

void DeviceActor::on(HostClosed closed) {
  const Error gone{Errc::device_lost, 0, "its process ended"};
  const auto* const incarnation = find(closed.link);
  if (incarnation == nullptr) return;
  if (standby_ && incarnation == &*standby_) return lose_standby(gone);
  if (successor_ && incarnation == &*successor_) return lose_successor(gone);
  if (reviving_) return revived(false);
  if (fault_) return;
  if (settings_.launch.in_process) {
    std::fprintf(
        stderr, "troupe: the device host thread ended; with isolation = thread so must the rank\n");
    std::_Exit(1);
  }
  if (!first_ready_)
    return give_up({Errc::device_failed, 0, "the device host ended while it started"});
  fault("", gone);
}

void DeviceActor::on(HostExited exited) {
  std::erase_if(retired_, [&](Incarnation& host) {
    if (host.link->id() != exited.link) return false;
    discard(host);
    return true;
  });
  if (active_ && active_->link->id() == exited.link) active_->exited = true;
  on(HostClosed{exited.link});
  advance_replacement();
}

void DeviceActor::fault(std::string kind, Error error) {
  const auto now = context().now();
  const auto& header = active_->link->header();
  const TimePoint ordered(header.fault_ns.load(std::memory_order_acquire));
  const TimePoint beat(header.heartbeat_ns.load(std::memory_order_acquire));
  const auto struck = ordered.count() != 0 ? ordered : beat.count() != 0 ? beat : now;
  fault(DeviceFault{std::move(kind), std::move(error), struck, now});
}

void DeviceActor::fault(DeviceFault what) {
  if (fault_ || failed_) return;
  if (settings_.launch.in_process) {
    std::fprintf(stderr, "troupe: %s; with isolation = thread this ends the rank\n",
                 what.error.to_string().c_str());
    std::_Exit(1);
  }
  log::info("device", "device host {} is lost: {}", active_->link->id(), what.error.to_string());
  fault_ = what;
  record_disturbance("fault: " + what.error.message);
  active_->serving = false;
  fail_requests(active_->link->id(), down(what.error));
  report_stopped();
  if (!listener_) replacing_ = 0;
  if (replacing_)
    return advance_replacement();  // nobody else's business, or the new host died on its way
  report(std::move(what));
}

void DeviceActor::lose_successor(const Error& error) {
  log::info("device", "device host {}, a successor, is lost: {}", successor_->link->id(),
            error.to_string());
  forget_warm_set(*successor_);
  const auto link = successor_->link->id();
  const DeviceFault what{fault_kind_of(successor_->link->header(), "successor"), error,
                         context().now(), context().now()};
  discard(*successor_);
  successor_.reset();
  fail_requests(link, down(error));
  report_stopped();
  if (!listener_) replacing_ = 0;
  if (replacing_) return advance_replacement();
  report(what);
}

Error DeviceActor::down(const Error& cause) {
  return {Errc::device_lost, cause.native, "the device host died: " + cause.message};
}

void DeviceActor::fail_requests(std::uint64_t link, const Error& error) {
  std::vector<Answer> answers;
  std::erase_if(requests_, [&](auto& entry) {
    if (entry.second.link != link) return false;
    answers.push_back(std::move(entry.second.answer));
    return true;
  });
  for (auto& answer : answers) answer(error);
}

std::string DeviceActor::fault_kind(const std::string& ending) const {
  return fault_kind_of(active_->link->header(), ending);
}

// Bookkeeping

void DeviceActor::request(const Incarnation& to, Control head, int fd, Answer answer) {
  head.request = next_request_++;
  requests_.emplace(head.request, Request{to.link->id(), std::move(answer)});
  (void)wire::send_control(to.link->socket(), head, {}, fd);  // a dead socket is seen as HostClosed
}

void DeviceActor::report(DeviceEvent event) {
  if (listener_) listener_(std::move(event));
}

void DeviceActor::report_done(DeviceDone::Order order, std::uint32_t round,
                              Result<std::vector<std::byte>> outcome) {
  report(DeviceDone{.order = order, .round = round, .outcome = std::move(outcome)});
}

}  // namespace troupe::rank_process
