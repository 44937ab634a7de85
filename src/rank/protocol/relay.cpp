#include "rank/protocol/relay.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

namespace troupe::rank_process {

namespace {

/// Keeps only the ends of the ranks with the lowest and the highest step.
void keep_first_and_last(std::vector<RankStep>& ends) {
  if (ends.size() <= 2) return;
  const auto [first, last] =
      std::minmax_element(ends.begin(), ends.end(),
                          [](const RankStep& a, const RankStep& b) { return a.step < b.step; });
  ends = {*first, *last};
}

template <class T>
void append(std::vector<T>& all, std::vector<T>&& more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Answers of two parts of the tree as one.

void merge(from_rank::Done& all, from_rank::Done&& more) {
  all.newest = std::min(all.newest, more.newest);
  all.kept = std::min(all.kept, more.kept);
  all.stable = std::max(all.stable, more.stable);
  all.runs_ended = std::max(all.runs_ended, more.runs_ended);
  all.stop_asked = all.stop_asked || more.stop_asked;
  all.repeated = std::max(all.repeated, more.repeated);
  all.lost_buffers += more.lost_buffers;
  append(all.contributions, std::move(more.contributions));
  append(all.iterations, std::move(more.iterations));
}

void merge(from_rank::Finished& all, from_rank::Finished&& more) {
  append(all.ends, std::move(more.ends));
  keep_first_and_last(all.ends);
}

void merge(from_rank::Prepared& all, from_rank::Prepared&& more) {
  append(all.contributions, std::move(more.contributions));
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

WorldRelay::WorldRelay(Options options, Rise rise, PassOn pass_on, Deliver deliver)
    : options_(options),
      rise_(std::move(rise)),
      pass_on_(std::move(pass_on)),
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

void WorldRelay::down(const SupervisorMessage& message, TimePoint now) {
  const auto* const order = std::get_if<from_supervisor::Order>(&message);
  if (order != nullptr && order->round < round_) return;
  std::visit([&](const auto& said) { look_at(said, now); }, message);
  if (std::holds_alternative<from_supervisor::Stop>(message)) {
    // Straight to everybody: one that relays may be the very reason.
    for (int rank = 1; options_.rank == 0 && rank < options_.tree.size; ++rank)
      pass_on_(rank, message);
  } else {
    for (const int child : children_) pass_on_(child, message);
  }
  deliver_(message);
}

void WorldRelay::look_at(const from_supervisor::Order& order, TimePoint now) {
  round_ = order.round;
  phase_ = order.phase;
  since_ = now;
  echoes_ = 0;
  late_.clear();
  said_late_ = false;
  clear(done_);
}

void WorldRelay::look_at(const from_supervisor::Activate& activate, TimePoint) {
  phase_ = Phase::active;
  epoch_ = activate.epoch;
  echoes_ = 0;
  clear(finished_);
  commits_begin(activate.stable);
  standby_ready_.assign(children_.size() + 1, false);
}

void WorldRelay::look_at(const from_supervisor::Prepare& prepare, TimePoint) {
  formation_ = prepare.formation;
  preparation_ = prepare.step;
  formation_failed_ = false;
  clear(prepared_);
}

void WorldRelay::look_at(const from_supervisor::AllFinished&, TimePoint) {
  clear(finished_);
  commits_begin(-1);
}

void WorldRelay::up(RankMessage message) {
  std::visit([this](auto& said) { hear(std::move(said)); }, message);
}

void WorldRelay::hear(from_rank::Done&& done) {
  if (done.round == round_ && done.phase == phase_)
    combine(done_, slot_of(done.rank), std::move(done));
}

void WorldRelay::hear(from_rank::Finished&& finished) {
  if (is_active(finished.epoch)) combine(finished_, slot_of(finished.rank), std::move(finished));
}

void WorldRelay::hear(from_rank::Flushed&& flushed) {
  if (is_active(flushed.epoch)) progress(flushed_, flushed);
}

void WorldRelay::hear(from_rank::Committed&& committed) {
  if (!is_active(committed.epoch)) return;
  // Nobody says two before a commit of all has passed here.
  if (paces_.size() < static_cast<std::size_t>(covered_))
    append(paces_, std::move(committed.paces));
  progress(committed_, std::move(committed));
}

void WorldRelay::hear(from_rank::Loss&& loss) {
  if (!loss.kind.empty()) return rise(loss);
  lost_buffers_ += loss.lost_buffers;
}

void WorldRelay::hear(from_rank::Fault&& fault) {
  if (is_echo(fault.kind) && (fault.round != round_ || ++echoes_ > kEchoesPerPhase)) return;
  rise(fault);
}

void WorldRelay::hear(from_rank::Late&& late) {
  if (late.round == round_ && late.phase == phase_) append(late_, std::move(late.ranks));
}

void WorldRelay::hear(from_rank::StopAsked&& asked) {
  if (!std::exchange(stop_asked_, true)) rise(asked);
}

void WorldRelay::tick(TimePoint now) {
  if (phase_ == Phase::active || done_.missing == 0 || said_late_ || now - since_ < patience_)
    return;
  said_late_ = true;
  from_rank::Late late{.rank = options_.rank, .round = round_, .phase = phase_, .ranks = late_};
  if (!done_.heard[0]) late.ranks.push_back(options_.rank);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    const bool named = std::any_of(late_.begin(), late_.end(), [&](const std::int32_t rank) {
      return slot_above(rank) == static_cast<int>(i) + 1;
    });
    // A child that reported nothing is itself late.
    if (!done_.heard[i + 1] && !named) late.ranks.push_back(children_[i]);
  }
  if (late.ranks.size() > kMostLate) late.ranks.resize(kMostLate);
  rise(late);
}

template <class Message>
void WorldRelay::clear(Answers<Message>& answers) {
  answers.heard.assign(children_.size() + 1, false);
  answers.missing = static_cast<int>(children_.size()) + 1;
  answers.combined = {};
}

template <class Message>
void WorldRelay::combine(Answers<Message>& answers, int slot, Message&& message) {
  if (slot < 0 || answers.heard[static_cast<std::size_t>(slot)]) return;
  const bool first = answers.missing == static_cast<int>(children_.size()) + 1;
  answers.heard[static_cast<std::size_t>(slot)] = true;
  --answers.missing;
  auto& all = answers.combined;
  if (first) {
    all = std::move(message);
  } else {
    merge(all, std::move(message));
  }
  if (answers.missing > 0) return;
  all.rank = options_.rank;
  all.covered = covered_;
  if constexpr (std::is_same_v<Message, from_rank::Done>)
    all.lost_buffers += std::exchange(lost_buffers_, 0u);
  const auto leaving = std::exchange(all, {});
  rise(leaving);
}

void WorldRelay::commits_begin(std::int64_t step) {
  flushed_.begin(children_.size() + 1, step);
  committed_.begin(children_.size() + 1, step);
  paces_.clear();
}

template <class Message>
void WorldRelay::progress(LeastStep& steps, Message message) {
  const int slot = slot_of(message.rank);
  if (slot < 0) return;
  const auto everywhere = steps.say(static_cast<std::size_t>(slot), 1, message.step);
  if (!everywhere) return;
  message.rank = options_.rank;
  message.covered = covered_;
  message.step = *everywhere;
  if constexpr (requires { message.paces; }) message.paces = std::exchange(paces_, {});
  rise(message);
}

/// Good news when all have it, bad news at once.
void WorldRelay::hear(from_rank::Standby&& standby) {
  const int slot = slot_above(standby.rank);
  if (slot < 0 || standby.epoch != epoch_) return;
  const bool ready = standby.state == from_rank::Standby::State::ready;
  standby_ready_[static_cast<std::size_t>(slot)] = ready;
  if (!ready) return rise(standby);
  if (std::find(standby_ready_.begin(), standby_ready_.end(), false) != standby_ready_.end())
    return;
  standby.rank = options_.rank;
  standby.covered = covered_;
  rise(standby);
}

void WorldRelay::hear(from_rank::Prepared&& prepared) {
  if (prepared.formation != formation_ || prepared.step != preparation_) return;
  if (prepared.error.code == Errc::ok)
    return combine(prepared_, slot_of(prepared.rank), std::move(prepared));
  // The formation has failed with the first that says so.
  if (!std::exchange(formation_failed_, true)) rise(prepared);
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
