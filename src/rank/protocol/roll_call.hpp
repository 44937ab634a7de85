#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::rank_process {

/// Keeps which ranks have carried out the phase that is under way. Pure.
class RollCall {
 public:
  explicit RollCall(int size) : here_(static_cast<std::size_t>(size)) {}

  /// A phase begins.
  void begin() {
    std::fill(here_.begin(), here_.end(), false);
    count_ = 0;
    late_.clear();
  }
  /// `covered` ranks from `rank` on have answered. False: they have before.
  bool answer(std::int32_t rank, std::int32_t covered) {
    const auto first = here_.begin() + rank;
    if (*first) return false;
    std::fill(first, first + covered, true);
    count_ += covered;
    return true;
  }
  [[nodiscard]] bool complete() const noexcept {
    return count_ == static_cast<std::int32_t>(here_.size());
  }
  /// A relay has waited for these for long.
  void set_late(std::vector<std::int32_t> ranks) { late_ = std::move(ranks); }
  /// The ranks that the last relay to complain has named; where none has, those not heard of.
  [[nodiscard]] std::string missing() const {
    auto ranks = late_;
    for (std::size_t rank = 0; rank < here_.size() && late_.empty(); ++rank) {
      if (!here_[rank]) ranks.push_back(static_cast<std::int32_t>(rank));
    }
    std::string text;
    for (const auto rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
  }

 private:
  std::vector<bool> here_;
  std::int32_t count_ = 0;
  std::vector<std::int32_t> late_;
};

}  // namespace troupe::rank_process
