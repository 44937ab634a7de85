#include <memory>

#include "common/wire/opened_library.hpp"
#include "device_host/device_host.hpp"
#include "device_host/engine/outside.hpp"

// The actors of libraries: opening, restarting, work on threads of their own.

namespace troupe::host {

struct DeviceHost::Work {
  SetAside::Number number = 0;
  Queue queue;
  Waits waits;
  AddressMap addresses;  ///< as it was: the reactor's changes meanwhile
  std::vector<std::byte> record;
  wire::Command command;
};

void DeviceHost::know_libraries() {
  for (auto& stamp : header().libraries) {
    if (stamp.lane == 0 || stamp.lane >= kLaneCount) continue;
    const auto library = stamp.library();
    if (!known_library_lane(library)) {
      const auto loaded =
          load_outside_library(stamp, engine_->description().engine, options_.library_folders);
      if (!loaded) header().unknown.add(stamp.lane, library, loaded.error().message);
    }
    if (const auto lane = known_library_lane(library))
      lanes_of_rank_[static_cast<std::size_t>(*lane)] = stamp.lane;
  }
}

bool DeviceHost::waits_on_device() const {
  return settings().other_hosts != 0 || settings().channels != 0;
}

bool DeviceHost::opening_goes_first() const {
  if (!waits_on_device()) return false;
  for (std::size_t i = 0; i < lanes_in_use(); ++i) {
    if (actors_[static_cast<Lane>(i)].state == LaneActor::State::opening) return true;
  }
  return false;
}

Result<bool> DeviceHost::lane_ready(Lane lane) {
  auto& actor = actors_[lane];
  switch (actor.state) {
    case LaneActor::State::ready: return !actor.working;
    case LaneActor::State::opening: return false;
    case LaneActor::State::given_up: return *actor.error;
    case LaneActor::State::absent: break;
  }
  if (actor.error) return *std::exchange(actor.error, std::nullopt);
  open_lane(lane);
  return false;
}

void DeviceHost::open_lane(Lane lane) {
  const bool started = helpers_.start([this, lane]() -> Helpers::Finish {
    const auto opened = engine_->open_queue(lane);
    // Its detour at once: what a library does when it is opened may wait for all that runs, and by
    // the time that the detour is needed that is a collective.
    const auto detour = opened.ok() && lane != Lane::collective ? engine_->open_queue({lane, true})
                                                                : Result<void>();
    auto sides = opened.ok() && engine_->overlaps(lane);
    for (std::uint8_t side = 1; side <= Queue::kSides && sides; ++side)
      sides = engine_->open_queue(Queue::aside(lane, side)).ok();
    return [this, lane, opened, detour, sides] {
      if (sides) lanes_.set_sides(lane);
      lane_opened(lane, opened, detour);
    };
  });
  if (started) actors_[lane].state = LaneActor::State::opening;
}

void DeviceHost::lane_opened(Lane lane, const Result<void>& opened, const Result<void>& detour) {
  auto& actor = actors_[lane];
  if (opened.code() == Errc::device_lost || opened.code() == Errc::device_failed) {
    lose(opened.error());
  } else if (!opened.ok()) {
    actor.error = opened.error();
  }
  set_aside_due_ = true;
  if (lane == Lane::collective) return collective_lane_opened(opened.ok());
  actor.state = opened.ok() ? LaneActor::State::ready : LaneActor::State::absent;
  hold_up(lane, false);
  if (!detour.ok()) lanes_.give_up_detour(lane);
  if (!opened.ok() || lane < Lane::first_library) return;
  // Ahead of the commands that have opened it.
  for (const auto& [library, plan] : measured_) {
    if (library == lane) preparations_.push_back(Preparation::of_plan(lane, plan));
  }
  send({.kind = wire::ControlKind::library_opened},
       wire::encode({std::string(to_string(lane)), engine_->stands_on(lane)}));
}

void DeviceHost::library_failed(Lane lane, const Error& error) {
  if (lane < Lane::first_library) return;
  auto& actor = actors_[lane];
  if (actor.state != LaneActor::State::ready) return;
  if (actor.restarts.spend(SteadyClock::time())) {
    engine_->discard_library(lane);
    actor.state = LaneActor::State::absent;
    return open_lane(lane);
  }
  actor.state = LaneActor::State::given_up;
  actor.error =
      Error{Errc::library, error.native,
            std::string(to_string(lane)) + " has failed more than " +
                std::to_string(LaneActor::kRestarts) + " times in " +
                std::to_string(LaneActor::kWindow.count()) + " s, at last with: " + error.message};
}

Result<void> DeviceHost::begin_work(SetAside::Entry& entry, Queue queue, const Waits& waits) {
  auto work = std::make_shared<Work>();
  work->record = entry.record;
  work->number = entry.number;
  work->queue = queue;
  work->waits = waits;
  work->addresses = addresses_;
  if (auto decoded = work->command.decode(entry.record); !decoded) return decoded;
  auto& actor = actors_[queue.lane];
  const bool fails = actor.fails(work->command.header().ticket);
  set_aside_.begin(entry);
  note_issued(work->command.header());
  note_overwritten(work->command.operands());
  if (auto ordered = batches_.order(queue, waits); !ordered) return ordered;
  const bool started = helpers_.start([this, work, fails]() -> Helpers::Finish {
    const auto& command = work->command;
    const TracedCommand traced(tracing_.get(), command.header().ticket, command.name());
    const auto outcome =
        fails ? Error{Errc::library, 0, std::string(command.name()) + ": fails, as was ordered"}
              : engine_->run(command.info(), command.op(),
                             Call(work->queue, work->addresses, command.parts()));
    return [this, work, outcome, plans = engine_->take_new_plans(work->queue.lane)] {
      tell_plans(work->queue.lane, plans);
      work_ended(*work, outcome);
    };
  });
  if (!started) {
    if (fails) actor.failing_ticket = work->command.header().ticket;
    return Error{Errc::would_block, 0, "the device host has too much under way"};
  }
  entry.held = true;
  actor.working = true;
  ++working_;
  return {};
}

void DeviceHost::work_ended(Work& work, const Result<void>& outcome) {
  work_over(work.queue.lane);
  if (mode_ == Mode::lost) return;
  set_aside_due_ = true;
  if (outcome.code() == Errc::would_block) return set_aside_.release(work.number);
  if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
    return lose(outcome.error());
  if (outcome.ok()) {
    lanes_.queued(work.command.operands(), work.queue, work.waits);
    batches_.add(work.command, addresses_, work.queue, work.waits);
    note_kind(work.command, work.record);
  } else {
    if (outcome.code() == Errc::library) library_failed(work.queue.lane, outcome.error());
    held_answers_.emplace_back(work.command.header().ticket, with_memory_use(outcome.error()));
  }
  set_aside_.erase(work.number);
}

void DeviceHost::hold_up(Lane lane, bool held_up) {
  const auto of_rank = lanes_of_rank_[static_cast<std::size_t>(lane)];
  if (of_rank == 0) return;
  const auto mask = header().held_up.load(std::memory_order_relaxed), bit = 1u << of_rank;
  header().held_up.store(held_up ? mask | bit : mask & ~bit, std::memory_order_relaxed);
}

void DeviceHost::work_over(Lane lane) {
  auto& actor = actors_[lane];
  actor.working = false;
  --working_;
  hold_up(lane, false);
  for (const auto& range : std::exchange(actor.overwritten, {})) engine_->overwrites(lane, range);
}

void DeviceHost::tell_plans(Lane lane, const std::vector<std::vector<std::byte>>& plans) {
  if (plans.empty()) return;
  for (const auto& plan : plans) keep_measured(lane, plan);
  std::vector<std::vector<std::byte>> blobs{name_blob(to_string(lane))};
  blobs.insert(blobs.end(), plans.begin(), plans.end());
  // Where it cannot be sent, a later device host makes the plans again.
  if (const auto packed = wire::pack_blobs(blobs); packed.ok())
    send({.kind = wire::ControlKind::plans_made}, {}, packed->get());
}

void DeviceHost::note_overwritten(std::span<const OperandUse> operands) {
  const auto lanes = lanes_in_use();
  for (auto i = static_cast<std::size_t>(Lane::first_library); i < lanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    auto& actor = actors_[lane];
    if (actor.state != LaneActor::State::ready || !engine_->remembers_contents(lane)) continue;
    for (const auto& use : operands) {
      if (use.access == Access::read) continue;
      if (actor.working) {
        actor.overwritten.push_back(*use.range);
      } else {
        engine_->overwrites(lane, *use.range);
      }
    }
  }
}

}  // namespace troupe::host
