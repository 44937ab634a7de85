#include <algorithm>

#include "common/wire/kind.hpp"
#include "common/wire/tuning_mark.hpp"
#include "device_host/device_host.hpp"

// What is made ready ahead of the commands that need it.

namespace troupe::host {
namespace {

/// Between two kinds that the rank is told of: where sizes change all the time, each is new.
constexpr auto kKindPause = std::chrono::milliseconds(1);
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

void DeviceHost::note_kind(const wire::Command& command, std::span<const std::byte> record) {
  if (!is_library(command.lane()) || command.info().traits.not_prepared) return;
  const auto key = wire::kind_key(command);
  if (!kinds_.recurs(key)) return;
  const auto now = SteadyClock::time();
  if (now - kind_told_ < kKindPause) return;  // it will come again
  kind_told_ = now;
  kinds_.told(key);
  if (record.size() > wire::kMaxControlText) return;
  send({.kind = wire::ControlKind::kind_recurs, .bytes = key},
       {reinterpret_cast<const char*>(record.data()), record.size()});
}

void DeviceHost::prepare(wire::ControlMessage message) {
  const auto request = std::make_shared<const wire::Control>(message.head);
  if (auto records = wire::unpack_blobs(message.fd.get()); records.ok()) {
    for (const auto& record : *records) {
      auto one = Preparation::of_record(record);
      if (!one.ok()) continue;
      (*one)->request = request;
      preparations_.push_back(std::move(*one));
    }
  }
  if (request.use_count() == 1) answer(*request, {});
}

void DeviceHost::adopt_plans(wire::ControlMessage message) {
  auto blobs = wire::unpack_blobs(message.fd.get());
  if (!blobs.ok()) return;
  for (std::size_t i = 0; i + 1 < blobs->size(); i += 2) {
    const auto& name = (*blobs)[i];
    const auto lane = known_library_lane({reinterpret_cast<const char*>(name.data()), name.size()});
    if (!lane) continue;
    auto& plan = (*blobs)[i + 1];
    if (keep_measured(*lane, plan) && actors_[*lane].state != LaneActor::State::ready) continue;
    preparations_.push_back(Preparation::of_plan(*lane, std::move(plan)));
  }
}

bool DeviceHost::keep_measured(Lane lane, const std::vector<std::byte>& plan) {
  if (!wire::is_tuning(plan)) return false;
  measured_.emplace_back(lane, plan);
  if (measured_.size() > kMostMeasured) measured_.pop_front();
  return true;
}

bool DeviceHost::advance_preparations() {
  if (mode_ == Mode::lost) return false;
  bool any = false;
  const auto all = preparations_;  // those that end take themselves out
  for (const auto& one : all) {
    if (one->state == Preparation::State::waiting && mode_ != Mode::paused) {
      const auto ready = lane_ready(one->lane);
      if (ready.ok() && !*ready) continue;
      if (ready.ok()) {
        begin_preparation(one);
      } else {
        preparation_ended(one, ready.error());
      }
      any = true;
    } else if (one->state == Preparation::State::queued) {
      const auto reached = engine_->reached(one->mark->get());
      if (reached.ok() && !*reached) continue;
      preparation_ended(one, reached.ok() ? one->outcome : Result<void>(reached.error()));
      any = true;
    }
    if (mode_ == Mode::lost) break;
  }
  return any;
}

void DeviceHost::begin_preparation(const std::shared_ptr<Preparation>& one) {
  if (!one->is_plan) {
    if (auto decoded = one->command.decode(one->bytes); !decoded)
      return preparation_ended(one, decoded);
  }
  const bool started = helpers_.start([this, one]() -> Helpers::Finish {
    run_preparation(*one);
    return [this, one] {
      tell_plans(one->lane, one->plans);
      if (one->scratch == nullptr) return preparation_ended(one, one->outcome);
      auto mark = engine_->mark(one->lane);
      if (!mark.ok()) return preparation_ended(one, mark.error());
      one->mark.emplace(*engine_, *mark);
      one->state = Preparation::State::queued;
    };
  });
  if (!started) return;
  one->state = Preparation::State::running;
  actors_[one->lane].working = true;
  ++working_;
}

/// On the thread of the library.
void DeviceHost::run_preparation(Preparation& one) {
  if (one.is_plan) return engine_->adopt_plan(one.lane, one.bytes);
  const auto bytes = wire::kind_bytes(one.command);
  if (one.whom() == Preparation::For::rank && bytes > kMaxScratch) return;
  auto scratch = engine_->scratch_memory(one.lane, bytes + kMargin);
  if (!scratch.ok()) {
    one.outcome = scratch.error();
    return;
  }
  one.scratch = std::move(*scratch);
  one.addresses.set(wire::kKindRegion, one.scratch.get(), bytes);
  // The cell is pinned memory here too, as it is when the command itself runs.
  one.addresses.set(wire::kKindPinnedRegion, engine_->scratch_cells(), Engine::kScratchCellBytes);
  for (const auto& use : one.command.operands()) {
    if (use.range->bytes == 0 || one.addresses.find(*use.range) != nullptr) continue;
    one.outcome = Error{Errc::invalid, 0, std::string(use.name) + " has no place in a kind"};
    return;
  }
  one.outcome = engine_->run(one.command.info(), one.command.op(),
                             Call(one.lane, one.addresses, one.command.parts()));
  one.plans = engine_->take_new_plans(one.lane);
}

void DeviceHost::preparation_ended(const std::shared_ptr<Preparation>& one,
                                   const Result<void>& outcome) {
  one->mark.reset();
  one->scratch.reset();
  if (one->state != Preparation::State::waiting) work_over(one->lane);
  set_aside_due_ = true;
  std::erase(preparations_, one);
  if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
    return lose(outcome.error());
  if (one->state != Preparation::State::waiting && outcome.code() == Errc::library)
    library_failed(one->lane, outcome.error());
  if (one->ticket && mode_ == Mode::active) replies_.send(*one->ticket, 1, outcome);
  const auto request = std::exchange(one->request, nullptr);
  if (request && request.use_count() == 1) answer(*request, {});
}

void DeviceHost::drop_preparations(Preparation::For whom) {
  const auto all = preparations_;
  for (const auto& one : all) {
    if (one->state == Preparation::State::waiting && one->whom() == whom)
      preparation_ended(one, Error{Errc::stopped, 0, "there is no time for it any more"});
  }
}

}  // namespace troupe::host
