#include <signal.h>
#include <unistd.h>

#include "device_host/device_host.hpp"
#include "device_host/engine/world_bounds.hpp"

// Commands: from the ring to the engine's lanes.

namespace troupe::host {
namespace {

/// Commands on a queue that wait for other ranks: beyond that the next one is set aside. A stream
/// of CUDA's takes some 1,000 launches; then a launch blocks, and with it the reactor.
constexpr Lanes::Sequence kMaxForPeers = 512;

/// For the other ranks of a host before a collective is set aside: some 10 us. Ranks in step need
/// no more than one of them needs to launch a collective.
constexpr int kLooksForOthers = 250;

template <class Op>
Lane lane_of(const Op& op) {
  if constexpr (requires { op.lane(); }) {
    return op.lane();
  } else {
    return Op::kLane;
  }
}

/// The operations that ranks run together.
template <class Op>
constexpr bool is_collective = [] {
  if constexpr (requires { Op::kLane; }) return Op::kLane == Lane::collective;
  return false;
}();

bool process_fault(memory::FaultKind kind) {
  using enum memory::FaultKind;
  return kind == kill || kind == segv || kind == hang || kind == exit || kind == device_failure;
}

}  // namespace

bool DeviceHost::issue() {
  if (mode_ != Mode::active) return false;
  bool any = std::exchange(set_aside_due_, false) && issue_set_aside();
  while (mode_ == Mode::active && batches_.open_count() < Batches::kMaxCommands) {
    const auto record = commands_.front();
    if (!record.ok()) {
      lose(record.error());
      end(wire::kExitCorrupt);
      return true;
    }
    if (record->empty()) break;
    if (!any) flight_.stamp();
    const auto step = issue_one(*record, Source::ring);
    blocked_ = step == Step::blocked && batches_.open_count() == 0;
    if (step != Step::queued) break;
    any = true;
  }
  if (auto closed = batches_.close_all(); !closed) lose(closed.error());
  return any;
}

bool DeviceHost::issue_set_aside() {
  return set_aside_.offer([this](std::span<const std::byte> record) {
    return mode_ == Mode::active && issue_one(record, Source::set_aside) == Step::queued;
  });
}

DeviceHost::Step DeviceHost::issue_one(std::span<const std::byte> record, Source source) {
  if (auto decoded = command_.decode(record); !decoded) return corrupt(decoded.error());
  const auto ticket = command_.header().ticket;
  const auto flags = command_.header().flags;
  if ((flags & wire::kCancelled) != 0) return answered(ticket, source, {});
  const bool alone = (flags & wire::kAlone) != 0;
  const bool first = source == Source::set_aside || set_aside_.empty();
  if ((alone || alone_) && !(batches_.empty() && first)) return Step::blocked;
  alone_ = alone;
  Step step = Step::blocked;
  command_.visit([&](const auto& op) { step = issue_as(op, record, source); });
  return step;
}

template <class Op>
DeviceHost::Step DeviceHost::issue_as(const Op& op, std::span<const std::byte> record,
                                      Source source) {
  const auto ticket = command_.header().ticket;
  const auto each_operand = [&](auto&& visit) {
    troupe::for_each_operand(op, command_.tail(), visit);
  };
  bool mapped = true, foreign = false;
  each_operand([&](std::string_view, const Operand& operand, Access) {
    const bool found = operand.bytes == 0 || addresses_.find(operand) != nullptr;
    mapped &= found;
    foreign |= !found && is_foreign(operand.region);
  });
  if (!mapped && serve_control()) return Step::blocked;  // its mapping is on the way
  if (foreign) {  // its owner gave it up, or this host could not map it
    note_taken(ticket);
    return answered(ticket, source,
                    Error{Errc::peer_lost, 0, "the other rank's memory is not mapped"});
  }
  if (!mapped) {
    note_issued(ticket);  // lest the next host dies of it too
    return corrupt({Errc::internal, 0, std::string(Op::kName) + ": an operand is out of bounds"});
  }

  if constexpr (std::is_same_v<Op, memory::Nop>) {
    note_issued(ticket);
    return answered(ticket, source, {});
  } else {
    const auto lane = lane_of(op);
    if constexpr (std::is_same_v<Op, memory::Fault>) {
      if (process_fault(op.kind)) {
        note_issued(ticket);
        suffer(op.kind);
        return Step::ended;
      }
    }
    const auto waits = lanes_.waits_of(each_operand);
    const auto queue = lanes_.queue_of(lane, waits);
    if (!lane_ready(lane)) {
      auto& error = lane_errors_[static_cast<std::size_t>(lane)];
      return error ? answered(ticket, source, *std::exchange(error, std::nullopt)) : Step::blocked;
    }
    const bool collective = lane == Lane::collective;
    const bool behind_others =
        source == Source::ring && set_aside_.before(each_operand, collective) != 0;
    // cuRAND is told where its numbers begin once its stream is empty, and blocks until then: with
    // a collective before it the reactor's heart would stop.
    const bool full = lanes_.issued(queue) - lanes_.completed(queue) >= kMaxForPeers;
    bool blocks =
        behind_others || ((full || lane == Lane::rng) && lanes_.waits_for_peers(queue, waits));
    if constexpr (is_collective<Op>) {
      if (const auto fits = fits_world(op); !fits.ok() && !blocks) {
        if (rendezvous_->refuse(op)) return answered(ticket, source, fits.error());
        blocks = true;
      } else if (!blocks && rendezvous_) {
        const int looks = options_.spin_us != 0 ? kLooksForOthers : 1;
        const auto met = rendezvous_->arrive(ticket, op, command_.tail(), looks);
        if (!met.ok()) return answered(ticket, source, met.error());
        blocks = !*met;
      }
    }
    const Call call(queue, addresses_, command_.tail());
    std::vector<Link> links;
    if constexpr (requires { engine_->new_links(op, call); }) {
      if (!blocks && !opening_links_) links = engine_->new_links(op, call);
    }
    blocks |= (collective && opening_links_) || !links.empty();
    if (blocks && source == Source::set_aside) {
      if (!links.empty()) open_links(std::move(links));
      return Step::blocked;
    }
    if (blocks) {
      if (set_aside_.full()) return Step::blocked;
      set_aside_.add(record, each_operand, collective);
      set_aside_due_ = true;
      note_taken(ticket);
      commands_.pop();
      return Step::queued;
    }
    note_issued(ticket);
    if constexpr (std::is_same_v<Op, memory::Fault>) suffer(op.kind);
    each_operand([&](std::string_view, const Operand& operand, Access access) {
      if (access != Access::read) engine_->overwrites(operand);
    });
    auto outcome = batches_.order(queue, waits);
    if (outcome.ok()) outcome = engine_->run(op, call);
    if (outcome.ok()) {
      lanes_.queued(each_operand, queue, waits);
      batches_.add(ticket, queue, waits);
      take(source);
      return Step::queued;
    }
    if (outcome.code() == Errc::peer_lost) {
      // Part of it may run until the communicator is aborted: it is in flight, and unanswered.
      lanes_.queued(each_operand, queue, waits);
      batches_.add(ticket, queue, waits);
      take(source);
      break_communicator(outcome.error());
      return Step::ended;
    }
    if (outcome.code() == Errc::would_block) return Step::blocked;
    if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed) {
      lose(outcome.error());
      return Step::ended;
    }
    return answered(ticket, source, outcome);
  }
}

