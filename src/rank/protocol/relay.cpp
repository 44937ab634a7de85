#include "rank/protocol/relay.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::rank_process {

using Kind = WorldMessage::Kind;

namespace {

/// Keeps only the parts of the ranks with the lowest and the highest iteration.
void keep_first_and_last(std::vector<RankPart>& parts) {
  if (parts.size() <= 2) return;
  const auto [first, last] = std::minmax_element(
      parts.begin(), parts.end(),
      [](const RankPart& a, const RankPart& b) { return a.iteration < b.iteration; });
  parts = {*first, *last};
}

}  // namespace

/// The value of a rank's lowest digit that is not 0; of the root, the first that no rank has.
int WorldTree::place_of(int rank) const {
  std::int64_t place = 1;
  if (rank == 0) {
    while (place < size) place *= radix;
  } else {
    while (rank / place % radix == 0) place *= radix;
  }
  return static_cast<int>(std::min<std::int64_t>(place, std::max(size, 1)));
}

int WorldTree::parent(int rank) const {
  if (rank == 0) return -1;
  const int place = place_of(rank);
  return rank - rank / place % radix * place;
}

std::vector<int> WorldTree::children(int rank) const {
  std::vector<int> result;
  for (std::int64_t place = 1; place < place_of(rank); place *= radix) {
    for (int digit = 1; digit < radix && rank + digit * place < size; ++digit)
      result.push_back(static_cast<int>(rank + digit * place));
  }
  std::reverse(result.begin(), result.end());
  return result;
}

int WorldTree::subtree(int rank) const {
  return std::min(place_of(rank), size - rank);
}

int WorldTree::height(int rank) const {
  int result = 0;
  for (std::int64_t below = subtree(rank); below > 1; below = (below + radix - 1) / radix) ++result;
  return result;
}

WorldRelay::WorldRelay(Options options, Send send, Deliver deliver)
    : options_(options),
      send_(std::move(send)),
      deliver_(std::move(deliver)),
      parent_(options.tree.parent(options.rank)),
      children_(options.tree.children(options.rank)),
      covered_(options.tree.subtree(options.rank)),
      // Half of the phase's time, and another quarter divided among the levels.
      patience_(options.phase_timeout / 2 + options.phase_timeout / 4 *
                                                options.tree.height(options.rank) /
                                                (options.tree.height(0) + 1)) {
  clear(done_);
  clear(finished_);
  clear(prepared_);
  commits_begin(-1);
  standby_ready_.assign(children_.size() + 1, false);
}

void WorldRelay::down(const WorldMessage& message, TimePoint now) {
  switch (message.kind) {
    case Kind::order:
      if (message.round < round_) return;
      order(message, now);
      break;
    case Kind::activate:
      phase_ = Phase::active;
      epoch_ = message.epoch;
      echoes_ = 0;
      clear(finished_);
      commits_begin(message.step);
      standby_ready_.assign(children_.size() + 1, false);
      break;
    case Kind::prepare:
      formation_ = message.formation;
      formation_phase_ = message.phase;
      formation_failed_ = false;
      clear(prepared_);
      break;
    case Kind::all_finished:
      clear(finished_);
      commits_begin(-1);
      break;
    default: break;
  }
  if (message.kind == Kind::stop) {
    // Straight to everybody: one that relays may be the very reason.
    for (int rank = 1; options_.rank == 0 && rank < options_.tree.size; ++rank)
      send_(rank, message);
  } else {
    for (const int child : children_) send_(child, message);
  }
  deliver_(message);
}

void WorldRelay::order(const WorldMessage& order, TimePoint now) {
  round_ = order.round;
  phase_ = order.phase;
  since_ = now;
  echoes_ = 0;
  late_.clear();
  said_late_ = false;
  clear(done_);
}

void WorldRelay::up(WorldMessage message) {
  const bool active = phase_ == Phase::active && message.epoch == epoch_;
  switch (message.kind) {
    case Kind::done:
      if (message.round == round_ && message.phase == phase_)
        combine(done_, slot_of(message.rank), std::move(message));
      return;
    case Kind::finished:
      if (active) combine(finished_, slot_of(message.rank), std::move(message));
      return;
    case Kind::flushed:
      if (active) progress(flushed_, slot_of(message.rank), message);
      return;
    case Kind::committed:
      if (active) progress(committed_, slot_of(message.rank), message);
      return;
    case Kind::standby: return standby(message);
    case Kind::prepared: return prepared(std::move(message));
    case Kind::loss:
      if (!message.text.empty()) return rise(message);
      lost_buffers_ += message.lost_buffers;
      return;
    case Kind::fault:
      if (is_echo(message.text) && (message.round != round_ || ++echoes_ > kEchoesPerPhase)) return;
      return rise(message);
    case Kind::late:
      if (message.round == round_ && message.phase == phase_)
        late_.insert(late_.end(), message.parts.begin(), message.parts.end());
      return;
    case Kind::stop_asked:
      if (!std::exchange(stop_asked_, true)) rise(message);
      return;
    default: return rise(message);
  }
}

