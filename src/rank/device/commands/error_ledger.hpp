#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <troupe/error.hpp>

#include "rank/device/commands/outcome_log.hpp"

namespace troupe::rank_process {

/// What has failed, and what of it the program knows.
///
/// A program may drop any future. So errors are entered here before they go into one, with a mark
/// that the future sets when the program reads it. Any thread.
class ErrorLedger {
 public:
  /// answer: only whoever holds its future is told of it.
  enum class Kind : std::uint8_t { failure, answer };
  /// Enters an error of what stands at this place of the program. Returns it with its mark: this is
  /// what the future shall hold.
  [[nodiscard]] Error enter(Error error, ProgramPlace place, Kind kind = Kind::failure);
  /// All failures so far count as read.
  void mark_all_read();
  /// The program has gone back to this place, and does again what failed behind it. Losses do not
  /// matter any more.
  void forget_since(ProgramPlace place);
  /// Errors of commands that a loss has ended, or kept from running, count as read.
  void forgive_losses();
  [[nodiscard]] UnreadErrors unread();

 private:
  /// Forgets the errors that no future holds any more; counts those of them that were not read.
  void settle();
  struct Entry {
    Error error;
    ProgramPlace place;
    Kind kind;
  };
  struct Lost {
    ProgramPlace place;
    UnreadErrors errors;
  };
  static void lose(const Entry& entry, std::vector<Lost>& lost);

  std::mutex mutex_;
  std::vector<Entry> open_;     ///< the program may still read them, or has
  std::size_t settle_at_ = 64;  ///< as many open ones
  /// That nobody can read any more, in the order of the program; many of them count together, at
  /// the place of the first.
  std::vector<Lost> lost_, lost_answers_;
  UnreadErrors lost_by_loss_;  ///< of these, what forgive_losses() is about
};

}  // namespace troupe::rank_process