template <class Op>
Result<void> DeviceHost::fits_world(const Op& op) const {
  if constexpr (!std::is_same_v<Op, collective::Exchange>) {
    if (rendezvous_ && rendezvous_->size() != 0)
      return check_world(op, rendezvous_->rank(), rendezvous_->size());
  }
  return {};
}

DeviceHost::Step DeviceHost::answered(std::uint64_t ticket, Source source,
                                      const Result<void>& outcome) {
  if (outcome.ok()) {
    batches_.add(ticket);
  } else {
    replies_.send(ticket, 1, outcome);
  }
  take(source);
  return Step::queued;
}

DeviceHost::Step DeviceHost::corrupt(const Error& error) {
  lose(error);
  end(wire::kExitCorrupt);
  return Step::ended;
}

bool DeviceHost::lane_ready(Lane lane) {
  if (lanes_.state(lane) == Lanes::State::ready) return true;
  if (lanes_.state(lane) == Lanes::State::absent && !lane_errors_[static_cast<std::size_t>(lane)])
    open_lane(lane);
  return false;
}

void DeviceHost::open_lane(Lane lane) {
  const bool started = helpers_.start([this, lane]() -> Helpers::Finish {
    auto opened = engine_->open_queue(lane);
    // Its detour at once: what a library does when it is opened may wait for all that runs, and by
    // the time that the detour is needed that is a collective.
    const auto beside = opened.ok() && lane != Lane::collective ? engine_->open_queue({lane, true})
                                                                : Result<void>();
    return [this, lane, opened = std::move(opened), beside] {
      if (opened.code() == Errc::device_lost || opened.code() == Errc::device_failed) {
        lose(opened.error());
      } else if (!opened.ok()) {
        lane_errors_[static_cast<std::size_t>(lane)] = opened.error();
      }
      if (lane == Lane::collective) return collective_lane_opened(opened.ok());
      lanes_.set_state(lane, opened.ok() ? Lanes::State::ready : Lanes::State::absent);
      if (!beside.ok()) lanes_.give_up_detour(lane);
    };
  });
  if (started) lanes_.set_state(lane, Lanes::State::opening);
}

void DeviceHost::open_links(std::vector<Link> links) {
  opening_links_ = helpers_.start([this, links = std::move(links)]() -> Helpers::Finish {
    auto opened = engine_->open_links(links);
    return [this, opened = std::move(opened)] {
      opening_links_ = false;
      if (opened.ok() || opened.code() == Errc::world_reformed) return;
      if (opened.code() == Errc::device_lost || opened.code() == Errc::device_failed) {
        lose(opened.error());
      } else if (mode_ == Mode::active) {
        break_communicator(opened.error());
      }
    };
  });
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
    case memory::FaultKind::device_failure:
      return lose({Errc::device_failed, 0, "the device has failed, as was ordered"});
    default: break;  // a sticky one: the engine's
  }
}

}  // namespace troupe::host