void WorldRelay::tick(TimePoint now) {
  if (phase_ == Phase::active || done_.missing == 0 || said_late_ || now - since_ < patience_)
    return;
  said_late_ = true;
  WorldMessage message{
      .kind = Kind::late, .phase = phase_, .round = round_, .rank = options_.rank, .parts = late_};
  if (!done_.heard[0]) message.parts.push_back({.rank = options_.rank});
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const bool named = std::any_of(late_.begin(), late_.end(), [&](const RankPart& part) {
      return slot_above(part.rank) == static_cast<int>(i) + 1;
    });
    // One that has not even said whom it waits for is itself what is waited for.
    if (!done_.heard[i + 1] && !named) message.parts.push_back({.rank = children_[i]});
  }
  if (message.parts.size() > kMostLate) message.parts.resize(kMostLate);
  rise(message);
}

void WorldRelay::clear(Answers& answers) {
  answers.heard.assign(children_.size() + 1, false);
  answers.missing = static_cast<int>(children_.size()) + 1;
  answers.combined = {};
}

void WorldRelay::combine(Answers& answers, int slot, WorldMessage&& message) {
  if (slot < 0 || answers.heard[static_cast<std::size_t>(slot)]) return;
  const bool first = answers.missing == static_cast<int>(children_.size()) + 1;
  answers.heard[static_cast<std::size_t>(slot)] = true;
  --answers.missing;
  auto& all = answers.combined;
  if (first) {
    all = std::move(message);
  } else {
    all.step = std::min(all.step, message.step);
    all.repeated = std::max(all.repeated, message.repeated);
    all.lost_buffers += message.lost_buffers;
    std::move(message.parts.begin(), message.parts.end(), std::back_inserter(all.parts));
    if (all.kind == Kind::finished) keep_first_and_last(all.parts);
  }
  if (answers.missing > 0) return;
  all.rank = options_.rank;
  all.covered = covered_;
  if (all.kind == Kind::done) all.lost_buffers += std::exchange(lost_buffers_, 0u);
  const auto leaving = std::exchange(all, {});
  rise(leaving);
}

void WorldRelay::commits_begin(std::int64_t step) {
  flushed_.begin(children_.size() + 1, step);
  committed_.begin(children_.size() + 1, step);
}

void WorldRelay::progress(LeastStep& steps, int slot, const WorldMessage& message) {
  if (slot < 0) return;
  const auto everywhere = steps.say(static_cast<std::size_t>(slot), 1, message.step);
  if (!everywhere) return;
  rise({.kind = message.kind,
        .round = message.round,
        .epoch = epoch_,
        .rank = options_.rank,
        .covered = covered_,
        .step = *everywhere});
}

/// Good news when all have it, bad news at once.
void WorldRelay::standby(const WorldMessage& message) {
  const int slot = slot_above(message.rank);
  if (slot < 0 || message.epoch != epoch_) return;
  const bool ready = message.code == static_cast<std::uint32_t>(Errc::ok);
  standby_ready_[static_cast<std::size_t>(slot)] = ready;
  if (!ready) return rise(message);
  if (std::find(standby_ready_.begin(), standby_ready_.end(), false) != standby_ready_.end())
    return;
  auto all = message;
  all.rank = options_.rank;
  all.covered = covered_;
  rise(all);
}

void WorldRelay::prepared(WorldMessage message) {
  if (message.formation != formation_ || message.phase != formation_phase_) return;
  if (message.code == static_cast<std::uint32_t>(Errc::ok))
    return combine(prepared_, slot_of(message.rank), std::move(message));
  // The formation has failed with the first that says so.
  if (!std::exchange(formation_failed_, true)) rise(message);
}

int WorldRelay::slot_of(int rank) const {
  const int slot = slot_above(rank);
  return slot > 0 && children_[static_cast<std::size_t>(slot) - 1] != rank ? -1 : slot;
}

int WorldRelay::slot_above(int rank) const {
  if (rank == options_.rank) return 0;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (rank >= children_[i] && rank < children_[i] + options_.tree.subtree(children_[i]))
      return static_cast<int>(i) + 1;
  }
  return -1;
}

}  // namespace troupe::rank_process
