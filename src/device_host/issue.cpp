#include <signal.h>
#include <unistd.h>

#include "device_host/device_host.hpp"

// Commands: from the ring to the engine's lanes.

namespace troupe::host {
namespace {

template <class Op>
Lane lane_of(const Op& op) {
  if constexpr (requires { op.lane(); }) {
    return op.lane();
  } else {
    return Op::kLane;
  }
}

bool process_fault(memory::FaultKind kind) {
  using enum memory::FaultKind;
  return kind == kill || kind == segv || kind == hang || kind == exit;
}

}  // namespace

bool DeviceHost::issue() {
  if (mode_ != Mode::active) return false;
  bool any = false;
  while (mode_ == Mode::active && !batches_.full() && batches_.open_count() < Batches::kMaxCommands) {
    const auto record = commands_.front();
    if (!record.ok()) {
      lose(record.error());
      end(wire::kExitCorrupt);
      return true;
    }
    if (record->empty() || issue_one(*record) != Step::queued) break;
    any = true;
  }
  if (auto closed = batches_.close(); !closed) lose(closed.error());
  return any;
}

DeviceHost::Step DeviceHost::issue_one(std::span<const std::byte> record) {
  const auto corrupt = [this](const Error& error) {
    lose(error);
    end(wire::kExitCorrupt);
    return Step::ended;
  };
  if (auto decoded = command_.decode(record); !decoded) return corrupt(decoded.error());
  const auto ticket = command_.header().ticket;
  if (batches_.breaks(ticket)) return Step::blocked;  // the next round opens a new batch

  if (command_.header().cancelled != 0) {
    batches_.add(ticket);
    commands_.pop();
    return Step::queued;
  }

  bool mapped = true;
  command_.for_each_operand([&](std::string_view, const Operand& operand, Access) {
    mapped &= operand.bytes == 0 || addresses_.find(operand) != nullptr;
  });
  if (!mapped && serve_control()) return Step::blocked;  // its mapping is on the way
  if (!mapped) return corrupt({Errc::internal, 0, std::string(command_.name()) + ": an operand is out of bounds"});

  Lane lane{};
  bool needs_lane = true;
  std::optional<memory::FaultKind> fault;
  command_.visit([&]<class Op>(const Op& op) {
    lane = lane_of(op);
    if constexpr (std::is_same_v<Op, memory::Nop>) needs_lane = false;
    if constexpr (std::is_same_v<Op, memory::Fault>) {
      fault = op.kind;
      needs_lane = !process_fault(op.kind);
    }
  });
  if (needs_lane && !lane_ready(lane)) {
    auto& error = lane_errors_[static_cast<std::size_t>(lane)];
    if (!error) return Step::blocked;
    replies_.send(ticket, 1, *error);
    error.reset();  // the next command makes a new attempt
    batches_.add(ticket);
    commands_.pop();
    return Step::queued;
  }

  header().issued_ticket.store(ticket, std::memory_order_release);
  if (fault) suffer(*fault);
  const auto outcome = needs_lane && !(fault && process_fault(*fault)) ? execute(lane) : Result<void>();
  if (outcome.code() == Errc::would_block) return Step::blocked;
  if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed) {
    lose(outcome.error());
    return Step::ended;
  }
  if (!outcome.ok()) replies_.send(ticket, 1, outcome);
  if (needs_lane && outcome.ok()) {
    batches_.add(ticket, lane);
  } else {
    batches_.add(ticket);
  }
  commands_.pop();
  return Step::queued;
}

Result<void> DeviceHost::execute(Lane lane) {
  if (auto ordered = lanes_.order(command_, lane); !ordered) return ordered;
  Result<void> outcome;
  const Call call(lane, addresses_, command_.tail());
  command_.visit([&](const auto& op) { outcome = engine_->run(op, call); });
  if (outcome.ok()) lanes_.queued(command_, lane);
  return outcome;
}

bool DeviceHost::lane_ready(Lane lane) {
  if (lanes_.state(lane) == Lanes::State::ready) return true;
  if (lanes_.state(lane) == Lanes::State::absent && !lane_errors_[static_cast<std::size_t>(lane)]) open_lane(lane);
  return false;
}

void DeviceHost::open_lane(Lane lane) {
  const bool started = helpers_.start([this, lane]() -> Helpers::Finish {
    auto opened = engine_->open_lane(lane);
    return [this, lane, opened = std::move(opened)] {
      lanes_.set_state(lane, opened.ok() ? Lanes::State::ready : Lanes::State::absent);
      if (opened.ok()) return;
      if (opened.code() == Errc::device_lost || opened.code() == Errc::device_failed) return lose(opened.error());
      lane_errors_[static_cast<std::size_t>(lane)] = opened.error();
    };
  });
  if (started) lanes_.set_state(lane, Lanes::State::opening);
}

void DeviceHost::suffer(memory::FaultKind kind) {
  header().fault_kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
  header().fault_ns.store(SteadyClock::time().count(), std::memory_order_release);
  switch (kind) {
    case memory::FaultKind::kill: ::raise(SIGKILL); break;
    case memory::FaultKind::segv:
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
      break;
    case memory::FaultKind::hang:
      for (;;) ::pause();
    case memory::FaultKind::exit: ::_exit(wire::kExitFaultDrill);
    default: break;  // a sticky one: the engine's
  }
}

}  // namespace troupe::host
