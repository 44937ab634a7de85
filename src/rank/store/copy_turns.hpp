#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

namespace troupe::rank_process {

/// Chooses the commits that are taken out of GPU memory. Where that takes longer than the time
/// between two of them the program does not wait for the copies of one commit: it makes the next
/// ones without.
///
/// All ranks choose the same commits, by counting. When the copies of a commit are complete each
/// rank tells the others how far its program has come; the next commit behind the farthest is
/// copied again. From what a rank tells until it knows what the others have told its program makes
/// no commit. Pure; the owner locks.
class CopyTurns {
 public:
  /// A commit, by its number in its epoch, from 1. All ranks count alike.
  struct Turn {
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;
    friend auto operator<=>(const Turn&, const Turn&) = default;
  };

  /// The program is about to make a commit. True: it is to be copied, unless it has been counted by
  /// then all the same. False: it is counted, without a copy. `busy`: the copies of an earlier one
  /// are not complete.
  [[nodiscard]] bool is_due(std::uint32_t epoch, bool busy) {
    const auto next = behind(epoch);
    // The first one of an epoch always: ranks that are still in the one before may not know yet
    // what that has come to.
    if (next.number == 1 || (!busy && next >= next_)) return true;
    passed_ = next;
    return false;
  }
  /// The program's commit is copied.
  void copy(std::uint32_t epoch) { passed_ = behind(epoch); }
  /// The last commit that the program has made.
  [[nodiscard]] Turn passed() const noexcept { return passed_; }
  /// The copies of a commit are complete; `farthest`: the greatest of all ranks' passed().
  void complete(const Turn& farthest) {
    next_ = std::max(next_, Turn{farthest.epoch, farthest.number + 1});
  }

 private:
  [[nodiscard]] Turn behind(std::uint32_t epoch) const {
    return {epoch, passed_.epoch == epoch ? passed_.number + 1 : 1};
  }

  Turn passed_, next_;
};

}  // namespace troupe::rank_process
