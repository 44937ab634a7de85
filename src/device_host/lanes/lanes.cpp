#include "device_host/lanes/lanes.hpp"

#include <algorithm>

namespace troupe::host {

bool Lanes::stands_for_peers(Queue queue, Sequence sequence) const {
  if (sequence <= completed(queue)) return false;
  const auto first = at(queue).first_for_peers;
  return first != 0 && sequence >= first;
}

bool Lanes::waits_for_peers(Queue queue, const Waits& waits) const {
  return queue.lane == Lane::collective || stands_behind_peers(queue, waits);
}

bool Lanes::stands_behind_peers(Queue queue, const Waits& waits) const {
  return stands_for_peers(queue, at(queue).issued) || depends_on_peers(waits);
}

bool Lanes::depends_on_peers(const Waits& waits) const {
  return waits.any_of(
      [this](std::size_t i, Sequence place) { return stands_for_peers(Queue::at(i), place); });
}

Waits Lanes::waits_of(std::span<const OperandUse> operands) const {
  Waits waits;
  for (const auto& use : operands) hazards_.collect(*use.range, use.access, waits);
  waits.drop(completed_);
  return waits;
}

Sequence Lanes::queued(std::span<const OperandUse> operands, Queue queue, const Waits& waits) {
  const bool peers = waits_for_peers(queue, waits);
  auto& state = at(queue);
  const auto sequence = ++state.issued;
  if (peers && state.first_for_peers == 0) state.first_for_peers = sequence;
  for (const auto& use : operands)
    hazards_.record(*use.range, use.access, queue, sequence, completed_);
  return sequence;
}

Queue Lanes::queue_of(Lane lane, const Waits& waits) const {
  const Queue own(lane), detour(lane, true);
  // Collectives keep one order, which is that of all ranks.
  if (lane == Lane::collective) return own;
  if (lane == sides_of_ && !depends_on_peers(waits)) {
    if (const auto queue = spread(lane, waits)) return *queue;
  }
  if (at(own).no_detour) return own;
  return waits_for_peers(own, waits) && !waits_for_peers(detour, waits) ? detour : own;
}

std::optional<Queue> Lanes::spread(Lane lane, const Waits& waits) const {
  std::optional<Queue> best;
  Sequence under_way = 0;
  for (std::uint8_t side = 0; side <= Queue::kSides; ++side) {
    const auto queue = Queue::aside(lane, side);
    const auto newest = issued(queue), done = completed(queue);
    if (stands_for_peers(queue, newest)) continue;
    // It needs no event to stand behind what it waits for; the newest waits for nothing else there.
    if (waits[queue.index()] > done && waits[queue.index()] == newest) return queue;
    if (best && newest - done >= under_way) continue;
    best = queue, under_way = newest - done;
  }
  return best;
}

void Lanes::complete(Queue queue, Sequence sequence) {
  auto& done = completed_[queue.index()];
  if (sequence > done) done_since_forget_ += sequence - done;
  done = std::max(done, sequence);
  // Behind one that waits for peers all do: nothing else takes the queue meanwhile.
  if (done >= at(queue).issued) at(queue).first_for_peers = 0;
  if (done_since_forget_ >= kForgetAbove) {
    hazards_.forget(completed_);
    done_since_forget_ = 0;
  }
}

void Lanes::complete_all() {
  for (std::size_t i = 0; i < kQueueCount; ++i) {
    completed_[i] = queues_[i].issued;
    queues_[i].first_for_peers = 0;
  }
  hazards_.clear();
}

}  // namespace troupe::host
