#include "rank/protocol/standby_world.hpp"

#include <algorithm>

namespace troupe::rank_process {

StandbyWorld::StandbyWorld(Options options, int size, Broadcast broadcast)
    : options_(options),
      broadcast_(std::move(broadcast)),
      members_(static_cast<std::size_t>(size)),
      ready_(static_cast<std::size_t>(size)),
      answered_(static_cast<std::size_t>(size)),
      contributions_(static_cast<std::size_t>(size)) {}

void StandbyWorld::activated(std::uint32_t epoch, const std::vector<bool>& members) {
  epoch_ = epoch;
  state_ = State::none;
  working_ = true;
  attempts_ = 0;
  not_before_ = {};
  obstacle_.clear();
  members_ = members;
  std::fill(ready_.begin(), ready_.end(), false);
}

void StandbyWorld::interrupted() {
  working_ = false;
  if (state_ != State::formed) state_ = State::none;
}

std::uint32_t StandbyWorld::take() {
  epoch_ = 0;  // what is on its way speaks of standbys that may be in use by now
  return std::exchange(state_, State::none) == State::formed ? formation_ : 0;
}

void StandbyWorld::receive(const from_rank::Standby& standby, TimePoint now) {
  using Is = from_rank::Standby::State;
  if (!options_.wanted || standby.epoch != epoch_) return;
  const bool ready = standby.state == Is::ready, stale = standby.state == Is::stale;
  mark(ready_, standby.rank, standby.covered, ready);
  if (!ready && state_ != State::none) {
    fail(
        "rank " + std::to_string(standby.rank) + (stale ? " has a new group" : " lost its standby"),
        now);
  }
  if (stale) attempts_ = 0;  // it is another world that is to be formed
  begin_if_ready(now);
}

void StandbyWorld::receive(const from_rank::Prepared& prepared, TimePoint now) {
  if (!options_.wanted || prepared.epoch != epoch_) return;
  const auto stage =
      prepared.step == Preparation::connect ? State::connecting : State::contributing;
  if (prepared.formation != formation_ || stage != state_ ||
      answered_[static_cast<std::size_t>(prepared.rank)])
    return;
  if (prepared.error.code != Errc::ok)
    return fail("rank " + std::to_string(prepared.rank) + ": " + prepared.error.message, now);
  mark(answered_, prepared.rank, prepared.covered, true);
  for (const auto& [rank, bytes] : prepared.contributions) {
    if (rank >= prepared.rank && rank < prepared.rank + prepared.covered)
      contributions_[static_cast<std::size_t>(rank)] = bytes;
  }
  if (answered_ != members_) return;
  step(stage == State::contributing ? State::connecting : State::formed, now);
}

void StandbyWorld::mark(std::vector<bool>& ranks, std::int32_t rank, std::int32_t covered,
                        bool value) {
  const auto first = static_cast<std::size_t>(rank);
  for (auto i = first; i < first + static_cast<std::size_t>(covered); ++i)
    ranks[i] = value && members_[i];
}

void StandbyWorld::begin_if_ready(TimePoint now) {
  if (state_ != State::none || !working_ || attempts_ >= options_.max_attempts ||
      now < not_before_ || ready_ != members_)
    return;
  ++attempts_;
  ++formation_;
  std::fill(contributions_.begin(), contributions_.end(), std::vector<std::byte>());
  step(State::contributing, now);
}

void StandbyWorld::step(State state, TimePoint now) {
  state_ = state;
  since_ = now;
  std::fill(answered_.begin(), answered_.end(), false);
  if (state == State::formed) return obstacle_.clear();
  from_supervisor::Prepare order{.epoch = epoch_,
                                 .formation = formation_,
                                 .step = Preparation::contribute,
                                 .contributions = {}};
  if (state == State::connecting) {
    order.step = Preparation::connect;
    order.contributions = Contributions::of(contributions_);
  }
  broadcast_(order);
}

void StandbyWorld::fail(const std::string& why, TimePoint now) {
  state_ = State::none;
  obstacle_ = why;
  not_before_ = now + options_.pause;
}

void StandbyWorld::tick(TimePoint now) {
  if (!options_.wanted || !working_) return;
  const bool at_it = state_ == State::contributing || state_ == State::connecting;
  if (at_it && now - since_ > options_.timeout) fail("the standbys did not form it in time", now);
  begin_if_ready(now);
}

}  // namespace troupe::rank_process
