#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <troupe/error.hpp>

#include "device_host/engine/engine.hpp"
#include "device_host/hazards.hpp"

namespace troupe::host {

/// A mark of the engine that several may hold.
class HeldMark {
 public:
  HeldMark(Engine& engine, Mark mark) : engine_(&engine), mark_(mark) {}
  HeldMark(const HeldMark&) = delete;
  HeldMark& operator=(const HeldMark&) = delete;
  ~HeldMark() { engine_->release(mark_); }
  [[nodiscard]] Mark get() const noexcept { return mark_; }

 private:
  Engine* engine_;
  Mark mark_;
};

/// The library actors' side of the queues: which are open, what stands on them, who waits for whom.
/// A lane whose library cannot be made fails alone: its commands are answered with the error, and
/// the next one makes a new attempt. The reactor's thread only.
class Lanes {
 public:
  explicit Lanes(Engine& engine) : engine_(&engine) {}

  enum class State { absent, opening, ready };
  [[nodiscard]] State state(Lane lane) const { return at(lane).state; }
  void set_state(Lane lane, State state) { at(lane).state = state; }

  /// Makes `lane` wait for everything that a command conflicts with; call before queueing it.
  /// `each_operand(visit)` calls visit(name, operand, access) for each of its operands.
  template <class EachOperand>
  Result<void> order(const EachOperand& each_operand, Lane lane) {
    HazardTracker::Waits waits{};
    each_operand([&](std::string_view, const Operand& operand, Access access) {
      hazards_.collect(operand, access, waits);
    });
    return wait_for(lane, waits);
  }
  /// Notes that the command has been queued on `lane`.
  template <class EachOperand>
  void queued(const EachOperand& each_operand, Lane lane) {
    const auto sequence = ++at(lane).issued;
    each_operand([&](std::string_view, const Operand& operand, Access access) {
      hazards_.record(operand, access, lane, sequence);
    });
  }

  /// A mark behind everything on the lane; shared if nothing was queued since the last one.
  Result<std::shared_ptr<HeldMark>> mark(Lane lane);
  [[nodiscard]] HazardTracker::Sequence issued(Lane lane) const { return at(lane).issued; }
  /// Everything up to `sequence` on the lane is done.
  void completed(Lane lane, HazardTracker::Sequence sequence);
  void forget_region(std::uint32_t region) { hazards_.forget_region(region); }
  /// After a drain: nothing is queued anywhere.
  void all_completed();

 private:
  struct LaneState {
    State state = State::absent;
    HazardTracker::Sequence issued = 0;
    std::shared_ptr<HeldMark> mark;
    HazardTracker::Sequence marked = 0;  ///< what `mark` stands behind
    HazardTracker::Waits waited{};       ///< per other lane, up to where this one waits already
  };
  static constexpr std::size_t kForgetAbove =
      4096;  ///< hazard segments before the done ones are dropped

  [[nodiscard]] LaneState& at(Lane lane) { return lanes_[static_cast<std::size_t>(lane)]; }
  [[nodiscard]] const LaneState& at(Lane lane) const {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  Result<void> wait_for(Lane lane, const HazardTracker::Waits& waits);

  Engine* engine_;
  std::array<LaneState, kLaneCount> lanes_;
  HazardTracker::Waits completed_{};
  HazardTracker hazards_;
  std::size_t forget_countdown_ = kForgetAbove;
};

}  // namespace troupe::host
