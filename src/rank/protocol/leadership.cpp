#include "rank/protocol/leadership.hpp"

#include <algorithm>

namespace troupe::rank_process {

Leadership::Leadership(int rank, int size, std::uint32_t incarnation, Actions* actions)
    : rank_(rank),
      incarnation_(incarnation),
      actions_(actions),
      leads_(rank == 0 && incarnation == 0),
      settled_(static_cast<std::size_t>(size), true),
      in_round_(static_cast<std::size_t>(size), 0) {
  if (incarnation > 0) settled_[static_cast<std::size_t>(rank)] = false;
}

void Leadership::begin() {
  if (incarnation_ == 0) return;
  for (int rank = 0; rank < static_cast<int>(settled_.size()); ++rank) {
    if (rank != rank_) actions_->send(rank, own());
  }
  consider();
}

void Leadership::hear(const Actions::Heard& heard) {
  heard_.round = std::max(heard_.round, heard.round);
  heard_.epoch = std::max(heard_.epoch, heard.epoch);
}

from_rank::Joined Leadership::own() const {
  return {rank_, incarnation_, heard_.round, heard_.epoch};
}

std::uint32_t Leadership::process_of(int rank) const {
  return rank == rank_ ? incarnation_ : actions_->incarnation_of(rank);
}

bool Leadership::learn(const from_rank::Joined& joined) {
  if (joined.rank == rank_ || !actions_->learn(joined.rank, joined.incarnation)) return false;
  if (joined.incarnation == 0) return false;
  settled_[static_cast<std::size_t>(joined.rank)] = false;
  actions_->died(joined);
  return true;
}

void Leadership::on(const from_rank::Joined& joined) {
  if (joined.rank < 0 || joined.rank >= static_cast<int>(settled_.size())) return;
  hear({joined.round, joined.epoch});
  if (!learn(joined)) return;
  // It may have started after this rank said so.
  if (!is_settled(rank_)) actions_->send(joined.rank, own());
  if (leads_) {
    actions_->take_in(joined);
  } else {
    consider();
  }
}

bool Leadership::learn(const from_supervisor::Order& order) {
  if (leads_ && order.leader != rank_) {
    if (actions_->round() > order.round) return false;
    leads_ = false;
    actions_->resign();
  }
  hear({order.round, order.epoch});
  std::fill(in_round_.begin(), in_round_.end(), 0);
  for (const auto& [rank, number] : order.incarnations) {
    in_round_[static_cast<std::size_t>(rank)] = number;
    // A rank that is new itself hears of deaths that are long past.
    if (rank != rank_ && actions_->incarnation_of(rank) == kUnknown) {
      (void)actions_->learn(rank, number);
    } else {
      (void)learn(from_rank::Joined{.rank = rank, .incarnation = number});
    }
  }
  const auto& joined = order.joined;
  for (int rank = 0; rank < static_cast<int>(settled_.size()); ++rank) {
    // Who is not named has never died.
    if (rank != rank_) (void)actions_->learn(rank, 0);
    const auto index = static_cast<std::size_t>(rank);
    if (process_of(rank) != in_round_[index]) continue;  // it has died since then
    settled_[index] = std::find(joined.begin(), joined.end(), rank) == joined.end();
  }
  leader_ = order.leader;
  actions_->follow(leader_);
  return true;
}

void Leadership::consider() {
  if (is_settled(leader_)) return;
  const auto first = std::find(settled_.begin(), settled_.end(), true);
  leader_ = first != settled_.end() ? static_cast<int>(first - settled_.begin()) : 0;
  actions_->follow(leader_);
  if (leader_ != rank_) return;
  leads_ = true;
  std::vector<Incarnation> all;
  std::vector<from_rank::Joined> joined;
  for (int rank = 0; rank < static_cast<int>(settled_.size()); ++rank) {
    const auto number = process_of(rank);
    if (number == 0 || number == kUnknown) continue;
    all.push_back({rank, number});
    if (!is_settled(rank)) joined.push_back({.rank = rank, .incarnation = number});
  }
  actions_->lead(heard_, all, joined);
}

std::vector<std::int32_t> Leadership::settle() {
  std::vector<std::int32_t> back;
  for (int rank = 0; rank < static_cast<int>(settled_.size()); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    // One that has joined since then is not in this epoch.
    if (settled_[index] || process_of(rank) != in_round_[index]) continue;
    settled_[index] = true;
    if (rank != rank_) back.push_back(rank);
  }
  return back;
}

}  // namespace troupe::rank_process
