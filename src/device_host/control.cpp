#include "common/wire/control.hpp"

#include "device_host/device_host.hpp"

// Control messages: memory, promotion, quiescence.

namespace troupe::host {
using wire::Control;
using wire::ControlKind;

bool DeviceHost::serve_control() {
  bool any = false;
  while (!exit_status_) {
    auto message = wire::receive_control(socket_);
    if (!message.ok()) {
      end(wire::kExitOk);  // the rank is gone
      return true;
    }
    if (!*message) break;
    handle(std::move(**message));
    any = true;
  }
  return any;
}

void DeviceHost::handle(wire::ControlMessage message) {
  const auto& head = message.head;
  if (const auto whole = message.check_descriptor(); !whole.ok()) {
    switch (head.kind) {
      case ControlKind::connect:
      case ControlKind::connect_group:
      case ControlKind::prepare: return answer(head, whole);
      case ControlKind::adopt_plans: return;
      default: return mapped(head, whole.error());
    }
  }
  switch (head.kind) {
    case ControlKind::make_slab: return make_slab(head);
    case ControlKind::map_slab:
    case ControlKind::map_pinned:
    case ControlKind::map_foreign: return map(std::move(message));
    case ControlKind::drop_region: return drop(head.region);
    case ControlKind::promote: return promote(head);
    case ControlKind::contribute: return contribute(message);
    case ControlKind::connect: return connect(std::move(message));
    case ControlKind::contribute_group: return contribute_group(head);
    case ControlKind::connect_group: return connect_group(message);
    case ControlKind::drop_group: return drop_group(head);
    case ControlKind::quiesce: return quiesce(head);
    case ControlKind::resume:
      replies_.resume(head.value);
      if (mode_ == Mode::paused) mode_ = Mode::active;
      return;
    case ControlKind::suffer: {
      const auto kind = static_cast<memory::FaultKind>(head.value);
      suffer(kind);
      if (mode_ == Mode::lost) return;
      if (actors_[Lane::memory].state == LaneActor::State::ready)
        (void)engine_->suffer(kind, Lane::memory);
      if (auto mark = engine_->mark(Lane::memory); mark.ok()) {
        behind_fault_.emplace(*engine_, *mark);
      } else {
        lose(mark.error());
      }
      return;
    }
    case ControlKind::open_library:
      if (const auto lane = known_library_lane(message.text)) (void)lane_ready(*lane);
      return;
    case ControlKind::adopt_plans: return adopt_plans(std::move(message));
    case ControlKind::prepare: return prepare(std::move(message));
    case ControlKind::tell_libraries: return answer(head, {});
    case ControlKind::memory_use:
      on_helper(head, [this, request = head]() -> Helpers::Finish {
        std::string text;
        for (const auto& [cause, bytes] : engine_->memory_use())
          text += cause + " " + std::to_string(bytes) + "\n";
        return [this, request, text, free = engine_->free_memory()] {
          send({.kind = ControlKind::done, .request = request.request, .bytes = free}, text);
        };
      });
      return;
    case ControlKind::probe: return begin_probe(head);
    case ControlKind::shut_down: return end(wire::kExitOk);
    default: return;  // ours to send, not to receive
  }
}

void DeviceHost::make_slab(const Control& request) {
  on_helper(request, [this, request]() -> Helpers::Finish {
    auto slab = std::make_shared<Result<Slab>>(engine_->make_slab(request.bytes));
    return [this, request, slab] {
      if (!slab->ok()) return answer(request, slab->error());
      addresses_.set(request.region, (*slab)->base, request.bytes);
      send({.kind = ControlKind::slab_made,
            .region = request.region,
            .request = request.request,
            .bytes = request.bytes},
           {}, (*slab)->fd.get());
    };
  });
}

void DeviceHost::map(wire::ControlMessage message) {
  const auto head = message.head;
  const auto fd = std::make_shared<UniqueFd>(std::move(message.fd));
  const auto map_now = [this, head, fd] {
    switch (head.kind) {
      case ControlKind::map_slab: return engine_->map_slab(fd->get(), head.bytes);
      case ControlKind::map_foreign: return engine_->map_foreign(fd->get(), head.bytes);
      default: return engine_->map_pinned(fd->get(), head.bytes);
    }
  };
  // Promotion waits for it anyway, and nothing else runs on a standby.
  if (mode_ == Mode::standby) return mapped(head, map_now());
  on_helper(head, [this, head, map_now]() -> Helpers::Finish {
    return [this, head, address = map_now()] { mapped(head, address); };
  });
}

void DeviceHost::mapped(const Control& request, const Result<std::byte*>& address) {
  if (address.ok()) {
    addresses_.set(request.region, *address, request.bytes);
  } else if (mode_ == Mode::standby && !promote_failure_ &&
             request.kind != ControlKind::map_foreign) {
    promote_failure_ = address.error();
  }
  answer(request, address.ok() ? Result<void>() : Result<void>(address.error()));
}

void DeviceHost::drop(std::uint32_t region) {
  lanes_.forget_region(region);
  addresses_.for_each([&](std::uint32_t id, std::byte* base, std::uint64_t bytes) {
    if (id != region) return;
    if ((region & kPinnedRegion) != 0) {
      dropped_pinned_.emplace_back(base, bytes);
    } else if ((region & kForeignRegion) != 0) {
      engine_->unmap_foreign(base, bytes);
    } else {
      engine_->unmap_slab(base, bytes);
    }
  });
  addresses_.erase(region);
  unmap_dropped();
}

void DeviceHost::unmap_dropped() {
  const bool may_block = lanes_.issued(Lane::collective) != lanes_.completed(Lane::collective) ||
                         opening_links_ || forming_groups_ != 0 || channels_.busy();
  if (may_block) return;
  for (const auto& [base, bytes] : dropped_pinned_) engine_->unmap_pinned(base, bytes);
  dropped_pinned_.clear();
}

void DeviceHost::promote(const Control& request) {
  if (promote_failure_) return answer(request, *promote_failure_);
  drop_preparations(Preparation::For::rank);  // there are commands to run
  mode_ = Mode::active;
  replies_.resume(request.value);
  last_progress_ = SteadyClock::time();
  answer(request, {});
}

bool DeviceHost::active() {
  if (mode_ == Mode::active && replies_.halted()) mode_ = Mode::paused;
  return mode_ == Mode::active;
}

void DeviceHost::begin_probe(const Control& request) {
  if (const auto begun = engine_->begin_probe(); !begun.ok()) return answer(request, begun);
  probe_ = request;
}

bool DeviceHost::look_at_probe() {
  const auto ended = engine_->probe_ended();
  if (ended.ok() && !*ended) return false;
  answer(*std::exchange(probe_, std::nullopt), ended.ok() ? Result<void>() : ended.error());
  return true;
}

void DeviceHost::quiesce(const Control& request) {
  surrender_.catch_up();
  if (mode_ == Mode::active) mode_ = Mode::paused;
  if (mode_ == Mode::lost) return answer(request, {});  // it can do no more harm
  abandon_communicators();
  quiescing_ = request;
}

void DeviceHost::finish_quiesce() {
  lanes_.complete_all();
  plays_.clear();
  set_aside_.clear();
  held_answers_.clear();
  drop_preparations(Preparation::For::command);  // the rank submits them anew
  answer(*std::exchange(quiescing_, std::nullopt), {});
}

void DeviceHost::answer(const Control& request, const Result<void>& outcome) {
  if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
    lose(outcome.error());
  if (outcome.ok())
    return send({.kind = ControlKind::done, .region = request.region, .request = request.request});
  const auto error = with_memory_use(outcome.error());
  send({.kind = ControlKind::failed,
        .region = request.region,
        .request = request.request,
        .code = static_cast<std::uint32_t>(error.code),
        .native = error.native},
       error.message);
}

Error DeviceHost::with_memory_use(Error error) {
  if (error.code != Errc::out_of_memory) return error;
  std::string text;
  for (const auto& [cause, bytes] : engine_->memory_use()) {
    if (bytes >> 20 != 0)
      text += (text.empty() ? "" : ", ") + cause + " " + std::to_string(bytes >> 20) + " MiB";
  }
  if (!text.empty()) error.message += " (taken by this device host: " + text + ")";
  return error;
}

void DeviceHost::send(Control head, std::string_view text, int fd) {
  if (!wire::send_control(socket_, head, text, fd).ok()) end(wire::kExitOk);  // the rank is gone
}

bool DeviceHost::on_helper(const Control& request, Helpers::Job job) {
  if (helpers_.start(std::move(job))) return true;
  answer(request, Error{Errc::would_block, 0, "the device host has too many requests under way"});
  return false;
}

}  // namespace troupe::host
