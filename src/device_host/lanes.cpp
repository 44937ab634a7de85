#include "device_host/lanes.hpp"

#include <algorithm>

namespace troupe::host {

Result<void> Lanes::wait_for(Lane lane, const HazardTracker::Waits& waits) {
  auto& own = at(lane);
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    const auto other = static_cast<Lane>(i);
    if (other == lane || waits[i] <= own.waited[i] || waits[i] <= completed_[i]) continue;
    auto& source = lanes_[i];
    if (source.marked < waits[i]) {
      auto held = mark(other);
      if (!held) return held.error();
    }
    if (auto waited = engine_->wait(lane, source.mark->get()); !waited) return waited;
    own.waited[i] = source.marked;
  }
  return {};
}

Result<std::shared_ptr<HeldMark>> Lanes::mark(Lane lane) {
  auto& state = at(lane);
  if (state.mark && state.marked == state.issued) return state.mark;
  auto mark = engine_->mark(lane);
  if (!mark) return mark.error();
  state.mark = std::make_shared<HeldMark>(*engine_, *mark);
  state.marked = state.issued;
  return state.mark;
}

void Lanes::completed(Lane lane, HazardTracker::Sequence sequence) {
  auto& done = completed_[static_cast<std::size_t>(lane)];
  done = std::max(done, sequence);
  if (--forget_countdown_ == 0) {
    hazards_.forget(completed_);
    forget_countdown_ = kForgetAbove;
  }
}

void Lanes::all_completed() {
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    completed_[i] = lanes_[i].issued;
    lanes_[i].mark.reset();
    lanes_[i].marked = 0;
  }
  hazards_.clear();
}

}  // namespace troupe::host
