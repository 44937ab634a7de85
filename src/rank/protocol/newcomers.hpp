#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/keeper/job.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// Ranks whose processes have died, and that are back: which process each is by now, and what the
/// round that takes them in has to know. Pure.
class Newcomers {
 public:
  /// The process of a rank, whether it is in the world already or not.
  void learn(const Incarnation& process) {
    const auto known =
        std::find_if(incarnations_.begin(), incarnations_.end(),
                     [&](const Incarnation& one) { return one.rank == process.rank; });
    if (known != incarnations_.end()) {
      *known = process;
    } else {
      incarnations_.push_back(process);
    }
  }
  /// If it was out of the world it is so no more: its process is another one, which has a device
  /// again, or says that it has none.
  void take_in(const from_rank::Joined& joined, std::vector<std::int32_t>& excluded,
               std::vector<std::int32_t>& rejoining) {
    on(joined);
    std::erase(excluded, joined.rank);
    std::erase(rejoining, joined.rank);
  }
  void on(const from_rank::Joined& joined) {
    moved_ = moved_ || kind_of(joined) != kKindRank;
    learn({joined.rank, joined.incarnation});
    if (std::find(joined_.begin(), joined_.end(), joined.rank) == joined_.end())
      joined_.push_back(joined.rank);
  }
  /// Recovery::kind of this one: its process was started where the one before was, or elsewhere.
  [[nodiscard]] const char* kind_of(const from_rank::Joined& joined) const {
    const auto known =
        std::find_if(incarnations_.begin(), incarnations_.end(),
                     [&](const Incarnation& one) { return one.rank == joined.rank; });
    const auto before = known == incarnations_.end() ? 0 : known->number;
    return keeper::moves(joined.incarnation) == keeper::moves(before) ? kKindRank : kKindNode;
  }
  /// The processes of the ranks that have died once or more.
  [[nodiscard]] const std::vector<Incarnation>& incarnations() const noexcept {
    return incarnations_;
  }
  /// Some have joined since the last epoch began.
  [[nodiscard]] bool any() const noexcept { return !joined_.empty(); }
  [[nodiscard]] std::int32_t first() const { return joined_.front(); }
  [[nodiscard]] const std::vector<std::int32_t>& joined() const noexcept { return joined_; }

  /// The ranks are asked what they have.
  void begin_replace() {
    kept_ = kAnyStep;
    stable_ = -1;
    runs_ended_ = 0;
  }
  void on(const from_rank::Done& done) {
    kept_ = std::min(kept_, done.kept);
    stable_ = std::max(stable_, done.stable);
    runs_ended_ = std::max(runs_ended_, done.runs_ended);
  }
  /// The commit that all go back to. The last ones of a newcomer are where its process before has
  /// left them, in GPU memory; if it is at another place now it is one of which others keep its
  /// part.
  [[nodiscard]] std::int64_t common() const {
    if (!moved_) return stable_;
    return kept_ == kAnyStep ? -1 : kept_;
  }
  /// A run has ended somewhere: a newcomer, which begins with the first, cannot take part in the
  /// next.
  [[nodiscard]] bool are_too_late() const { return any() && runs_ended_ > 0; }
  /// An epoch begins, with them in the world.
  void settle() {
    joined_.clear();
    moved_ = false;
  }

 private:
  std::vector<Incarnation> incarnations_;
  std::vector<std::int32_t> joined_;
  bool moved_ = false;  ///< one of those that have joined is at another place than before
  std::int64_t kept_ = kAnyStep, stable_ = -1;
  std::int64_t runs_ended_ = 0;
};

}  // namespace troupe::rank_process
