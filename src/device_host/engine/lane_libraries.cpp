#include "device_host/engine/lane_libraries.hpp"

namespace troupe::host {

bool LaneLibraries::blocks(const OperationInfo& info, const std::byte* op, const Call& call) const {
  auto& half = at(call.queue().lane);
  return asked(true, [&] { return half.blocks(info, op, call); });
}

void LaneLibraries::discard(Lane lane) {
  open_[index(lane)].store(nullptr);
  discarded_.push_back(std::exchange(loaded_[index(lane)], nullptr));
}

std::vector<LoadedLibrary> LaneLibraries::stands_on(Lane lane) const {
  const auto* const half = find(lane);
  if (half == nullptr) return {};
  return asked(std::vector<LoadedLibrary>(), [&] { return located(half->stands_on()); });
}

bool LaneLibraries::remembers_contents(Lane lane) const {
  const auto* const half = find(lane);
  return half != nullptr && asked(true, [&] { return half->remembers_contents(); });
}

bool LaneLibraries::overlaps(Lane lane) const {
  const auto* const half = find(lane);
  return half != nullptr && asked(false, [&] { return half->overlaps(); });
}

void LaneLibraries::overwrites(Lane lane, const Operand& range) {
  enter_();
  at(lane).overwrites(range);
}

std::vector<std::vector<std::byte>> LaneLibraries::take_new_plans(Lane lane) {
  auto* const half = find(lane);
  if (half == nullptr) return {};
  enter_();
  return asked(std::vector<std::vector<std::byte>>(), [&] { return half->take_new_plans(); });
}

void LaneLibraries::adopt_plan(Lane lane, std::span<const std::byte> plan) {
  enter_();
  auto* const half = find(lane);
  asked(0, [&] { return half->adopt_plan(plan), 0; });
}

}  // namespace troupe::host
