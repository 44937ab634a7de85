#include "device_host/libraries/preparations.hpp"

#include <algorithm>
#include <string>

#include "common/wire/kind.hpp"
#include "common/wire/tuning_mark.hpp"

namespace troupe::host {
namespace {

/// Between two kinds that the rank is told of: where sizes change all the time, each is new.
constexpr auto kKindPause = std::chrono::milliseconds(1);
/// A record that is longer is not told.
constexpr std::size_t kMaxToldRecord = 16 * 1024;
/// The most scratch memory of a preparation that no command of the program asks for.
constexpr std::uint64_t kMaxScratch = std::uint64_t{1} << 30;
/// Results of measurements that are kept here: as many as the rank's file has.
constexpr std::size_t kMostMeasured = 256;
/// Behind the operands: matrices full of zeros contradict themselves, and who trusts them may write
/// an element too far.
constexpr std::uint64_t kMargin = std::uint64_t{64} << 10;

bool is_library(Lane lane) {
  return lane >= Lane::first_library;
}

}  // namespace

Result<std::shared_ptr<Preparation>> Preparation::of_record(std::span<const std::byte> record) {
  wire::Command command;
  if (auto decoded = command.decode(record); !decoded) return decoded.error();
  if (!is_library(command.lane()) || command.info().traits.not_prepared)
    return Error{Errc::unsupported, 0,
                 std::string(command.name()) + ": there is nothing to prepare for it"};
  auto one = std::make_shared<Preparation>();
  one->lane = command.lane();
  one->bytes = wire::kind_record(command);
  return one;
}

std::shared_ptr<Preparation> Preparation::of_plan(Lane lane, std::vector<std::byte> plan) {
  auto one = std::make_shared<Preparation>();
  one->lane = lane;
  one->bytes = std::move(plan);
  one->is_plan = true;
  return one;
}

void Preparations::note_kind(const wire::Command& command, std::span<const std::byte> record) {
  if (!is_library(command.lane()) || command.info().traits.not_prepared) return;
  const auto key = wire::kind_key(command);
  if (!kinds_.recurs(key)) return;
  const auto now = SteadyClock::time();
  if (now - kind_told_ < kKindPause) return;  // it will come again
  kind_told_ = now;
  kinds_.told(key);
  if (record.size() > kMaxToldRecord) return;
  core_->rank.send(wire::from_host::KindRecurs{key, {record.begin(), record.end()}});
}

void Preparations::tell_plans(Lane lane, const std::vector<std::vector<std::byte>>& plans) {
  for (const auto& plan : plans) keep_measured(lane, plan);
  // Where they cannot be sent, a later device host makes the plans again.
  (void)core_->rank.try_send(wire::from_host::PlansMade{std::string(to_string(lane)), plans});
}

void Preparations::library_opened(Lane lane) {
  for (const auto& [library, plan] : measured_) {
    if (library == lane) all_.push_back(Preparation::of_plan(lane, plan));
  }
}

void Preparations::on(std::uint64_t number, const wire::to_host::Prepare& prepare) {
  const auto request = std::make_shared<const std::uint64_t>(number);
  for (const auto& record : prepare.records) {
    auto one = Preparation::of_record(record);
    if (!one.ok()) continue;
    (*one)->request = request;
    all_.push_back(std::move(*one));
  }
  if (request.use_count() == 1) requests_->answer(number, {});
}

void Preparations::on(std::uint64_t, wire::to_host::AdoptPlans& adopt) {
  for (auto& [library, plan] : adopt.plans) {
    const auto lane = known_library_lane(library);
    if (!lane) continue;
    if (keep_measured(*lane, plan) && (*libraries_)[*lane].state != LaneActor::State::ready)
      continue;
    all_.push_back(Preparation::of_plan(*lane, std::move(plan)));
  }
}

void Preparations::prepare_for(std::uint64_t ticket, One one) {
  one->ticket = ticket;
  all_.push_back(std::move(one));
}

bool Preparations::keep_measured(Lane lane, const std::vector<std::byte>& plan) {
  if (!wire::is_tuning(plan)) return false;
  measured_.emplace_back(lane, plan);
  if (measured_.size() > kMostMeasured) measured_.pop_front();
  return true;
}

bool Preparations::advance() {
  if (all_.empty()) return false;
  bool any = false;
  const auto all = all_;  // those that end take themselves out
  for (const auto& one : all) {
    if (core_->life.lost()) break;
    any |= advance(one);
  }
  return any;
}

bool Preparations::advance(const One& one) {
  if (one->state == Preparation::State::waiting && core_->life.mode() != Life::Mode::paused) {
    const auto ready = libraries_->ready(one->lane);
    if (ready.ok() && !*ready) return false;
    if (ready.ok()) {
      begin(one);
    } else {
      ended(one, ready.error());
    }
    return true;
  }
  if (one->state != Preparation::State::queued) return false;
  const auto reached = core_->engine->reached(one->mark->get());
  if (reached.ok() && !*reached) return false;
  ended(one, reached.ok() ? one->outcome : Result<void>(reached.error()));
  return true;
}

bool Preparations::is_queued() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const One& one) { return one->state == Preparation::State::queued; });
}

