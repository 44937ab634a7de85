#include "device_host/libraries/libraries.hpp"

#include <string>

#include "device_host/engine/outside.hpp"

namespace troupe::host {

Libraries::Libraries(Core& core, Requests& requests, Handlers handlers)
    : core_(&core), requests_(&requests), handlers_(std::move(handlers)) {}

void Libraries::know(const char* folders) {
  auto& header = core_->port.header();
  for (auto& stamp : header.libraries) {
    if (stamp.lane == 0 || stamp.lane >= kLaneCount) continue;
    const auto library = stamp.library();
    if (!known_library_lane(library)) {
      const auto loaded = load_outside_library(stamp, core_->engine->description().engine, folders);
      if (!loaded) header.unknown.add(stamp.lane, library, loaded.error().message);
    }
    if (const auto lane = known_library_lane(library))
      lanes_of_rank_[static_cast<std::size_t>(*lane)] = stamp.lane;
  }
}

void Libraries::open_first() {
  for (const auto lane :
       {Lane::memory, Lane::host_to_device, Lane::device_to_host, Lane::collective})
    open(lane);
  // A library that loads its kernels stops all that is queued from then on until the running
  // kernels end. Within a host a collective ends by itself, because no rank launches it before all
  // are there; elsewhere it, and anywhere the end of a channel, may wait for a rank that waits for
  // the library: all are opened before the first one.
  if (!core_->waits_on_device()) return;
  for (const auto& stamp : core_->port.header().libraries) {
    if (const auto lane = known_library_lane(stamp.library())) open(*lane);
  }
}

Result<bool> Libraries::ready(Lane lane) {
  auto& actor = actors_[lane];
  switch (actor.state) {
    case LaneActor::State::ready: return !actor.working;
    case LaneActor::State::opening: return false;
    case LaneActor::State::given_up: return *actor.error;
    case LaneActor::State::absent: break;
  }
  if (actor.error) return *std::exchange(actor.error, std::nullopt);
  open(lane);
  return false;
}

Result<bool> Libraries::all_ready(Lane lane, const std::vector<Lane>& others) {
  auto all = ready(lane);
  for (const auto other : others) {
    const auto its = ready(other);
    if (!its.ok()) return its;
    if (all.ok()) all = *all && *its;
  }
  return all;
}

bool Libraries::opening_goes_first() const {
  if (!core_->waits_on_device()) return false;
  for (std::size_t i = 0; i < lanes_in_use(); ++i) {
    if (actors_[static_cast<Lane>(i)].state == LaneActor::State::opening) return true;
  }
  return false;
}

void Libraries::open(Lane lane) {
  const bool started = core_->helpers.start([this, lane]() -> Helpers::Finish {
    auto& engine = *core_->engine;
    const auto opened_it = engine.open_queue(lane);
    // Its detour at once: what a library does when it is opened may wait for all that runs, and by
    // the time that the detour is needed that is a collective.
    const auto detour = opened_it.ok() && lane != Lane::collective ? engine.open_queue({lane, true})
                                                                   : Result<void>();
    auto sides = opened_it.ok() && engine.libraries().overlaps(lane);
    for (std::uint8_t side = 1; side <= Queue::kSides && sides; ++side)
      sides = engine.open_queue(Queue::aside(lane, side)).ok();
    return [this, lane, opened_it, detour, sides] {
      if (sides) core_->lanes.set_sides(lane);
      opened(lane, opened_it, detour);
    };
  });
  if (started) actors_[lane].state = LaneActor::State::opening;
}

void Libraries::opened(Lane lane, const Result<void>& opened, const Result<void>& detour) {
  auto& actor = actors_[lane];
  if (!core_->life.lose_if_dead(opened) && !opened.ok()) actor.error = opened.error();
  core_->set_aside_due = true;
  actor.state = opened.ok() ? LaneActor::State::ready : LaneActor::State::absent;
  if (lane != Lane::collective) {
    hold_up(lane, false);
    if (!detour.ok()) core_->lanes.give_up_detour(lane);
  }
  handlers_.opened(lane, opened.ok());
  if (opened.ok() && lane >= Lane::first_library)
    core_->rank.send(wire::from_host::LibraryOpened{
        {std::string(to_string(lane)), core_->engine->libraries().stands_on(lane)}});
}

void Libraries::failed(Lane lane, const Error& error) {
  if (lane < Lane::first_library) return;
  auto& actor = actors_[lane];
  if (actor.state != LaneActor::State::ready) return;
  if (actor.restarts.spend(SteadyClock::time())) {
    core_->engine->libraries().discard(lane);
    actor.state = LaneActor::State::absent;
    return open(lane);
  }
  actor.state = LaneActor::State::given_up;
  actor.error =
      Error{Errc::library, error.native,
            std::string(to_string(lane)) + " has failed more than " +
                std::to_string(LaneActor::kRestarts) + " times in " +
                std::to_string(LaneActor::kWindow.count()) + " s, at last with: " + error.message};
}

void Libraries::hold_up(Lane lane, bool held_up) {
  const auto of_rank = lanes_of_rank_[static_cast<std::size_t>(lane)];
  if (of_rank == 0) return;
  auto& all = core_->port.header().held_up;
  const auto mask = all.load(std::memory_order_relaxed), bit = 1u << of_rank;
  all.store(held_up ? mask | bit : mask & ~bit, std::memory_order_relaxed);
}

bool Libraries::carry_out(Lane lane, std::function<Result<void>()> call,
                          std::function<void(const Result<void>&)> ended) {
  const bool started = core_->helpers.start([this, lane, call = std::move(call),
                                             ended = std::move(ended)]() -> Helpers::Finish {
    const auto outcome = call();
    return [this, lane, ended, outcome, plans = core_->engine->libraries().take_new_plans(lane)] {
      if (!plans.empty()) handlers_.plans_made(lane, plans);
      end_work(lane);
      core_->set_aside_due = true;
      ended(outcome);
    };
  });
  if (started) begin_work(lane);
  return started;
}

void Libraries::begin_work(Lane lane) {
  actors_[lane].working = true;
  ++working_;
}

void Libraries::end_work(Lane lane) {
  auto& actor = actors_[lane];
  actor.working = false;
  --working_;
  hold_up(lane, false);
  for (const auto& range : std::exchange(actor.overwritten, {}))
    core_->engine->libraries().overwrites(lane, range);
}

void Libraries::note_overwritten(std::span<const OperandUse> operands) {
  const auto lanes = lanes_in_use();
  for (auto i = static_cast<std::size_t>(Lane::first_library); i < lanes; ++i) {
    const auto lane = static_cast<Lane>(i);
    auto& actor = actors_[lane];
    if (actor.state != LaneActor::State::ready ||
        !core_->engine->libraries().remembers_contents(lane))
      continue;
    for (const auto& use : operands) {
      if (use.access == Access::read) continue;
      if (actor.working) {
        actor.overwritten.push_back(*use.range);
      } else {
        core_->engine->libraries().overwrites(lane, *use.range);
      }
    }
  }
}

void Libraries::on(std::uint64_t, const wire::to_host::OpenLibrary& open) {
  if (const auto lane = known_library_lane(open.name)) (void)ready(*lane);
}

}  // namespace troupe::host
