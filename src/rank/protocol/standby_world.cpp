#include "rank/protocol/standby_world.hpp"

#include <algorithm>

namespace troupe::rank_process {

using Kind = WorldMessage::Kind;

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

void StandbyWorld::receive(const WorldMessage& message, TimePoint now) {
  const auto rank = static_cast<std::size_t>(message.rank);
  if (!options_.wanted || message.epoch != epoch_) return;
  const bool good = message.code == static_cast<std::uint32_t>(Errc::ok);
  if (message.kind == Kind::standby) {
    mark(ready_, message, good);
    const bool stale = message.code == static_cast<std::uint32_t>(Errc::stale);
    if (!good && state_ != State::none) {
      fail("rank " + std::to_string(rank) + (stale ? " has a new group" : " lost its standby"),
           now);
    }
    if (stale) attempts_ = 0;  // it is another world that is to be formed
    return begin_if_ready(now);
  }
  const auto stage = message.phase == Phase::form ? State::connecting : State::contributing;
  if (message.formation != formation_ || stage != state_ || answered_[rank]) return;
  if (!good) return fail("rank " + std::to_string(rank) + ": " + message.text, now);
  mark(answered_, message, true);
  for (const auto& part : message.parts) {
    if (part.rank >= message.rank && part.rank < message.rank + message.covered)
      contributions_[static_cast<std::size_t>(part.rank)] = part.contribution;
  }
  if (answered_ != members_) return;
  step(stage == State::contributing ? State::connecting : State::formed, now);
}

/// Sets the entries of the members for which the message speaks.
void StandbyWorld::mark(std::vector<bool>& ranks, const WorldMessage& message, bool value) {
  const auto first = static_cast<std::size_t>(message.rank);
  for (auto i = first; i < first + static_cast<std::size_t>(message.covered); ++i)
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
  WorldMessage order{.kind = Kind::prepare,
                     .phase = state == State::connecting ? Phase::form : Phase::replace,
                     .epoch = epoch_,
                     .formation = formation_};
  if (state == State::connecting) order.payload = encode(contributions_);
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