void Preparations::begin(const One& one) {
  if (!one->is_plan) {
    if (auto decoded = one->command.decode(one->bytes); !decoded) return ended(one, decoded);
  }
  const bool started = core_->helpers.start([this, one]() -> Helpers::Finish {
    run(*one);
    return [this, one] {
      if (!one->plans.empty()) tell_plans(one->lane, one->plans);
      if (one->scratch == nullptr) return ended(one, one->outcome);
      auto mark = core_->engine->mark(one->lane);
      if (!mark.ok()) return ended(one, mark.error());
      one->mark.emplace(*core_->engine, *mark);
      one->state = Preparation::State::queued;
    };
  });
  if (!started) return;
  one->state = Preparation::State::running;
  libraries_->begin_work(one->lane);
}

void Preparations::run(Preparation& one) {
  auto& engine = *core_->engine;
  if (one.is_plan) return engine.libraries().adopt_plan(one.lane, one.bytes);
  const auto bytes = wire::kind_bytes(one.command);
  if (one.whom() == Preparation::For::rank && bytes > kMaxScratch) return;
  auto scratch = engine.scratch_memory(one.lane, bytes + kMargin);
  if (!scratch.ok()) {
    one.outcome = scratch.error();
    return;
  }
  one.scratch = std::move(*scratch);
  one.addresses.set(wire::kKindRegion, one.scratch.get(), bytes);
  // The cell is pinned memory here too, as it is when the command itself runs.
  one.addresses.set(wire::kKindPinnedRegion, engine.scratch_cells(), Engine::kScratchCellBytes);
  for (const auto& use : one.command.operands()) {
    if (use.range->bytes == 0 || one.addresses.find(*use.range) != nullptr) continue;
    one.outcome = Error{Errc::invalid, 0, std::string(use.name) + " has no place in a kind"};
    return;
  }
  one.outcome = engine.run(one.command.info(), one.command.op(),
                           Call(one.lane, one.addresses, one.command.parts()).for_preparation());
  one.plans = engine.libraries().take_new_plans(one.lane);
}

void Preparations::ended(const One& one, const Result<void>& outcome) {
  const bool began = one->state != Preparation::State::waiting;
  one->mark.reset();
  one->scratch.reset();
  if (began) libraries_->end_work(one->lane);
  core_->set_aside_due = true;
  std::erase(all_, one);
  if (core_->life.lose_if_dead(outcome)) return;
  if (began && outcome.code() == Errc::library) libraries_->failed(one->lane, outcome.error());
  if (one->ticket && core_->life.mode() == Life::Mode::active)
    core_->replies.send(*one->ticket, 1, outcome);
  const auto request = std::exchange(one->request, nullptr);
  if (request && request.use_count() == 1) requests_->answer(*request, {});
}

void Preparations::drop(Preparation::For whom) {
  const auto all = all_;
  for (const auto& one : all) {
    if (one->state == Preparation::State::waiting && one->whom() == whom)
      ended(one, Error{Errc::stopped, 0, "there is no time for it any more"});
  }
}

}  // namespace troupe::host
